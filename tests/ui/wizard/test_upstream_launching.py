"""Submitting with NVIDIA's scripts by keyboard: confirmation, launch output and outcomes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from llmb_tui.cluster.job_log import JobLog
from llmb_tui.errors import LlmbError
from llmb_tui.launch.prepared import PreparedRun
from llmb_tui.launch.readiness import ClusterEvidence, blockers, refuse
from llmb_tui.launch.run import Run
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import ConfirmDialog, Failure
from llmb_tui.ui.panes.review import LaunchLine, run_facts
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.wizard.events import StepsChanged
from llmb_tui.wizard.steps import StepId
from tests.kit.pilot import (
    actions,
    by_head,
    on_screen,
    on_top,
    request_of,
    state_of,
    step_of,
    until,
)
from tests.ui.wizard.found_states import EOS
from tests.ui.wizard.upstream_pilot import Open, OpenLauncher, at_procedures, at_review, command

FOLDER = "/lustre/research/llmb/published/llama3.1-25.04/experiments/e/e_1/pretrain"
SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
Outcome = Callable[[Run], Run]


class SlowLauncher(OpenLauncher):
    """A launch that reports progress, and ends when the test releases it. It records the run as a real one does."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.may_end = threading.Event()
        self.outcome: Outcome = submitted
        self.drafts: list[PreparedRun] = []

    def submit(
        self, prepared: PreparedRun, evidence: ClusterEvidence, on_progress: Callable[[str], None] | None = None
    ) -> Run:
        refuse(prepared.request, blockers(prepared.request, self.policy, evidence))
        assert on_progress is not None
        self.drafts.append(prepared)
        self.runs.save(replace(prepared.run, submission="unknown", note="The cluster has not answered yet."))
        for said in ("launch.sh was started.", "Importing NeMo"):
            on_progress(said)
        assert self.may_end.wait(60)
        run = self.outcome(prepared.run)
        self.runs.save(run)
        if run.submission == "refused":
            raise LlmbError("launch.sh did not submit a job.", run.note, "Choose another partition.")
        return run


class Slow(Open):
    def __init__(self, places: UserPaths) -> None:
        super().__init__(places)
        self.launcher = self.stand_in = self.slow = SlowLauncher(self)


def submitted(run: Run) -> Run:
    log = JobLog(f"{FOLDER}/log-x_%j_%r.out")
    return replace(run, submission="submitted", job_ids=("102", "101"), log=log)


def unknown(run: Run) -> Run:
    note = "No job of its name is known to Slurm yet. launch.sh was started by me@login1, and has not answered."
    return replace(run, submission="unknown", note=note)


def refused(run: Run) -> Run:
    return replace(run, submission="refused", note="Invalid partition.")


@pytest.fixture
def services(places: UserPaths, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    """Services that neither settle a launch in the background nor follow a run."""

    def no_monitor(run_id: str) -> None:
        raise LlmbError(f"The test does not follow {run_id}.")

    result = Slow(places)
    monkeypatch.setattr("llmb_tui.watch.runs_feed.reconcile", lambda _, runs, __, run: runs.load(run.id))
    monkeypatch.setattr(result.feed, "monitor", no_monitor)
    result.clusters.save(EOS)
    yield result
    result.slow.may_end.set()


def launch_text(pilot: Pilot[None]) -> str:
    """The visible line about the launch."""
    (shown,) = [one for one in pilot.app.screen.query(LaunchLine) if one.region]
    return "\n".join(str(body) for _, body in shown.parts) if shown.display else ""


async def launching(pilot: Pilot[None]) -> WizardScreen:
    """Review after the confirmation, once the launch has printed a line."""
    wizard = await at_procedures(pilot)
    await at_review(pilot, wizard, "down")
    await pilot.press("s")
    await on_top(pilot, ConfirmDialog)
    await pilot.press("y")
    await until(
        pilot, lambda: any("Importing" in str(one.parts) for one in wizard.query(LaunchLine)), "the message is shown"
    )
    await pilot.pause()
    return wizard


@SIZES
async def test_confirmation_names_the_effect_and_defaults_to_no(services: Slow, size: tuple[int, int]) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await at_procedures(pilot)
        await at_review(pilot, wizard, "down")
        assert str(wizard.query_one("#script-text", Static).content) == command()
        await pilot.press("enter")
        await on_top(pilot, ConfirmDialog)
        text = " ".join(on_screen(app).replace("│", " ").split())
        assert "launch.sh is started on the login node, detached and at most once" in text
        assert "up to three jobs" in text
        await pilot.press("enter")
        await on_top(pilot, WizardScreen)
        assert services.slow.drafts == []
        assert services.runs.all() == ()


@SIZES
async def test_submitted_run_opens_with_all_its_jobs(services: Slow, size: tuple[int, int]) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await launching(pilot)
        assert launch_text(pilot).startswith("launching for ")
        assert "Importing NeMo" in launch_text(pilot)
        assert "submit" not in actions(wizard)
        services.slow.may_end.set()
        await on_top(pilot, RunScreen)
        await until(pilot, lambda: "jobs 102, 101 (watching 101)" in on_screen(app), "the jobs are named")
        text = on_screen(app)
        assert f"NVIDIA's scripts · results in {FOLDER}"[: size[0] - 3] in text
        await pilot.press("q")
        await on_top(pilot, WizardScreen)
        facts = by_head(run_facts(state_of(wizard).cluster.launched))
        assert facts["job"] == "102, 101 (watching 101)"
        assert (facts["launch"], facts["results"]) == ("NVIDIA's scripts", FOLDER)
    (draft,) = services.slow.drafts
    assert (draft.script, draft.run.procedure) == (command(), "upstream")
    (run,) = services.runs.all()
    assert (run.id, run.submission) == (draft.run.id, "submitted")


async def test_launch_line_counts_seconds(services: Slow) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        await launching(pilot)
        first = launch_text(pilot)
        await until(pilot, lambda: launch_text(pilot) != first, "the duration changes")
        assert "Importing NeMo" in launch_text(pilot)


async def test_leaving_during_a_launch_shows_its_outcome_and_submits_once(services: Slow) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        wizard = await launching(pilot)
        await pilot.press("3", "P", "up")
        await pilot.press("6")
        await until(pilot, lambda: state_of(wizard).cluster.prepared is not None, "the direct script is rendered")
        assert "llama3.1 8b bf16 · 8 × H100 on eos" in launch_text(pilot), "the run is named after a new answer"
        await pilot.press("s", "enter")
        await pilot.pause()
        assert app.screen is wizard
        assert "Another run is being submitted" in on_screen(app)
        await pilot.press("3", "P", "down", "6")
        await pilot.pause()
        assert "Importing NeMo" in launch_text(pilot)
        await pilot.press("1")
        services.slow.may_end.set()
        await until(pilot, lambda: state_of(wizard).launch is None, "the end of the launch")
        await until(
            pilot,
            lambda: "on eos, jobs 102, 101: submitted" in " ".join(on_screen(app).split()),
            "the message is shown",
        )
        assert (app.screen, step_of(pilot)) == (wizard, StepId.WORKLOAD)
        await until(pilot, lambda: "1 active run" in on_screen(app), "the active run")
    assert len(services.slow.drafts) == 1


async def test_launch_without_an_answer_is_unknown_and_queried_again(services: Slow) -> None:
    services.slow.outcome = unknown
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        await launching(pilot)
        services.slow.may_end.set()
        await on_top(pilot, RunScreen)
        await until(pilot, lambda: "It is unknown whether this job was submitted." in on_screen(app), "the message")
        text = " ".join(on_screen(app).split())
        assert "launch.sh was started by me@login1, and has not answered." in text
        (run,) = services.runs.all()
        services.runs.save(submitted(run))
        await pilot.press("u")
        await until(pilot, lambda: "jobs 102, 101" in on_screen(app), "the jobs")
    assert len(services.slow.drafts) == 1


async def test_rejected_launch_shows_the_reason_and_the_next_is_a_new_run(services: Slow) -> None:
    services.slow.outcome = refused
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await launching(pilot)
        services.slow.may_end.set()
        await on_top(pilot, Failure)
        assert "Invalid partition." in on_screen(app)
        await pilot.press("escape")
        await on_top(pilot, WizardScreen)
        await until(
            pilot,
            lambda: "submit" in actions(wizard) and state_of(wizard).cluster.prepared is not None,
            "the enabled submission",
        )
        draft = state_of(wizard).cluster.prepared
        assert draft is not None
        assert draft.run.id != services.slow.drafts[0].run.id


async def test_unfinished_step_is_named_instead_of_a_confirmation(services: Slow) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await at_review(pilot, wizard, "down")
        wizard.dispatch(StepsChanged(request_of(wizard), ()))
        await pilot.press("s")
        await pilot.pause()
        assert app.screen is wizard
        assert "The installation is incomplete. Finish step 5 first." in [note.message for note in app._notifications]
