"""Events that tasks on a cluster send to the wizard."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.cluster.prompter import NonInteractivePrompter, Prompter
from llmb_tui.errors import LlmbError
from llmb_tui.launch.prepared import PreparedRun
from llmb_tui.launch.procedure_loader import unavailable
from llmb_tui.launch.run import Run
from llmb_tui.plan.selection import Selection
from llmb_tui.request import RunRequest
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.suites.suite import make_suite
from llmb_tui.ui.wizard_effects import perform, read, read_start
from llmb_tui.wizard.answers import Answers
from llmb_tui.wizard.effects import ClusterTask, Install, Prepare, PrepareAhead, Probe, ReadRuns, Submit
from llmb_tui.wizard.events import (
    CheckDone,
    ConnectionChanged,
    EarlyChecked,
    Event,
    Prepared,
    RunsRead,
    RunSubmitted,
    StepsChanged,
    TaskEnded,
    TaskFailed,
)
from llmb_tui.wizard.steps import StepId
from tests.kit.runs import CREATED_AT, NEMOTRON, PLAN, make_run
from tests.launch.runai.workload_cases import PROFILE
from tests.ui.wizard.found_states import EOS, INSTALLED, PASSED, draft_of, state_at
from tests.ui.wizard.upstream_pilot import OpenClusters, OpenLauncher

LOST = LlmbError("The connection broke.")


class Answering(OpenLauncher):
    """A launcher with the outcome that a test sets."""

    outcome: Run | None = None

    def prepare(
        self,
        request: RunRequest,
        prompter: Prompter | None = None,
        run_id: str | None = None,  # noqa: ARG002 - the rooms'
    ) -> PreparedRun:
        self.cluster_of(request.profile).connect(prompter)
        return draft_of(request.plan)

    def submit(self, prepared: PreparedRun, evidence: object, on_progress: object = None) -> Run:  # noqa: ARG002 - the rooms'
        if self.outcome is not None:
            self.runs.save(self.outcome)
            raise LlmbError("It was refused.")
        return replace(prepared.run, submission="submitted")


class Cluster(Services):
    """Services with one stand-in cluster, which answers unless it is lost."""

    def __init__(self, places: UserPaths) -> None:
        super().__init__(places)
        clusters = OpenClusters(places)
        self.clusters, self.session = clusters, clusters.opened
        self.launcher = self.stand_in = Answering(self)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(UserPaths(tmp_path / "config", tmp_path / "state"))


@pytest.fixture(scope="module")
def request_() -> RunRequest:
    request = state_at(StepId.REVIEW, Selection("nemotron4", "25.04", "15b", "h100", "bf16", 16)).proposal.request
    assert request is not None
    return request


def perform_task(task: ClusterTask, cluster: Cluster) -> list[Event]:
    events: list[Event] = []
    perform(task, cluster, NonInteractivePrompter(), events.append, threading.Event())
    return events


def test_probe_reports_link_checks_steps_and_early_checks(cluster: Cluster, request_: RunRequest) -> None:
    events = perform_task(Probe(request_, attended=True, early=True), cluster)
    assert [type(event) for event in events] == [ConnectionChanged, CheckDone, StepsChanged, EarlyChecked, TaskEnded]
    assert perform_task(Probe(request_, attended=True, early=False), cluster)[-2:] == [events[2], events[-1]]


def test_probe_without_early_checks_is_complete(cluster: Cluster, request_: RunRequest) -> None:
    cluster.stand_in.error = LOST
    events = perform_task(Probe(request_, attended=True, early=True), cluster)
    assert [type(event) for event in events] == [ConnectionChanged, CheckDone, StepsChanged, TaskEnded]


@pytest.mark.parametrize("attended", [True, False])
def test_failed_probe_reports_an_error_only_if_attended(cluster: Cluster, request_: RunRequest, attended: bool) -> None:
    cluster.session.lost = LOST
    events = perform_task(Probe(request_, attended, early=True), cluster)
    link = ConnectionChanged(request_, "failed" if attended else "unknown")
    assert events == [link, *([TaskFailed(request_, "probe", LOST)] if attended else []), TaskEnded(request_, "probe")]
    assert (cluster.session.prompters != [None]) is attended, "an unattended probe has no prompter"


def test_install_and_prepare_report_their_outcomes(cluster: Cluster, request_: RunRequest) -> None:
    assert perform_task(Install(request_), cluster) == [
        StepsChanged(request_, INSTALLED),
        TaskEnded(request_, "install"),
    ]
    assert [type(event) for event in perform_task(Prepare(request_), cluster)] == [Prepared, TaskEnded]
    cluster.session.lost = LOST
    for task, name in ((Install(request_), "install"), (Prepare(request_), "prepare")):
        assert perform_task(task, cluster) == [TaskFailed(request_, name, LOST), TaskEnded(request_, name)]  # type: ignore[arg-type]


def test_preparing_the_script_ahead_neither_prompts_nor_reports_errors(cluster: Cluster, request_: RunRequest) -> None:
    prepared, ended = perform_task(PrepareAhead(request_), cluster)
    assert (type(prepared), ended) == (Prepared, TaskEnded(request_, "prepare ahead"))
    cluster.session.lost = LOST
    assert perform_task(PrepareAhead(request_), cluster) == [ended]
    assert cluster.session.prompters == [None, None]


@pytest.mark.parametrize(("submission", "over"), [("refused", True), ("withdrawn", True), ("unknown", False)])
def test_failed_submission_reports_whether_its_run_ended(
    cluster: Cluster, request_: RunRequest, submission: str, over: bool
) -> None:
    prepared = draft_of(request_.plan)
    cluster.stand_in.outcome = replace(prepared.run, submission=submission)  # type: ignore[arg-type]  # one of its literals
    failed, ended = perform_task(Submit(prepared, PASSED, INSTALLED), cluster)
    assert isinstance(failed, TaskFailed)
    assert (failed.run_ended, ended) == (over, TaskEnded(prepared.request, "submit"))


def test_submission_that_did_not_start_keeps_its_run(cluster: Cluster, request_: RunRequest) -> None:
    prepared = draft_of(request_.plan)
    cluster.session.lost = LOST
    assert perform_task(Submit(prepared, PASSED, INSTALLED), cluster)[0] == TaskFailed(prepared.request, "submit", LOST)
    cluster.session.lost = None
    assert isinstance(perform_task(Submit(prepared, PASSED, INSTALLED), cluster)[0], RunSubmitted)


def test_the_launched_run_is_read_again(cluster: Cluster, request_: RunRequest) -> None:
    run = draft_of(request_.plan).run
    newer = replace(run, submission="submitted", job_ids=("7",))
    cluster.runs.save(newer)
    assert read(ReadRuns(run), cluster) == RunsRead((newer,), newer)


def test_first_workload_is_supported_by_the_only_cluster(cluster: Cluster) -> None:
    def first() -> str:
        return read_start(cluster)[0].proposal.full.recipe or ""

    usual = first()
    cluster.clusters.save(PROFILE)
    only = first()
    assert only != usual
    assert not unavailable("runai", cluster.catalog.recipe(*only.split("@")))
    cluster.clusters.save(EOS)  # with two clusters none is chosen, so the first recipe is
    assert first() == usual


def test_runs_of_a_suite_do_not_set_the_answers(cluster: Cluster) -> None:
    cluster.runs.save(make_run("mine", plan=replace(PLAN, selection=NEMOTRON)))
    cluster.clusters.save(EOS)
    short = replace(NEMOTRON, steps=25)
    (run_id,) = cluster.suites.keep(make_suite("short", "eos", [(short, "direct")])).run_ids
    later = make_run(run_id, created_at=CREATED_AT + 1, plan=replace(PLAN, selection=short))
    cluster.runs.save(later)
    assert read_start(cluster)[0].proposal.selection == NEMOTRON
    cluster.runs.save(replace(later, id="later"))
    assert read_start(cluster)[0].proposal.selection == short


@pytest.mark.parametrize("changes", [{"release": "1.0"}, {"size": "1b"}, {"gpu": "h100x"}])
def test_last_run_without_a_preset_is_not_restored(cluster: Cluster, changes: dict[str, str]) -> None:
    cluster.runs.save(make_run(plan=replace(PLAN, selection=NEMOTRON)))
    assert read_start(cluster)[0].proposal.selection == NEMOTRON
    cluster.runs.save(make_run(plan=replace(PLAN, selection=replace(NEMOTRON, **changes))))  # type: ignore[arg-type]  # texts
    assert read_start(cluster)[0].answers == Answers()
