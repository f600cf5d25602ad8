"""A run of NVIDIA's scripts on its screen: its launch method, all its jobs, its results, and an unknown submission."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from textual.app import App
from textual.widgets import Static

from llmb_tui.catalog.load import load_presets
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.launch.run import Run
from llmb_tui.launch.upstream.procedure import upstream_spec
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.request import RunRequest
from llmb_tui.services import Services
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.widgets.run_header import RunHeader, job_text
from llmb_tui.watch.state import RunState
from tests.kit.pilot import until
from tests.kit.runs import make_run

Open = Callable[..., tuple[App[None], Services]]
EOS = SlurmProfile("eos", "eos-login", "acct", "batch", "/lustre/llmb")
TASK = "/lustre/llmb/published/llama3.1-25.04/experiments/e/e_1/pretrain_llama3.1_8b_bf16_8"
WATCHED, OTHER = Job("101", "pretrain", "RUNNING", nodes=1, elapsed_s=62.0), Job("102", "pretrain_nsys", "PENDING")


def upstream_run(run: Run, selection: Selection, **changes: Any) -> Run:
    """The run, submitted by NVIDIA's scripts."""
    catalog = load_presets()
    run_plan = plan(catalog, selection)
    spec = upstream_spec(RunRequest(catalog.recipe(selection.workload, selection.release), run_plan, EOS), run.id)
    jobs = {"job_ids": ("102", "101"), "job_state": None, "log": JobLog(f"{TASK}/log-x_%j_%r.out")}
    return replace(run, plan=run_plan, spec=spec, procedure="upstream", **(jobs | changes))


@pytest.fixture
def llama() -> Run:
    return upstream_run(make_run(), Selection("llama3.1", "25.04", "8b", "h100", "bf16", 8))


def header(app: App[None]) -> str:
    return str(app.screen.query_one(RunHeader).render())


def notice(app: App[None]) -> str:
    return str(app.screen.query_one("#notice", Static).render())


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
async def test_the_header_names_procedure_jobs_and_results(open_run: Open, llama: Run, size: tuple[int, int]) -> None:
    app, _ = open_run(RunState(llama.id, "measuring", job=WATCHED, others=(OTHER,)), run=llama)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "watching job 101 · RUNNING 01:02" in header(app), "the watched job")
        assert "job 102 PENDING" in header(app)
        assert f"NVIDIA's scripts · results in {TASK}"[: size[0] - 4] in header(app)
        assert len(header(app).splitlines()) == app.screen.query_one(RunHeader).region.height == 3


def test_all_job_ids_are_shown_before_the_first_query(llama: Run) -> None:
    assert job_text(llama, RunState(llama.id)).plain.startswith("jobs 102, 101 (watching 101)")
    run = replace(llama, job_ids=("101",))
    assert job_text(run, RunState(llama.id)).plain.startswith("job 101 ")
    assert job_text(run, RunState(llama.id, job=WATCHED)).plain.startswith("job 101 · RUNNING")


def test_the_results_folder_is_the_experiments_folder_or_the_one_of_the_scripts(llama: Run) -> None:
    assert llama.results == TASK
    assert replace(llama, log=None).results == "/lustre/llmb/published/llama3.1-25.04/experiments"
    grok = upstream_run(make_run(), Selection("grok1", "25.02", "314b", "h100", "bf16", 64), log=None)
    assert grok.results == "/lustre/llmb/published/grok1-25.02/results/25.02/bf16/314b/64"
    assert make_run().results == ""


@pytest.mark.parametrize(("state", "can"), [("PENDING", True), ("CANCELLED", False)])
async def test_a_run_can_be_cancelled_while_any_of_its_jobs_is_active(
    open_run: Open, llama: Run, state: str, can: bool
) -> None:
    over = RunState(llama.id, "done", job=replace(WATCHED, state="COMPLETED"), others=(replace(OTHER, state=state),))
    app, _ = open_run(over, run=llama)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "watching job 101" in header(app), "the state")
        assert bool(app.screen.check_action("cancel", ())) is can


async def test_an_unknown_submission_is_queried_repeatedly_until_it_is_known(
    open_run: Open, llama: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = replace(llama, submission="unknown", job_ids=(), log=None, note="launch.sh was started by me@login1.")
    app, services = open_run(RunState(llama.id, "queued"), run=lost)
    requests: list[str] = []

    def reconcile(_session: object, _runs: object, _journal: object, run: Run) -> Run:
        requests.append(run.id)
        if len(requests) == 2:
            services.runs.save(replace(lost, note="launch.sh says: Importing NeMo"))
        if len(requests) == 4:
            services.runs.save(llama)
        return services.runs.load(run.id)

    monkeypatch.setattr("llmb_tui.watch.runs_feed.reconcile", reconcile)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "jobs 102, 101" in header(app), "the jobs")
        assert requests == [llama.id] * 4
        screen = app.screen
        assert isinstance(screen, RunScreen)
        await until(pilot, lambda: screen.run_state is not None, "the watch")


async def test_a_cluster_that_does_not_answer_is_not_queried_again_automatically(
    open_run: Open, llama: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, _ = open_run(run=replace(llama, submission="unknown", job_ids=(), note="The answer was lost."))
    requests: list[str] = []

    def reconcile(_session: object, _runs: object, _journal: object, run: Run) -> Run:
        requests.append(run.id)
        raise LlmbError("eos does not answer.")

    monkeypatch.setattr("llmb_tui.watch.runs_feed.reconcile", reconcile)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "The answer was lost." in notice(app), "the note")
        watching = [worker for worker in app.workers if worker.group == "monitor"]
        await until(pilot, lambda: not any(worker.is_running for worker in watching), "the queries have ended")
        assert requests == [llama.id]
