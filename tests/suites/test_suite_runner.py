"""Each row of a suite is submitted once, whatever happens to the submitting program."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llmb_tui.cluster.cluster import CancelUnconfirmedError
from llmb_tui.cluster.failures import DisconnectedError
from llmb_tui.cluster_files.prune import held_by_suites
from llmb_tui.errors import LlmbError
from llmb_tui.launch.prepared import PreparedRun
from llmb_tui.launch.run import Run
from llmb_tui.launch.submit import NotSubmittedError, withdraw
from llmb_tui.plan.selection import Selection
from llmb_tui.preflight.report import Check
from llmb_tui.request import RunRequest
from llmb_tui.suites.ready_made import ready_made
from llmb_tui.suites.runner import SuiteLockedError
from llmb_tui.suites.suite import Suite, make_suite
from llmb_tui.suites.suite_plan import SuiteNotReadyError
from llmb_tui.suites.suites import SuiteChangedError
from tests.kit.runs import CATALOG, NEMOTRON
from tests.suites.suite_stage import Killed, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def suite_of(number: int = 4, selection: Selection = NEMOTRON, **more: Any) -> Suite:
    return make_suite("mine", "eos", [(selection, "direct")] * number, **more)


def once_each(stage: Stage, suite: Suite) -> bool:
    """True if every row has its run, and every run one job."""
    return [run_id for run_id, _ in stage.jobs] == list(stage.suites.load(suite.id).run_ids)


def test_each_row_is_sent_once_and_in_order(stage: Stage) -> None:
    suite = stage.suites.keep(suite_of())
    progress = stage.go(suite)
    assert once_each(stage, suite)
    assert progress.count("not sent", "unknown") == 0
    stage.go(suite)
    assert once_each(stage, suite)


def test_another_program_continues_after_a_kill_at_any_point(tmp_path: Path) -> None:
    for kill_at in count(1):
        stage = Stage(tmp_path / str(kill_at), kill_at=kill_at)
        suite = stage.suites.keep(suite_of(3))
        try:
            stage.go(suite)
        except Killed:
            stage.go(suite)
            assert once_each(stage, suite), kill_at
        else:
            break
    assert kill_at > 3 * 4


def test_no_more_runs_than_the_limit_are_active_at_once(stage: Stage) -> None:
    stage.crowd = 2
    suite = stage.suites.keep(suite_of(7, at_most=2))
    stage.go(suite)
    assert once_each(stage, suite)
    assert stage.most_going == 2


def test_after_the_limit_of_failures_nothing_more_is_submitted(stage: Stage) -> None:
    stage.ends = lambda _: "FAILED"
    progress = stage.go(stage.suites.keep(suite_of(8, at_most=1, stop_after=2)))
    assert (len(stage.jobs), progress.stopped, progress.over) == (2, True, True)


def test_an_unknown_submission_is_resolved_and_not_repeated(stage: Stage) -> None:
    stage.outcomes[2] = "unknown"
    suite = stage.suites.keep(suite_of())
    progress = stage.go(suite)
    assert once_each(stage, suite)
    assert progress.count("unknown") == 0


def test_a_run_that_never_reached_the_cluster_is_submitted_under_another_id(stage: Stage) -> None:
    stage.outcomes[2], stage.settles_as = "unknown", "withdrawn"
    suite = stage.suites.keep(suite_of())
    stage.go(suite)
    assert len(stage.jobs) == 4
    assert {run_id for run_id, _ in stage.jobs} == set(stage.suites.load(suite.id).run_ids) != set(suite.run_ids)
    assert any("never reached the cluster" in line for line in stage.messages)


def test_a_submission_is_retried_if_the_connection_broke_before_it(stage: Stage) -> None:
    def broken() -> NotSubmittedError:
        error = NotSubmittedError(DisconnectedError("The line broke."))
        error.__cause__ = DisconnectedError("The line broke.")
        return error

    stage.outcomes[2] = broken()
    suite = stage.suites.keep(suite_of())
    stage.go(suite)
    assert once_each(stage, suite)


def test_another_error_ends_the_program_and_leaves_the_rest_to_the_next(stage: Stage) -> None:
    stage.outcomes[3] = LlmbError("The disk is full.")
    suite = stage.suites.keep(suite_of())
    with pytest.raises(LlmbError, match="disk is full"):
        stage.go(suite)
    assert len(stage.jobs) == 2
    stage.go(suite)
    assert once_each(stage, suite)


def test_one_rejected_row_does_not_delay_the_others_and_is_submitted_later(stage: Stage) -> None:
    stage.outcomes[2] = "refused"
    suite = stage.suites.keep(suite_of())
    progress = stage.go(suite)
    assert (len(stage.jobs), progress.count("refused"), progress.unfinished) == (3, 1, True)
    assert stage.suites.keep(suite_of()).id == suite.id
    assert stage.go(suite).count("refused") == 0
    assert {run_id for run_id, _ in stage.jobs} == set(stage.suites.load(suite.id).run_ids)


def test_consecutive_rejections_end_the_submission(stage: Stage) -> None:
    prepare = stage.prepare

    def refused(request: RunRequest, run_id: str) -> PreparedRun:
        stage.outcomes[1] = "refused"
        return prepare(request, run_id)

    stage.prepare = refused  # type: ignore[method-assign]
    with pytest.raises(LlmbError, match="refused"):
        stage.go(stage.suites.keep(suite_of(9)))
    assert (len(stage.jobs), len(stage.runs.all())) == (0, 3)


@pytest.mark.parametrize(
    ("conduct", "waits"),
    [
        ({"chain": True}, ["", "afterany:100", "afterany:101", "afterany:102"]),
        ({"chain": True, "stop_after": 1}, ["", "afterok:100", "afterok:101", "afterok:102"]),
        ({"chain": True, "at_most": 2}, ["", "", "afterany:100", "afterany:101"]),
    ],
)
def test_a_chain_is_slurms(stage: Stage, conduct: dict[str, Any], waits: list[str]) -> None:
    stage.ends = lambda _: "RUNNING"
    stage.go(stage.suites.keep(suite_of(4, **conduct)))
    assert [dependency for _, dependency in stage.jobs] == waits


@pytest.mark.parametrize(
    ("conduct", "waits"),
    [
        ({}, ["", "afterany:100", "afterany:101", "afterany:102"]),
        ({"at_most": 2}, ["", "", "afterany:101", "afterany:100"]),
    ],
)
def test_a_row_of_a_chain_submitted_later_waits_for_the_last_job(
    stage: Stage, conduct: dict[str, Any], waits: list[str]
) -> None:
    """The second and the third of four rows are rejected at first."""
    stage.ends = lambda _: "RUNNING"
    stage.outcomes[2] = "refused"
    suite = stage.suites.keep(suite_of(4, chain=True, **conduct))
    prepare = stage.prepare

    def refused(request: RunRequest, run_id: str) -> PreparedRun:
        if len(stage.jobs) == 1 and run_id == suite.run_ids[2]:
            stage.outcomes[2] = "refused"
        return prepare(request, run_id)

    stage.prepare = refused  # type: ignore[method-assign]
    stage.go(suite)
    assert len(stage.jobs) == 2
    stage.go(suite)
    assert [dependency for _, dependency in stage.jobs] == waits


def test_a_chain_continues_with_the_confirmed_dependency(tmp_path: Path) -> None:
    for kill_at in range(1, 13):
        stage = Stage(tmp_path / str(kill_at), kill_at=kill_at)
        stage.ends = lambda _: "RUNNING"
        suite = stage.suites.keep(suite_of(3, chain=True))
        with contextlib.suppress(Killed):
            stage.go(suite)
        stage.go(suite)
        assert once_each(stage, suite)
        assert [dependency for _, dependency in stage.jobs] == ["", "afterany:100", "afterany:101"]


def test_a_cancel_by_another_program_is_seen_before_the_next_row(stage: Stage) -> None:
    suite = stage.suites.keep(suite_of())

    sent = stage.submit

    def submit(prepared: PreparedRun, evidence: object) -> Run:
        stage.suites.change(suite.id, lambda one: replace(one, cancelled=True))
        return sent(prepared, evidence)

    stage.submit = submit  # type: ignore[method-assign]
    progress = stage.go(suite)
    assert (len(stage.jobs), progress.stopped) == (1, True)


def test_a_cancel_ends_active_and_remaining_rows(stage: Stage) -> None:
    stage.ends = lambda _: "RUNNING"
    suite = stage.suites.keep(suite_of(3, at_most=1))
    stop = threading.Event()
    sent = stage.submit

    def submit(prepared: PreparedRun, evidence: object) -> Run:
        stop.set()
        return sent(prepared, evidence)

    stage.submit = submit  # type: ignore[method-assign]
    stage.go(suite, stop)
    progress, cancelled = stage.runner.cancel(suite, stage.messages.append)
    assert (progress.count("cancelled"), progress.over, progress.unfinished) == (1, True, False)
    assert cancelled == suite.run_ids[:1]
    assert stage.go(suite).over
    assert len(stage.jobs) == 1


def test_a_lost_cancel_answer_does_not_delay_the_other_cancels(stage: Stage) -> None:
    stage.ends = lambda _: "RUNNING"
    suite = stage.suites.keep(suite_of(3))
    stage.go(suite)
    cancel = stage.cancel

    def lost(run: Run, prompter: object = None) -> tuple[str, ...]:
        if run.id == suite.run_ids[0]:
            raise CancelUnconfirmedError("Slurm", "100", DisconnectedError("The line broke."))
        return cancel(run, prompter)

    stage.cancel = lost  # type: ignore[method-assign]
    with pytest.raises(CancelUnconfirmedError):
        stage.runner.cancel(suite, stage.messages.append)
    assert [stage.runs.load(run_id).job_state for run_id in suite.run_ids] == ["RUNNING", "CANCELLED", "CANCELLED"]


def damage(stage: Stage, run_id: str) -> None:
    (stage.runs.folder(run_id) / "run.json").write_text("{")


@pytest.mark.parametrize("conduct", [{}, {"at_most": 1}, {"at_most": 2}, {"chain": True}])
def test_a_run_that_cannot_be_read_is_unknown_and_not_sent_again(stage: Stage, conduct: dict[str, Any]) -> None:
    suite = stage.suites.keep(suite_of(4, **conduct))
    stage.outcomes[3] = LlmbError("The disk is full.")
    with pytest.raises(LlmbError, match="disk is full"):
        stage.go(suite)
    damage(stage, suite.run_ids[0])
    progress = stage.go(suite)
    assert once_each(stage, suite)
    assert (progress.rows[0].standing, progress.rows[0].state) == ("unknown", "unknown")
    assert (progress.count("not sent"), progress.over) == (0, False)
    assert any("It is not submitted again." in words for words in stage.messages)
    assert suite.run_ids[0] in held_by_suites(stage.suites)


def test_a_run_that_cannot_be_read_holds_up_no_cancel_of_the_others(stage: Stage) -> None:
    stage.ends = lambda _: "RUNNING"
    suite = stage.suites.keep(suite_of(3))
    stage.go(suite)
    damage(stage, suite.run_ids[0])
    with pytest.raises(LlmbError, match=r"run\.json") as raised:
        stage.runner.cancel(suite, stage.messages.append)
    assert raised.value.extra_fields == {"id": suite.id, "cancelled": list(suite.run_ids[1:])}
    assert {stage.runs.load(run_id).job_state for run_id in suite.run_ids[1:]} == {"CANCELLED"}
    assert stage.suites.load(suite.id).cancelled


def test_a_tune_selects_the_best_of_the_readable_runs(stage: Stage) -> None:
    suite = tune(stage)
    without_logs(stage, suite, lambda _: None)
    stage.outcomes[3] = LlmbError("The disk is full.")
    with pytest.raises(LlmbError, match="disk is full"):
        stage.go(suite)
    damage(stage, suite.run_ids[1])
    progress = stage.go(suite)
    last = stage.suites.load(suite.id).rows[-1]
    assert last.selection.overrides == suite.rows[2].selection.overrides
    assert (progress.count("not sent"), progress.rows[1].standing) == (0, "unknown")


def test_a_tune_whose_last_run_cannot_be_read_keeps_its_layout(stage: Stage) -> None:
    suite = tune(stage)
    without_logs(stage, suite, lambda _: None)
    stage.go(suite)
    before = stage.suites.load(suite.id)
    suite_row = replace(before.rows[-1], selection=before.rows[0].selection)
    stage.suites.save(before.with_row(suite_row))
    damage(stage, suite_row.run_id)
    stage.go(suite)
    assert stage.suites.load(suite.id).rows[-1] == suite_row
    assert once_each(stage, suite)


def test_a_cancel_names_only_the_runs_that_it_cancelled(stage: Stage) -> None:
    stage.ends = lambda _: "RUNNING"
    suite = stage.suites.keep(suite_of(3))
    stage.go(suite)
    over, *active = suite.run_ids
    cancel = stage.cancel

    def cancel_active(run: Run, prompter: object = None) -> tuple[str, ...]:
        if run.id != over:
            return cancel(run, prompter)
        stage.runs.save(replace(run, job_state="COMPLETED"))
        return ()

    stage.cancel = cancel_active  # type: ignore[method-assign]
    _, cancelled = stage.runner.cancel(suite, stage.messages.append)
    assert cancelled == tuple(active)
    key, text, _ = (row.key for row in suite.rows)
    assert f"{key}: Job 100 was over already: nothing was cancelled." in stage.messages
    assert f"{text}: Slurm was asked to cancel job 101." in stage.messages


def test_a_cancel_fails_for_a_run_that_may_still_get_a_job(stage: Stage) -> None:
    stage.ends = lambda _: "RUNNING"
    suite = stage.suites.keep(suite_of(3))
    stage.go(suite)
    first, *others = suite.run_ids
    stage.runs.save(replace(stage.runs.load(first), submission="unknown", job_ids=(), job_state=None))
    stage.settle = lambda run_id, prompter=None: stage.runs.load(run_id)  # type: ignore[method-assign]  # noqa: ARG005
    with pytest.raises(LlmbError, match="unknown whether") as raised:
        stage.runner.cancel(suite, stage.messages.append)
    assert (raised.value.exit_code, suite.rows[0].key in raised.value.what) == (2, True)
    assert f"llmb-tui suite cancel {suite.id}" in raised.value.fix
    assert {stage.runs.load(run_id).job_state for run_id in others} == {"CANCELLED"}
    assert stage.suites.load(suite.id).cancelled


def test_a_withdrawn_run_is_not_submitted_again(stage: Stage) -> None:
    stage.outcomes[2] = LlmbError("The disk is full.")
    suite = stage.suites.keep(suite_of())
    with pytest.raises(LlmbError, match="disk is full"):
        stage.go(suite)
    intended = next(run for run in stage.runs.all() if run.submission == "intended")
    stage.runs.save(
        replace(intended, sent_at=2.0)
    )  # its submission had started, and certainly did not reach the cluster
    withdraw(stage.runs, stage.journal, intended)
    progress = stage.go(suite)
    assert (len(stage.jobs), progress.count("cancelled")) == (3, 1)
    assert stage.suites.load(suite.id).run_ids == suite.run_ids


def test_a_suite_locked_by_another_program_is_not_submitted(stage: Stage) -> None:
    suite = stage.suites.keep(suite_of())
    with stage.suites.lock(suite.id), pytest.raises(SuiteLockedError):
        stage.go(suite)
    assert not stage.jobs


def test_nothing_is_submitted_if_a_row_cannot_start(stage: Stage) -> None:
    stage.failed_checks = (Check("nodes", "Nodes", "failed", "4", "8", "Choose fewer."),)
    suite = stage.suites.keep(suite_of())
    with pytest.raises(SuiteNotReadyError) as raised:
        stage.go(suite)
    assert raised.value.exit_code == 1
    assert "found 4, needed 8" in raised.value.why
    assert not stage.runs.all()
    stage.failed_checks = ()
    stage.go(suite)
    assert once_each(stage, suite)


def test_the_same_content_continues_and_another_is_refused(stage: Stage) -> None:
    suite = stage.suites.keep(suite_of())
    assert stage.suites.keep(suite_of()) == suite
    with pytest.raises(SuiteChangedError) as raised:
        stage.suites.keep(suite_of(5))
    assert suite.id in raised.value.fix
    other = stage.suites.keep(suite_of(5), new=True)
    assert {suite.id, other.id} == {one.id for one in stage.suites.all()}
    stage.go(suite)
    stage.go(other)
    stage.ends = lambda _: "COMPLETED"
    for run in stage.runs.all():
        stage.runs.save(replace(run, job_state="COMPLETED", log_read=True))
    assert stage.suites.keep(suite_of()).id not in (suite.id, other.id)


def test_run_ids_accepts_the_id_of_a_suite_or_of_a_run(stage: Stage) -> None:
    suite = stage.suites.keep(suite_of(2))
    assert stage.suites.run_ids(suite.id) == ()
    stage.go(suite)
    assert stage.suites.run_ids(suite.id) == suite.run_ids
    assert stage.suites.run_ids(suite.run_ids[0]) == suite.run_ids[:1]
    for name in ("s000000000000abcd", "nothing", "../..", ""):
        with pytest.raises(LlmbError) as raised:
            stage.suites.run_ids(name)
        assert raised.value.exit_code == 1


def test_a_watcher_reads_the_log_of_a_run_that_replaced_another(stage: Stage) -> None:
    suite = stage.suites.keep(suite_of(2))
    stage.go(suite)
    fresh = stage.suites.with_new_run(suite.id, suite.rows[0])
    run = stage.runs.load(suite.run_ids[0])
    stage.runs.save(replace(run, id=fresh.run_ids[0], job_state="COMPLETED", log_read=False))
    assert stage.runner.read_logs(suite.id).note == ""
    assert stage.runs.load(fresh.run_ids[0]).log_read


def ended_unread(stage: Stage, number: int = 3) -> Suite:
    """A suite whose jobs completed, and whose logs were not copied."""
    stage.ends = lambda _: "RUNNING"
    suite = stage.suites.keep(suite_of(number))
    stage.go(suite)
    for run_id in suite.run_ids:
        stage.runs.save(replace(stage.runs.load(run_id), job_state="COMPLETED", log_read=False))
    return suite


@pytest.mark.parametrize(
    ("link", "asked", "read"), [("live", [1, 2, 3], [False, True, True]), ("lost", [1], [False] * 3)]
)
def test_an_unreadable_log_delays_no_other(stage: Stage, link: str, asked: list[int], read: list[bool]) -> None:
    suite = ended_unread(stage)
    monitor, seen = stage.monitor, []

    def refused(run_id: str) -> SimpleNamespace:
        seen.append(suite.run_ids.index(run_id) + 1)
        return stage.seen(link, "Permission denied.", unread=True) if len(seen) == 1 else monitor(run_id)

    stage.monitor = refused  # type: ignore[method-assign]
    assert stage.runner.read_logs(suite.id).note == "Permission denied."
    assert seen == asked
    assert [stage.runs.load(run_id).log_read for run_id in suite.run_ids] == read


def test_a_damaged_suite_is_reported_and_not_ignored(stage: Stage, tmp_path: Path) -> None:
    suite = stage.suites.keep(suite_of())
    file = tmp_path / "state" / "suites" / suite.id / "suite.json"
    file.write_text(file.read_text().replace(suite.id, "s000000000000abcd"))
    with pytest.raises(LlmbError, match="is not valid"):
        stage.suites.keep(suite_of())


def tune(stage: Stage) -> Suite:
    """Three layouts to try, each faster than the last, and then the full run."""
    name, selections = ready_made("tune", CATALOG, NEMOTRON, count=3)
    return stage.suites.keep(make_suite(name, "eos", [(selection, "direct") for selection in selections], kind="tune"))


def write_log(stage: Stage, suite: Suite, run_id: str) -> None:
    seconds, steps = 2.0 - suite.run_ids.index(run_id) / 10, stage.runs.load(run_id).plan.steps
    line = "Training epoch 0, iteration {0}/{1} | global_step: {0} | train_step_timing in s: {2} | loss: 1\n"
    log = "".join(line.format(step, steps - 1, seconds) for step in range(steps))
    (stage.runs.folder(run_id) / "log").write_text(log)


def without_logs(stage: Stage, suite: Suite, unreadable: Callable[[str], SimpleNamespace | None]) -> None:
    """Remove the local logs; a request copies each log, unless `unreadable` has another answer."""
    stage.copied = False

    def monitor(run_id: str) -> SimpleNamespace:
        if (answer := unreadable(run_id)) is not None:
            return answer
        write_log(stage, suite, run_id)
        stage.runs.save_log_read(run_id)
        return stage.seen()

    stage.monitor = monitor  # type: ignore[method-assign]


def test_a_tune_ends_with_the_full_run_of_the_fastest(stage: Stage) -> None:
    suite = tune(stage)

    def ends(run: Run) -> str:
        write_log(stage, suite, run.id)
        return "COMPLETED"

    stage.ends = ends
    stage.go(suite)
    last = stage.suites.load(suite.id).rows[-1]
    assert last.selection.overrides == suite.rows[2].selection.overrides != suite.rows[0].selection.overrides
    assert stage.runs.load(last.run_id).plan.selection == last.selection
    assert len(stage.jobs) == 4


@pytest.mark.parametrize("link", ["lost", "live"])
def test_a_tune_waits_for_the_logs_of_its_short_runs(stage: Stage, link: str) -> None:
    suite = tune(stage)
    refusals = dict.fromkeys(suite.run_ids[1:3], 4)

    def unreadable(run_id: str) -> SimpleNamespace | None:
        refusals[run_id] = refusals.get(run_id, 0) - 1
        return stage.seen(link, "The line broke.", unread=True) if refusals[run_id] >= 0 else None

    without_logs(stage, suite, unreadable)
    progress = stage.go(suite)
    last = stage.suites.load(suite.id).rows[-1]
    assert last.selection.overrides == suite.rows[2].selection.overrides != suite.rows[0].selection.overrides
    assert (len(stage.jobs), progress.count("not sent")) == (4, 0)
    assert stage.messages.count("eos: The line broke.") == 1


def test_a_tune_continues_without_a_permanently_missing_log(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmb_tui.suites.runner.PATIENCE_S", 0.05)
    suite = tune(stage)
    gone = stage.seen("live", "The log is gone.", unread=True)
    without_logs(stage, suite, lambda run_id: gone if run_id == suite.run_ids[2] else None)
    stage.go(suite)
    assert stage.suites.load(suite.id).rows[-1].selection.overrides == suite.rows[1].selection.overrides
    (message,) = (words for words in stage.messages if "gave up waiting" in words)
    assert message.startswith(f"{suite.rows[2].key}: ")


def test_a_tune_waits_for_a_log_that_is_on_its_way(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmb_tui.suites.runner.PATIENCE_S", 0.05)
    suite, looks = tune(stage), count(1)

    def unreadable(run_id: str) -> SimpleNamespace | None:
        if run_id != suite.run_ids[2] or (size := next(looks)) >= 20:
            return None
        (stage.runs.folder(run_id) / "log").write_text("Downloading.\n" * size)
        return stage.seen("live", "The log is not completely copied yet.", unread=True)

    without_logs(stage, suite, unreadable)
    stage.go(suite)
    assert stage.suites.load(suite.id).rows[-1].selection.overrides == suite.rows[2].selection.overrides


def test_a_tune_without_any_log_ends_and_can_be_continued(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = tune(stage)
    with monkeypatch.context() as patch:
        patch.setattr("llmb_tui.suites.runner.PATIENCE_S", 0.05)
        without_logs(stage, suite, lambda _: stage.seen("live", "The log is gone.", unread=True))
        progress = stage.go(suite)
    assert (progress.stopped, len(stage.jobs)) == (True, 3)
    assert stage.suites.progress(suite).unfinished
    without_logs(stage, suite, lambda _: None)
    assert stage.go(suite).count("not sent") == 0
    assert stage.suites.load(suite.id).rows[-1].selection.overrides == suite.rows[2].selection.overrides
