"""The run screen: it shows published states, and the watch ends when it is closed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from textual.app import App

from llmb_tui.cluster.cluster import CancelUnconfirmedError
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.errors import LlmbError
from llmb_tui.launch.delivery import OnStatus
from llmb_tui.launch.policy import Policy
from llmb_tui.launch.run import Cancel, Run
from llmb_tui.preflight.report import Check, Preflight
from llmb_tui.request import RunRequest
from llmb_tui.ui.dialogs import Failure
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.widgets.log_pane import LogPane
from llmb_tui.ui.widgets.log_view import LogView
from llmb_tui.ui.widgets.run_header import RunHeader, StageLine
from llmb_tui.ui.widgets.run_parts import VerdictCard
from llmb_tui.watch.state import RunState
from tests.kit.pilot import SIZE, actions, on_screen, on_top, text_of, until
from tests.kit.runs import make_run
from tests.ui.run.run_states import STATES, log_text

OnCheck = Callable[[Preflight], None]
OpenRun = Callable[..., tuple[App[None], Any]]


async def test_a_published_state_is_shown_everywhere(open_run: OpenRun) -> None:
    app, _ = open_run(STATES["measuring"], log=log_text(31))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "● live" in text_of(app, RunHeader), "the header")
        assert "nemotron4 15b fp8 · 64 × H100 · eos" in text_of(app, RunHeader)
        assert "step 31 of 50" in text_of(app, StageLine)
        assert "98.5 % of published" in text_of(app, VerdictCard)
        view = app.screen.query_one(LogView)
        await until(pilot, lambda: view.source.lines == 42, "the log")
        assert "iteration 30/49" in view.render_line(view.size.height - 1).text


async def test_the_notice_of_the_cluster_is_shown(open_run: OpenRun) -> None:
    app, services = open_run(STATES["measuring"])
    services.clusters.notice = "simulated, clock x30"
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "simulated, clock x30" in text_of(app, RunHeader), "the notice")


async def test_a_run_of_a_removed_cluster_is_shown_from_its_local_log(
    open_run: OpenRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgotten(_run_id: str) -> None:
        raise LlmbError("No saved cluster is named eos.")

    app, services = open_run(log=log_text(31))
    monkeypatch.setattr(services.feed, "monitor", forgotten)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "No saved cluster" in text_of(app, "#notice"), "the reason")
        await until(pilot, lambda: "step 31 of 50" in text_of(app, StageLine), "the steps of the local log")


async def test_only_the_newest_state_counts(open_run: OpenRun) -> None:
    app, _ = open_run(STATES["queued"], STATES["measuring"], STATES["lost"])
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "✗ link lost" in text_of(app, RunHeader), "the last state")


async def test_a_restored_link_is_shown(open_run: OpenRun) -> None:
    app, _ = open_run(STATES["lost"])
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "✗ link lost" in text_of(app, RunHeader), "lost")
        app.screen.post_message(RunScreen.StateChanged(STATES["measuring"]))
        await until(pilot, lambda: "● live" in text_of(app, RunHeader), "live")


async def test_a_hung_controller_is_distinguished_from_a_lost_link(open_run: OpenRun) -> None:
    app, _ = open_run(replace(STATES["measuring"], link_note="`squeue` failed on the cluster. [/x] timed out."))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "[/x] timed out" in text_of(app, "#notice"), "Slurm's trouble")
        assert "● live" in text_of(app, RunHeader)


async def test_slurms_texts_are_shown_without_markup_or_control_characters(open_run: OpenRun) -> None:
    nasty = "[rank0] [/x] \x1b[31mred\x1b[0m \x1b]52;c;AAAA\x07 \x9b2J"
    waiting = STATES["queued"]
    assert waiting.job is not None
    app, _ = open_run(replace(waiting, job=replace(waiting.job, name=nasty, reason=nasty), link_note=nasty))
    async with app.run_test(size=(200, 60)) as pilot:
        await until(pilot, lambda: "[rank0] [/x] red" in text_of(app, RunHeader), "the reason")
        assert "[rank0] [/x] red" in text_of(app, "#notice")
        shown = text_of(app, RunHeader) + text_of(app, "#notice")
        assert not {character for character in shown if ord(character) < 32 or 127 <= ord(character) < 160} - {"\n"}


async def test_after_a_failed_login_the_user_can_try_again(open_run: OpenRun) -> None:
    shut_out = replace(STATES["measuring"], link="closed", link_note="eos-login did not accept the key.")
    app, services = open_run(shut_out)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "did not accept the key" in text_of(app, "#notice"), "the reason")
        services.standing.states = (STATES["measuring"],)
        await pilot.press("t")
        await until(pilot, lambda: "● live" in text_of(app, RunHeader), "watching again")


@pytest.mark.parametrize("key", ["q", "escape"])
async def test_leaving_stops_the_monitor(key: str, open_run: OpenRun) -> None:
    app, services = open_run(STATES["measuring"])
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "● live" in text_of(app, RunHeader), "the first state")
        await pilot.press(key)
        await until(pilot, lambda: not isinstance(app.screen, RunScreen), "left")
        assert services.standing.stopped.wait(60)


class Deaf:
    """A monitor that is stuck in a command on a dead link and ignores requests to stop."""

    def __init__(self) -> None:
        self.hears = threading.Event()
        self.ended = threading.Event()

    def watch(self, *_: object) -> None:
        self.hears.wait(60)
        self.ended.set()


async def test_quitting_does_not_wait_for_a_dead_link(open_run: OpenRun, monkeypatch: pytest.MonkeyPatch) -> None:
    app, services = open_run()
    deaf = Deaf()
    monkeypatch.setattr(services.feed, "monitor", lambda _run_id: deaf)
    before = set(threading.enumerate())
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "job 48123" in text_of(app, RunHeader), "the run")
    assert not deaf.ended.is_set()
    assert all(thread.daemon for thread in threading.enumerate() if thread not in before)
    deaf.hears.set()


class Failing:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def watch(self, *_: object) -> None:
        raise self._error


@pytest.mark.parametrize(
    "case",
    [
        (
            LlmbError("No route to eos-login.", "[/x] timed out.", "Check the VPN."),
            ("No route", "[/x] timed out", "VPN"),
        ),
        (
            ZeroDivisionError("[/x]"),
            ("BackgroundWatch stopped: internal error.", "ZeroDivisionError, at ", "Try again"),
        ),
    ],
)
async def test_a_monitor_error_is_shown_and_watching_can_be_tried_again(
    case: tuple[Exception, tuple[str, ...]],
    open_run: OpenRun,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app, services = open_run(STATES["measuring"])
    error, words = case
    standing = services.standing
    monkeypatch.setattr(services.feed, "monitor", lambda _run_id: Failing(error))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: text_of(app, "#notice") != "", "the panel")
        for word in words:
            assert word in text_of(app, "#notice")
        assert "Error: [/x]" not in text_of(app, "#notice"), "a value, which may be a secret"
        monkeypatch.setattr(services.feed, "monitor", lambda _run_id: standing)
        await pilot.press("t")
        await until(pilot, lambda: "● live" in text_of(app, RunHeader), "watching again")
        assert text_of(app, "#notice") == ""


async def test_a_missing_run_is_reported(open_run: OpenRun) -> None:
    app, _ = open_run(run=None)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "There is no run k3f9a2" in text_of(app, "#notice"), "the reason")


async def test_a_failed_run_shows_its_reason_and_e_goes_to_the_line(open_run: OpenRun) -> None:
    log = log_text(3) + "[rank3]: torch.OutOfMemoryError: CUDA out of memory.\n" + "after\n" * 50
    app, _ = open_run(STATES["failed"], log=log)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "A GPU ran out of memory." in text_of(app, "#notice"), "the reason")
        assert "Use more GPUs" in text_of(app, "#notice")
        await until(pilot, lambda: app.screen.query_one(LogView).source.lines == 65, "the log")
        await pilot.press("e")
        await until(pilot, lambda: app.screen.query_one(LogView).current_line == 14, "the error's line")


async def test_a_long_log_line_does_not_hide_the_remedy(open_run: OpenRun) -> None:
    """The log line is PyTorch 2.6's error for a GPU that is out of memory."""
    line = (
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU 3 has a total capacity "
        "of 79.11 GiB of which 1.06 GiB is free. Process 123456 has 78.04 GiB memory in use. Of the allocated memory "
        "74.29 GiB is allocated by PyTorch, and 1.42 GiB is reserved by PyTorch but unallocated. If reserved but "
        "unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid "
        "fragmentation.  See documentation for Memory Management  "
        "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
    )
    state = STATES["failed"]
    failure = replace(state.progress.failure, line=line)  # type: ignore[type-var]
    app, _ = open_run(replace(state, progress=replace(state.progress, failure=failure)), log=log_text(3) + line)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "A GPU ran out of memory." in text_of(app, "#notice"), "the reason")
        await pilot.pause()
        for words in ("A GPU ran out of memory.", "Use more GPUs", "e: first error", "Tried to allocate 2.25"):
            assert words in on_screen(app)


async def test_a_live_run_shows_an_error_that_ends_it_before_its_job_has_failed(open_run: OpenRun) -> None:
    state, failure = STATES["measuring"], replace(STATES["failed"].progress.failure, weight=5)  # type: ignore[type-var]
    app, _ = open_run(replace(state, progress=replace(state.progress, failure=failure)), log=log_text(3))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "A GPU ran out of memory." in text_of(app, "#notice"), "the reason")
        assert "The log has an error after its newest step." in text_of(app, "#notice")


async def test_an_unknown_submission_is_explained_and_not_watched(open_run: OpenRun) -> None:
    run = make_run(submission="unknown", note="The connection broke while the submission was on its way.", job_ids=())
    app, _ = open_run(run=run)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "unknown whether" in text_of(app, "#notice"), "the notice")
        assert "The connection broke" in text_of(app, "#notice")
        assert run.job_name in text_of(app, "#notice")
        keys = {active.binding.action for active in app.screen.active_bindings.values()}
        assert "check_submission" in keys
        assert "cancel" not in keys


INTENDED = make_run(submission="intended", job_ids=(), job_state=None, note="The connection to eos broke.")


def submission_keys(app: App[None]) -> dict[str, bool]:
    """The keys that submit, withdraw and cancel, and whether they are enabled."""
    keys = {active.binding.action: active.enabled for active in app.screen.active_bindings.values()}
    return {action: keys[action] for action in ("submit", "withdraw", "cancel") if action in keys}


async def test_a_run_that_is_not_submitted_is_submitted_after_a_confirmation(open_run: OpenRun) -> None:
    sent, released = list[tuple[str, str]](), threading.Event()

    def resume(request: RunRequest, run: Run, _prompter: object, on_check: OnCheck, on_progress: OnStatus) -> Run:
        sent.append((request.profile.name, run.id))
        on_check(Preflight((Check("disk", "Free [disk]", "ok", "", "", ""),)))
        released.wait(60)
        on_progress("launch.sh says: [x]")
        submitted = replace(run, submission="submitted", job_ids=("48123",))
        services.runs.save(submitted)
        return submitted

    app, services = open_run(STATES["queued"], run=INTENDED)
    services.launcher = SimpleNamespace(resume=resume)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "is not submitted" in text_of(app, "#notice"), "the notice")
        assert "The connection to eos broke." in text_of(app, "#notice")
        assert "s: submit as confirmed · w: withdraw" in text_of(app, "#notice")
        assert submission_keys(app) == {"submit": True, "withdraw": True}
        await pilot.press("s")
        await until(pilot, lambda: not isinstance(app.screen, RunScreen), "the question")
        await pilot.press("enter")
        await on_top(pilot, RunScreen)
        assert sent == []
        await pilot.press("s")
        await until(pilot, lambda: not isinstance(app.screen, RunScreen), "the question")
        assert "1.8 GPU-hours" in on_screen(app)
        await pilot.press("y")
        await until(pilot, lambda: "Checking the cluster: Free [disk]." in text_of(app, "#notice"), "the current step")
        assert submission_keys(app) == {"submit": False, "withdraw": False}
        released.set()
        await until(pilot, lambda: "● live" in text_of(app, RunHeader), "the run is watched")
        assert sent == [("eos", "k3f9a2")]
        assert submission_keys(app) == {"cancel": True}


async def test_a_failed_submission_shows_its_reason_and_can_be_withdrawn(open_run: OpenRun) -> None:
    def refuse(*_: object) -> Run:
        raise LlmbError("Nothing was submitted. [/x]", "Why.", "Do this.")

    app, services = open_run(run=INTENDED)
    services.launcher = SimpleNamespace(resume=refuse)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "is not submitted" in text_of(app, "#notice"), "the notice")
        await pilot.press("s")
        await until(pilot, lambda: not isinstance(app.screen, RunScreen), "the question")
        await pilot.press("y")
        await until(pilot, lambda: "Nothing was submitted. [/x]" in text_of(app, "#notice"), "the reason")
        await until(pilot, lambda: submission_keys(app) == {"submit": True, "withdraw": True}, "the keys are back")
        await pilot.press("w")
        await until(pilot, lambda: not isinstance(app.screen, RunScreen), "the question")
        await pilot.press("y")
        await until(pilot, lambda: submission_keys(app) == {}, "the withdrawal")
        assert "never submitted" in text_of(app, "#notice")
    assert services.runs.load("k3f9a2").submission == "withdrawn"


async def test_on_a_read_only_cluster_submit_and_withdraw_are_grey(open_run: OpenRun) -> None:
    app, services = open_run(run=INTENDED)
    services.clusters.observed = True
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: submission_keys(app) == {"submit": False, "withdraw": False}, "the keys are grey")
        assert "read-only" in text_of(app, RunHeader)


async def test_cancel_needs_a_confirmation_and_no_is_the_default(
    open_run: OpenRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled: list[str] = []
    app, services = open_run(STATES["measuring"])
    monkeypatch.setattr(services.feed, "cancel", lambda run, _: (cancelled.append(run.id), *run.job_ids)[1:])  # type: ignore[func-returns-value]
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "● live" in text_of(app, RunHeader), "the first state")
        await pilot.press("c")
        await until(pilot, lambda: not isinstance(app.screen, RunScreen), "the question")
        await pilot.press("enter")
        await on_top(pilot, RunScreen)
        assert cancelled == []
        await pilot.press("c")
        await until(pilot, lambda: not isinstance(app.screen, RunScreen), "the question")
        await pilot.press("y")
        await until(pilot, lambda: cancelled == ["k3f9a2"], "the cancelling")
        await until(pilot, lambda: any("job 48123" in note.message for note in app._notifications), "the notification")


@pytest.mark.parametrize("by", ["flag", "profile"])
async def test_on_a_read_only_cluster_cancel_is_grey_and_the_header_shows_the_reason(
    open_run: OpenRun, by: str
) -> None:
    app, services = open_run(STATES["measuring"])
    services.policy, services.clusters.observed = Policy(read_only=by == "flag"), by == "profile"
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "● live" in text_of(app, RunHeader), "the first state")
        assert "read-only" in text_of(app, RunHeader)
        keys = app.screen.active_bindings.values()
        assert [active.binding.action for active in keys if not active.enabled] == ["cancel"]
        await pilot.press("c")
        await pilot.pause()
        assert isinstance(app.screen, RunScreen)


async def test_a_failed_cancel_is_reported_after_the_screen_is_closed(
    open_run: OpenRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = threading.Event()

    def refuse(_run: Run, _prompter: object) -> tuple[str, ...]:
        left.wait(60)
        raise LlmbError("scancel failed.", "Invalid job id specified", "Look at the queue.")

    app, services = open_run(STATES["measuring"])
    monkeypatch.setattr(services.feed, "cancel", refuse)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "● live" in text_of(app, RunHeader), "the first state")
        await pilot.press("c")
        await until(pilot, lambda: not isinstance(app.screen, RunScreen), "the question")
        await pilot.press("y")
        await on_top(pilot, RunScreen)
        await pilot.press("q")
        await until(pilot, lambda: not isinstance(app.screen, RunScreen), "the screen is left")
        left.set()
        await on_top(pilot, Failure)
        assert "Invalid job id" in on_screen(app)


async def test_a_failed_cancel_is_shown(open_run: OpenRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_run: Run, _prompter: object) -> tuple[str, ...]:
        raise LlmbError("scancel failed.", "Invalid job id specified", "Look at the queue.")

    app, services = open_run(STATES["measuring"])
    monkeypatch.setattr(services.feed, "cancel", refuse)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "● live" in text_of(app, RunHeader), "the first state")
        await pilot.press("c")
        await until(pilot, lambda: not isinstance(app.screen, RunScreen), "the question")
        await pilot.press("y")
        await until(pilot, lambda: "Invalid job id" in text_of(app, "#notice"), "the reason")


async def test_an_unconfirmed_cancel_is_shown_until_its_outcome_is_known(
    open_run: OpenRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(run: Run, _prompter: object) -> tuple[str, ...]:
        services.runs.save(replace(run, cancel=Cancel("48123", 0.0)))
        raise CancelUnconfirmedError("Slurm", "48123", LlmbError("The connection broke."))

    app, services = open_run(STATES["measuring"])
    monkeypatch.setattr(services.feed, "cancel", lose)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "● live" in text_of(app, RunHeader), "the first state")
        await pilot.press("c")
        await until(pilot, lambda: not isinstance(app.screen, RunScreen), "the question")
        await pilot.press("y")
        await until(pilot, lambda: "it may still cancel it" in text_of(app, "#notice"), "the open cancel")
        services.runs.save(replace(services.runs.load("k3f9a2"), cancel=Cancel("48123", 0.0, "carried out")))
        ended = replace(STATES["measuring"], stage="cancelled", job=Job("48123", "", "CANCELLED"))
        app.screen.post_message(RunScreen.StateChanged(ended))
        await until(pilot, lambda: "was carried out" in text_of(app, "#notice"), "the settled cancel")


async def test_a_finished_run_cannot_be_cancelled(open_run: OpenRun) -> None:
    app, _ = open_run(STATES["done"])
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "○ closed" in text_of(app, RunHeader), "the state")
        assert "cancel" not in {active.binding.action for active in app.screen.active_bindings.values()}


@pytest.mark.parametrize("name", ["queued", "measuring", "done", "failed", "lost"])
async def test_at_80x24_the_log_keeps_eight_lines(name: str, open_run: OpenRun) -> None:
    app, _ = open_run(STATES[name])
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.screen.query_one(RunHeader).run_state is not None, "the state")
        await pilot.pause()
        assert app.screen.query_one(LogView).size.height >= 8
        for part in (RunHeader, StageLine, VerdictCard, LogPane):
            region = app.screen.query_one(part).region
            assert region.right <= 80
            assert region.bottom <= 23
            assert region.height


async def test_a_restart_by_slurm_shows_its_new_log(open_run: OpenRun) -> None:
    app, services = open_run(STATES["measuring"], log="before the restart\n")
    async with app.run_test(size=SIZE) as pilot:
        view = app.screen.query_one(LogView) if isinstance(app.screen, RunScreen) else None
        await on_top(pilot, RunScreen)
        view = app.screen.query_one(LogView)
        await until(pilot, lambda: "before" in view.render_line(0).text, "the first log")
        (services.runs.folder("k3f9a2") / "log.1").write_text("after the restart\n")
        app.screen.post_message(RunScreen.StateChanged(replace(STATES["measuring"], log_name="log.1")))
        await until(pilot, lambda: "after" in view.render_line(0).text, "the second log")


async def test_keys_can_be_listed_before_the_screen_is_composed(open_run: OpenRun) -> None:
    app, services = open_run(STATES["measuring"])
    async with app.run_test(size=SIZE):
        opened = RunScreen(services, NonInteractivePrompter(), "run")
        app.push_screen(opened)
        assert not opened.is_mounted
        assert not {"report", "suspend"} & actions(opened)


@pytest.mark.parametrize("result", ["WARN", "FAIL"])
@pytest.mark.parametrize("size", [(80, 24), SIZE], ids=["80x24", "120x36"])
async def test_the_reasons_of_a_verdict_other_than_pass_are_visible(
    open_run: OpenRun, result: Literal["WARN", "FAIL"], size: tuple[int, int]
) -> None:
    verdict = STATES["done"].verdict
    assert verdict is not None
    doubted = replace(verdict, result=result, reasons=("It rests on [delayed] scaling.", "vboost off."))
    app, _ = open_run(replace(STATES["done"], verdict=doubted))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "vboost off." in text_of(app, "#notice"), "the reasons")
        assert "It rests on [delayed] scaling." in on_screen(app)


async def test_a_passed_run_has_no_notice(open_run: OpenRun) -> None:
    state = STATES["done"]
    assert state.verdict is not None
    app, _ = open_run(replace(state, verdict=replace(state.verdict, reasons=("vboost off.",))))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "PASS" in text_of(app, VerdictCard), "the verdict")
        assert not app.screen.query_one("#notice").display


async def test_a_removed_log_copy_is_explained(open_run: OpenRun) -> None:
    app, services = open_run(RunState("k3f9a2", log_removed=True))
    services.runs.folder("k3f9a2").mkdir(parents=True, exist_ok=True)
    (services.runs.folder("k3f9a2") / "log.json").write_text("{}")
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "The local copy of this log was removed" in on_screen(app), "the reason")
