"""A workload on the simulated Run:ai from queue to end: states, reasons, and every byte of its log."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.cluster.cluster import CancelUnconfirmedError
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.runai.cluster import RunaiCluster, runai_of
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.demo.runai.workload import Workload
from llmb_tui.launch.run import Run
from llmb_tui.launch.runai.workload import Placement
from llmb_tui.launch.submit import submit_once
from llmb_tui.plan.selection import Selection
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.state import RunState
from llmb_tui.watch.timing import Timing
from tests.kit.runai import Fault, FaultySite, runai_site
from tests.kit.watching import BackgroundWatch
from tests.launch.runai.workload_cases import intent, request_of

BF16 = Selection("nemotron4-340b", "25.12", "340b", "h100", "bf16", 256)
SPEED = 60.0


class Watched:
    """A Run:ai site, the services of one user, and functions for one workload."""

    def __init__(self, folder: Path, site: FaultySite) -> None:
        self.site = site
        self.services = Services(UserPaths(folder / "config", folder / "state"), timing=Timing(look_every_s=0.1))
        self.profile = replace(site.profile, work_dir="", mounts=())
        self.save(self.profile)

    def save(self, profile: RunaiProfile) -> None:
        self.profile = profile
        self.services.clusters.save(profile)
        self.cluster.secret.give(self.site.app_secret)

    @property
    def cluster(self) -> RunaiCluster:
        return runai_of(self.services.clusters.cluster(self.profile))

    def submit(self, **spec: Any) -> Run:
        """Submit a run; `spec` replaces fields of its workload."""
        project = self.cluster.project()
        placement = Placement(project.id, project.cluster_id)
        run, script = intent(request_of(BF16, self.profile), placement)
        if spec:
            run, script = _with(run, placement, **spec)
        return submit_once(self.cluster, self.services.runs, self.services.journal, run, script)

    def job(self, run: Run) -> Job:
        return self.cluster.query_jobs(run.job_ids)[run.job_ids[-1]]

    def workload(self, run: Run) -> Workload:
        workload = self.site.workloads.find(run.job_ids[-1])
        assert workload is not None
        return workload

    def printed(self, run: Run) -> bytes:
        """Output of the first pod since its last start."""
        workload = self.workload(run)
        return "".join(f"{line}\n" for line in workload.log(workload.now(self.site.clock()))).encode()

    def copied(self, run: Run, state: RunState) -> bytes:
        return (self.services.runs.folder(run.id) / state.log_name).read_bytes()


def _with(run: Run, placement: Placement, **spec: Any) -> tuple[Run, str]:
    from llmb_tui.launch.files import as_json
    from llmb_tui.launch.runai.workload import creation_request
    from llmb_tui.launch.spec import RunaiSpec

    assert isinstance(run.spec, RunaiSpec)
    changed = replace(run.spec, **spec)
    return replace(run, spec=changed), as_json(creation_request(changed, placement))


def following(watched: Watched, run: Run) -> BackgroundWatch:
    """Watch a run in a thread, as the screen of a run does."""
    return BackgroundWatch(watched.services.feed.monitor(run.id))


def link_notes(watching: BackgroundWatch) -> set[str]:
    return {state.link_note for state in watching.states}


def steps_done(count: int) -> Callable[[RunState], bool]:
    return lambda state: state.progress.steps_done >= count


@contextlib.contextmanager
def _site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, speed: float) -> Iterator[Watched]:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("llmb_tui.cluster.runai.api.FIRST_PAUSE_S", 0.01)
    with runai_site(tmp_path / "runai", speed=speed) as site:
        made = Watched(tmp_path, site)
        yield made
        made.services.close()


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    with _site(tmp_path, monkeypatch, SPEED) as made:
        yield made


@pytest.fixture
def skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """Site whose clock runs at real speed; tests advance it with `skip`."""
    with _site(tmp_path, monkeypatch, 1.0) as made:
        yield made


def test_phases_are_states_with_their_reason_in_words(skipped: Watched) -> None:
    skipped.site.workloads.limits["default"] = 8
    run = skipped.submit()
    skipped.site.skip(30)
    waiting = skipped.job(run)
    assert waiting.state == "PENDING"
    assert waiting.reason.startswith("The project's quota is used up: ")
    assert "currently 0 GPUs allocated" in waiting.reason
    skipped.site.workloads.limits["default"] = 512
    skipped.job(run)
    skipped.site.skip(60)
    running = skipped.job(run)
    assert (running.state, running.reason, running.nodes) == ("RUNNING", "", 32)

    skipped.site.preempt(run.job_ids[-1])
    preempted = skipped.job(run)
    assert (preempted.state, preempted.reason.partition(":")[0]) == ("PENDING", "Preempted for another workload")
    skipped.site.skip(30)
    skipped.job(run)
    skipped.site.skip(60)
    assert skipped.job(run).state == "RUNNING"

    skipped.cluster.suspend(run.job_ids[-1])
    assert skipped.job(run).state == "COMPLETING"
    skipped.site.skip(30)
    assert skipped.job(run).state == "SUSPENDED"
    skipped.cluster.resume(run.job_ids[-1])
    assert skipped.job(run).state == "PENDING"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"image": "nvcr.io/nvidia/nemo:nosuch"}, "The image cannot be pulled"),
        ({"mounts": ("data:/data:nowhere",)}, "A volume cannot be mounted"),
        ({"node_pool": "a100"}, "No nodes are free for it"),
    ],
    ids=["image", "claim", "node-pool"],
)
def test_why_a_workload_does_not_start(skipped: Watched, spec: dict[str, Any], words: str) -> None:
    run = skipped.submit(**spec)
    skipped.site.skip(40)
    skipped.job(run)
    skipped.site.skip(40)
    job = skipped.job(run)
    assert job.state == "PENDING"
    assert job.reason.startswith(f"{words}: ")


@pytest.mark.parametrize("status", [401, 403, 404])
def test_events_that_are_refused_hide_no_state(skipped: Watched, status: int) -> None:
    skipped.site.faults += [Fault("GET", "/events", 99, status=status)]
    waiting, cancelled = skipped.submit(), skipped.submit()
    skipped.site.skip(5)
    both = [*waiting.job_ids, *cancelled.job_ids]
    assert {job.state for job in skipped.cluster.query_jobs(both).values()} == {"PENDING"}
    asked = skipped.site.request_count("GET", "/events")
    assert asked
    assert skipped.cluster.cancel(cancelled.job_ids[-1])
    skipped.site.skip(100)
    assert skipped.job(cancelled).state == "CANCELLED"
    assert skipped.site.request_count("GET", "/events") == asked, "of what was cancelled no reason is needed"
    assert not skipped.services.feed.poll()
    assert skipped.services.runs.load(cancelled.id).job_state == "CANCELLED"


def test_a_line_that_is_cut_and_a_login_that_ends_leave_no_gap(watched: Watched) -> None:
    run = watched.submit()
    watching = following(watched, run)
    watched.site.skip(60)
    watching.wait_for(steps_done(3))
    for steps in (10, 20, 30):
        watched.site.faults += [Fault("GET", "/workloads", revoked=True), Fault("GET", "/log$", cut_after=700)]
        watched.site.drop_connections()
        watched.site.skip(40)
        watching.wait_for(steps_done(steps))
    watched.site.skip(300)
    final = watching.end()
    assert (final.stage, final.progress.steps_done) == ("done", 50)
    assert final.verdict is not None
    assert final.verdict.result in ("PASS", "WARN")
    assert watched.copied(run, final) == watched.printed(run)
    path = watched.services.runs.folder(run.id) / "accounting.txt"
    (workload,) = json.loads(path.read_text())
    assert (workload["id"], workload["phase"], len(workload["pods"])) == (run.job_ids[-1], "Completed", 32)
    assert all(pod["nodeName"] for pod in workload["pods"])
    assert not {"spec", "environmentVariables", "command"} & workload.keys()
    assert not any("began anew" in note or "may be lost" in note for note in link_notes(watching)), "nothing was missed"


def test_the_new_log_of_a_resumed_workload_is_marked(watched: Watched) -> None:
    run = watched.submit()
    watching = following(watched, run)
    watched.site.skip(100)
    first = watching.wait_for(steps_done(5))
    watched.site.preempt(run.job_ids[-1])
    watching.wait_for(lambda state: state.job is not None and "Preempted" in state.job.reason, "it is preempted")
    watched.site.skip(40)
    watched.job(run)
    watched.site.skip(600)
    final = watching.end()
    assert (final.stage, final.progress.steps_done) == ("done", 50)
    assert final.log_name != first.log_name
    assert (watched.services.runs.folder(run.id) / first.log_name).is_file(), "what came before is kept"
    assert watched.copied(run, final) == watched.printed(run)
    assert any("began anew" in note for note in link_notes(watching))


def test_a_workload_that_reaches_its_limit_has_that_reason(watched: Watched) -> None:
    run = watched.submit(time_limit="00:01:30")
    watching = following(watched, run)
    watched.site.skip(900)
    final = watching.end()
    assert final.stage == "timeout"
    assert final.progress.failure is not None
    assert "time limit" in final.progress.failure.reason


def test_without_a_kubeconfig_the_place_of_the_log_is_named(watched: Watched) -> None:
    watched.save(replace(watched.profile, kubeconfig=None))
    run = watched.submit()
    watching = following(watched, run)
    watched.site.skip(100)
    watching.wait_for(lambda state: state.job is not None and state.job.state == "RUNNING", "it runs")
    watched.site.skip(900)
    final = watching.end()
    assert final.job is not None
    assert final.job.state == "COMPLETED"
    assert final.verdict is None
    text = " ".join({*link_notes(watching), final.no_verdict, final.slurm_note})
    assert "kubeconfig" in text
    assert f"https://{watched.profile.place}/workloads" in text
    assert final.no_verdict


@pytest.mark.parametrize(("status", "why"), [(403, "pods/log"), (401, "does not accept the login")])
def test_a_log_that_kubernetes_refuses_ends_the_watch_after_the_job(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, status: int, why: str
) -> None:
    monkeypatch.setattr("llmb_tui.watch.monitor.PATIENCE_S", 0.5)
    watched.site.faults += [Fault("GET", "/log$", 999, status=status)]
    run = watched.submit()
    watching = following(watched, run)
    watched.site.skip(100)
    watching.wait_for(lambda state: state.job is not None and state.job.state == "RUNNING", "it runs")
    watched.site.skip(900)
    final = watching.end()
    assert final.job is not None
    assert final.job.state == "COMPLETED"
    assert "log has not been read to its end" in final.no_verdict
    assert any(why in note for note in link_notes(watching))
    watched.site.faults.clear()
    assert watched.services.feed.monitor(run.id).once().verdict is not None, "a later look reads it"


def test_a_cancel_deletes_the_workload_and_keeps_the_copied_log(watched: Watched) -> None:
    run = watched.submit()
    watching = following(watched, run)
    watched.site.skip(100)
    watching.wait_for(steps_done(3))
    assert watched.services.feed.cancel(run) == run.job_ids
    watched.site.skip(60)
    final = watching.end()
    assert final.stage == "cancelled"
    data = watched.copied(run, final)
    assert data
    assert watched.printed(run).startswith(data)
    assert watched.services.feed.cancel(watched.services.runs.load(run.id)) == ()


def test_a_cancel_whose_answer_is_lost_is_settled_by_a_look(watched: Watched) -> None:
    run = watched.submit()
    watched.site.skip(100)
    watched.site.faults += [Fault("DELETE", "", 99, lost=True)]
    with contextlib.suppress(CancelUnconfirmedError):  # not raised if the poll after the request finds the run finished
        watched.services.feed.cancel(run)
    assert watched.workload(run).delete_asked is not None
    watched.site.faults.clear()
    watched.site.skip(60)
    assert not watched.services.feed.poll()
    settled = watched.services.runs.load(run.id)
    assert settled.job_state == "CANCELLED"
    assert not settled.cancel_note or "was carried out" in settled.cancel_note
