"""Exit codes of verbs that report how runs ended: 4 for a failed run, 3 for a FAIL, 2 for a failed cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from llmb_tui.cli import main
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.login_profile import NO_SSH_CONFIG
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.language.states import Submission, state_label
from llmb_tui.launch.run import Cancel, CancelOutcome, Run
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.runs_feed import RunsFeed
from llmb_tui.watch.state import RunState
from tests.kit.runs import make_run

# Nothing listens on its port.
EOS = SlurmProfile(
    "eos", "127.0.0.1", "acct", "batch", "/lustre",
    port=9, known_hosts="/nonexistent", user="me", ssh_config=NO_SSH_CONFIG,
)  # fmt: skip
STEP = "Training epoch 0, iteration {0}/49 | global_step: {0} | train_step_timing in s: {1} | consumed_samples: {0}\n"


class IdleMonitor:
    """Monitor of a run without new data, over a link in the given state."""

    def __init__(self, feed: RunsFeed, run_id: str, link: str) -> None:
        self._state = replace(feed.record(run_id).state, link=link)  # type: ignore[arg-type] # one of them

    def watch(self, *_: object) -> RunState:
        return self._state

    once = watch


class Machine:
    """Runs stored on this machine."""

    def __init__(self, services: Services) -> None:
        self.services = services

    def remember(self, run: Run, steps: int = 0, seconds: float = 1.98) -> str:
        self.services.runs.save(run)
        if steps:
            text = "".join(STEP.format(step, seconds) for step in range(steps))
            (self.services.runs.folder(run.id) / "log").write_text(text)
        return run.id


@pytest.fixture
def machine(user_places: UserPaths) -> Machine:
    services = Services(user_places)
    services.clusters.save(EOS)
    return Machine(services)


@pytest.fixture
def _idle_monitor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunsFeed, "monitor", lambda feed, run_id: IdleMonitor(feed, run_id, "live"))


@pytest.mark.usefixtures("_idle_monitor")
@pytest.mark.parametrize(
    ("ended", "word", "code"),
    [
        (("COMPLETED", 50, 1.98), "done", 0),
        (("COMPLETED", 50, 9.9), "done", 3),
        (("FAILED", 50, 1.98), "done", 0),
        (("FAILED", 10, 1.98), "failed", 4),
        (("OUT_OF_MEMORY", 10, 9.9), "failed", 4),
        (("TIMEOUT", 10, 1.98), "timeout", 4),
        (("NODE_FAIL", 0, 1.98), "node_fail", 4),
        (("CANCELLED", 10, 1.98), "cancelled", 4),
    ],
)
def test_the_exit_code_of_a_finished_run_is_that_of_its_end(
    machine: Machine, ended: tuple[str, int, float], word: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    job_state, steps, seconds = ended
    run_id = machine.remember(make_run(job_state=job_state), steps, seconds)
    for verb in (["results", run_id], ["watch", run_id], ["watch", run_id, "--once"]):
        assert main([*verb, "--json"]) == code
        printed = capsys.readouterr().out
        assert f'"state": "{word}"' in printed or (verb == ["watch", run_id] and not printed)


@pytest.mark.usefixtures("_idle_monitor")
def test_an_incomplete_log_is_not_a_success(machine: Machine) -> None:
    """The cluster answers, but the log cannot be read."""
    run_id = machine.remember(make_run(job_state="COMPLETED", log_read=False), 30)
    for verb in (["results", run_id], ["watch", run_id, "--once"], ["watch", run_id]):
        assert main(verb) == 2, verb


@pytest.mark.usefixtures("_idle_monitor")
@pytest.mark.parametrize("log_read", [True, None])
def test_an_unreadable_copy_is_not_a_run_without_steps(
    machine: Machine, log_read: bool | None, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = machine.remember(make_run(job_state="COMPLETED", log_read=log_read))
    (machine.services.runs.folder(run_id) / "log").mkdir()
    for verb in (["watch", run_id, "--once"], ["watch", run_id], ["logs", run_id]):
        assert main(verb) == 2, verb
        printed = "".join(capsys.readouterr())
        assert "log cannot be read" in printed
        assert "before its first step" not in printed


def test_a_requeued_job_is_cancelled_after_a_confirmation(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    questions: list[str] = []

    def agree(question: str) -> bool:
        questions.append(question)
        return True

    def monitor(feed: RunsFeed, run_id: str) -> IdleMonitor:
        feed.runs.save(replace(feed.runs.load(run_id), job_state="RUNNING"))
        return IdleMonitor(feed, run_id, "live")

    monkeypatch.setattr(RunsFeed, "monitor", monitor)
    monkeypatch.setattr(RunsFeed, "settle", lambda feed, run_id, *_: feed.runs.load(run_id))
    monkeypatch.setattr(RunsFeed, "cancel", lambda _, run, __: run.job_ids)
    monkeypatch.setattr("llmb_tui.cli.runs.has_terminal", lambda: True)
    monkeypatch.setattr("llmb_tui.cli.runs.confirm", agree)
    for job_state, cancelled in (("NODE_FAIL", ["48123"]), ("COMPLETED", [])):
        run_id = machine.remember(make_run(job_state=job_state))
        assert main(["cancel", run_id, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["cancelled"] == cancelled
    assert questions == ["Cancel job 48123 on eos?"]


@pytest.mark.parametrize(("submission", "code"), [("refused", 4), ("withdrawn", 4), ("intended", 0), ("unknown", 2)])
def test_a_run_without_a_job(
    machine: Machine, submission: Submission, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = machine.remember(make_run(submission=submission, job_ids=(), job_state=None, note="Because."))
    for verb in ("results {}", "watch {} --once", "logs {}" if code in (0, 2) else "watch {}"):
        capsys.readouterr()
        assert main(verb.format(run_id).split()) == code
        printed = capsys.readouterr()
        assert ("it is not known yet" in printed.err) == (submission == "unknown")
    assert code != 4 or printed.out.splitlines()[1:] == [f"  {state_label(submission).word}", "verdict: none. Because."]


@pytest.mark.usefixtures("_idle_monitor")
def test_an_active_run_fails_watch_only_if_it_can_no_longer_be_followed(machine: Machine) -> None:
    run_id = machine.remember(make_run(), 10)
    assert main(["results", run_id]) == main(["watch", run_id, "--once"]) == 0
    assert main(["watch", run_id]) == 2, "the watch ended before the run: the cluster refused the login"


def test_a_cluster_that_does_not_answer_is_a_failure(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunsFeed, "monitor", lambda feed, run_id: IdleMonitor(feed, run_id, "lost"))
    run_id = machine.remember(make_run(), 10)
    assert main(["watch", run_id, "--once"]) == 2


@pytest.mark.usefixtures("_idle_monitor")
@pytest.mark.parametrize("outcome", ["asked for", "carried out", "not carried out"])
def test_a_cancel_without_an_answer_is_reported(
    machine: Machine, outcome: CancelOutcome, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(job_state="CANCELLED" if outcome == "carried out" else "RUNNING")
    run_id = machine.remember(replace(run, cancel=Cancel("48123", 0.0, outcome)), 10)
    note = machine.services.runs.load(run_id).cancel_note
    for words in (["watch", run_id, "--once"], ["results", run_id], ["jobs"]):
        main([*words, "--json"])
        printed = capsys.readouterr()
        assert f'"cancel": "{outcome}"' in printed.out
        assert (note in printed.err) == (words != ["jobs"] or outcome != "carried out"), "lists name the open run"


def test_watch_prints_the_outcome_of_a_cancel(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another process requests the cancel during the watch, and it is carried out."""
    run = make_run()
    run_id = machine.remember(run, 10)
    runs = machine.services.runs

    class Cancelled:
        def watch(self, publish: Callable[[RunState], None], *_: object) -> RunState:
            going = machine.services.feed.record(run_id).state
            publish(going)
            runs.save_cancel(run_id, Cancel("48123", 0.0))
            publish(going)
            ended = replace(going, stage="cancelled")
            publish(ended)
            runs.save_states(runs.load(run_id), [Job("48123", "", "CANCELLED")])
            return ended

    monkeypatch.setattr(RunsFeed, "monitor", lambda *_: Cancelled())
    assert main(["watch", run_id, "--json"]) == 4
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["state"], one["cancel"]) for one in printed] == [
        ("measuring", None),
        ("measuring", "asked for"),
        ("cancelled", "asked for"),
        ("cancelled", "carried out"),
    ]


def test_several_runs_exit_with_the_first_code_that_applies(machine: Machine) -> None:
    well = machine.remember(make_run("well", job_state="COMPLETED"), 50)
    slow = machine.remember(make_run("slow", job_state="COMPLETED"), 50, 9.9)
    lost = machine.remember(make_run("lost", job_state="NODE_FAIL"), 10)
    assert main(["results", well]) == 0
    assert main(["results", well, slow]) == 3
    assert main(["results", slow, lost, well]) == 4


@pytest.mark.usefixtures("_idle_monitor")
@pytest.mark.parametrize(
    ("job_state", "word"), [(None, "submitted"), ("PENDING", "queued"), ("CONFIGURING", "queued"), ("RUNNING", "image")]
)
def test_a_run_without_a_state_is_submitted(
    machine: Machine, job_state: str | None, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.remember(make_run(job_state=job_state))
    assert main(["jobs", "--json"]) == 2, "eos cannot be reached"
    assert f'"state": "{word}"' in capsys.readouterr().out


def test_results_read_the_rest_of_a_log(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run was submitted and never watched; `jobs` found that it has finished."""
    run_id = machine.remember(make_run(job_state="COMPLETED", log_read=False))
    assert main(["results", run_id, run_id, "--json"]) == 2
    printed = capsys.readouterr()
    assert "has not been read" in printed.out
    assert "before its first step" not in printed.out
    assert printed.err.count("eos: ") == 1, "a cluster that does not answer is asked once"

    def read(feed: RunsFeed, run_id: str) -> IdleMonitor:
        machine.remember(feed.runs.load(run_id), 50)
        return IdleMonitor(feed, run_id, "live")

    monkeypatch.setattr(RunsFeed, "monitor", read)
    assert main(["results", run_id, "--json"]) == 0
    assert "PASS" in capsys.readouterr().out


def test_a_complete_log_is_not_read_again(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    for run in (make_run("a", job_state="FAILED", log_read=True), make_run("b", job_state="FAILED")):
        run_id = machine.remember(run, 0 if run.log_read else 3)
        assert main(["results", run_id, "--json"]) == 4
        assert "the run ended" in capsys.readouterr().out
