"""The monitor against the demo cluster: real SSH on loopback, a small Slurm, a fast clock."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.errors import LlmbError
from llmb_tui.launch.direct.install import direct_install
from llmb_tui.launch.direct.render import render
from llmb_tui.launch.install import Installer
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.submit import submit_once
from llmb_tui.plan.selection import Selection
from llmb_tui.store.journal import Journal
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.events import WatchEvent
from llmb_tui.watch.job_poller import JobPoller
from llmb_tui.watch.monitor import Monitor
from llmb_tui.watch.run_records import RunRecords
from llmb_tui.watch.state import RunState
from tests.cluster.login_node import Person
from tests.kit.demo import clear_faults, drop_connections, end_jobs, fault, refuse
from tests.kit.reasons import OUT_OF_GPU_MEMORY, training_reason
from tests.kit.runs import NEMOTRON, direct_spec, intended_run, request_for
from tests.kit.waiting import DEADLINE_S, until
from tests.kit.watching import BackgroundWatch

SPEED = 300.0
IMAGE = b"hsqs, simulated"
HYDRA = Selection("grok1", "25.02", "314b", "h100", "bf16", 64)

_SCRIPTS: dict[str, str] = {}
_NUMBERS = itertools.count(1)
"""Numbers for the ids of the runs, which are unique because all runs use the same cluster."""


@dataclass
class Site:
    """A demo cluster and the stored runs of one user."""

    cluster: DemoCluster
    catalog: Catalog
    places: UserPaths
    sessions: list[SlurmCluster] = field(default_factory=list)
    pollers: list[JobPoller] = field(default_factory=list)

    @property
    def runs(self) -> Runs:
        return Runs(self.places)

    def session(self) -> SlurmCluster:
        self.sessions.append(SlurmCluster(self.cluster.profile))
        return self.sessions[-1]

    def launch(self, selection: Selection = NEMOTRON) -> Run:
        """Render and submit a run; the cluster has everything that the run needs."""
        request = request_for(selection, self.cluster.profile)
        run = replace(intended_run(request, f"testrun{next(_NUMBERS)}"), created_at=time.time())
        return submit_once(self.session(), self.runs, Journal(self.places.journal), run, self._script(run))

    def log_of(self, run: Run, restart: int = 0) -> Path:
        return Path(direct_spec(run).log.path(run.job_ids[-1], restart))

    def monitor(self, run: Run, **settings: float) -> Monitor:
        session = self.session()
        self.pollers.append(JobPoller(session, every_s=0.2))
        return Monitor(session, self.runs, run, self.pollers[-1], **settings)

    def _script(self, run: Run) -> str:
        """Render once for each recipe, because it takes seconds; then insert the names of this run."""
        key, root = run.plan.selection.workload, str(self.cluster.root)
        if key not in _SCRIPTS:
            _SCRIPTS[key] = render(direct_spec(run)).replace(root, "@ROOT@").replace(run.id, "@ID@")
        return _SCRIPTS[key].replace("@ROOT@", root).replace("@ID@", run.id)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoCluster]:
    """Demo cluster for all tests, with both recipes installed."""
    with DemoCluster(tmp_path_factory.mktemp("watched") / "demo", speed=SPEED) as demo:
        with closing(SlurmCluster(demo.profile)) as session:
            for selection in (NEMOTRON, HYDRA):
                request = request_for(selection, demo.profile)
                image = Path(direct_spec(intended_run(request, "installed")).container_image)
                image.parent.mkdir(parents=True, exist_ok=True)
                image.write_bytes(IMAGE)  # a stand-in: importing the real image takes seconds
                installer = Installer(session, request.slurm, direct_install(request))
                done = installer.run(lambda _: None, threading.Event())
                assert {state.status for state in done} == {"done"}
        yield demo


@pytest.fixture
def site(cluster: DemoCluster, tmp_path: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    made = Site(cluster, catalog, UserPaths(tmp_path / "config", tmp_path / "state"))
    yield made
    refuse(cluster, False)
    for poller in made.pollers:
        poller.close()
    for session in made.sessions:
        session.close()
    clear_faults(cluster)
    end_jobs(cluster)


@pytest.fixture
def watch(site: Site) -> Iterator[Callable[..., BackgroundWatch]]:
    started: list[BackgroundWatch] = []

    def start(run: Run, **settings: float) -> BackgroundWatch:
        started.append(BackgroundWatch(site.monitor(run, **settings)))
        return started[-1]

    yield start
    for watching in started:
        watching.stop.set()
        watching._thread.join(DEADLINE_S)


Watch = Callable[..., BackgroundWatch]


def test_from_the_queue_to_the_verdict(site: Site, watch: Watch) -> None:
    run = site.launch()
    watching = watch(run)
    final = watching.end()
    assert (final.stage, final.progress.steps_done, final.link) == ("done", 50, "live")
    assert final.verdict is not None
    assert (final.verdict.result, final.verdict.rule, final.no_verdict) == ("PASS", "last step", "")
    assert final.verdict.measured_s == final.progress.step_times_s[-1][1]
    assert final.job is not None
    assert final.job.state == "COMPLETED"
    copy = site.runs.folder(run.id) / "log"
    assert copy.read_bytes() == site.log_of(run).read_bytes()
    assert final.log_bytes == copy.stat().st_size
    assert site.runs.load(run.id).job_state == "COMPLETED"
    assert final == watching.states[-1]
    heading, line = (site.runs.folder(run.id) / "accounting.txt").read_text().splitlines()
    row = dict(zip(heading.split("|"), line.split("|"), strict=True))
    assert (row["JobID"], row["State"], row["ExitCode"]) == (run.job_ids[0], "COMPLETED", "0:0")
    assert (row["NodeList"], row["JobName"]) == (final.job.node_list, final.job.name)

    stages = list(dict.fromkeys(state.stage for state in watching.states))
    order = ["submitted", "queued", "image", "start", "warm-up", "measuring", "done"]
    assert stages == [stage for stage in order if stage in stages]
    assert all(a != b for a, b in zip(watching.states, watching.states[1:], strict=False))
    assert len(watching.times) <= 12 * (watching.times[-1] - watching.times[0]) + 2


def test_the_eta_is_in_seconds_of_the_clock_on_the_wall(site: Site, watch: Watch) -> None:
    fault(site.cluster, "slow", "30")  # a step takes a fifth of a second, so that several polls happen meanwhile
    watching = watch(site.launch())
    state = watching.wait_for(lambda state: state.eta_s is not None and 10 <= state.progress.steps_done < 40)
    assert state.eta_s is not None
    # At most 40 steps of about 60 simulated seconds; the simulation is 300 times as fast.
    assert state.eta_s < 60
    assert state.stage == "measuring"
    assert state.verdict is not None
    assert state.verdict.reasons[0].startswith("So far: median of ")


def test_a_hydra_run(site: Site, watch: Watch) -> None:
    fault(site.cluster, "slow", "0.2")
    final = watch(site.launch(HYDRA)).end()
    assert (final.stage, final.progress.steps_done) == ("done", 50)
    assert final.verdict is not None
    assert (final.verdict.result, final.verdict.ratio > 4) == ("WARN", True)  # no cluster is five times as fast


def test_a_failed_run_has_a_reason_and_no_verdict(site: Site, watch: Watch) -> None:
    fault(site.cluster, "fail-at-step", "7")
    final = watch(site.launch()).end()
    assert (final.stage, final.progress.steps_done, final.verdict) == ("failed", 7, None)
    assert final.why_failed == training_reason(OUT_OF_GPU_MEMORY)
    assert final.progress.failure is not None
    assert "CUDA out of memory" in final.progress.failure.line
    assert "after 7 of 50 steps" in final.no_verdict


def test_a_container_that_does_not_start_is_explained_by_the_batch_output(site: Site, watch: Watch) -> None:
    fault(site.cluster, "queue-wait", "120")
    run = site.launch()
    image = Path(direct_spec(run).container_image)
    image.unlink()
    try:
        final = watch(run).end()
    finally:
        image.write_bytes(IMAGE)
    assert (final.stage, final.verdict) == ("failed", None)
    assert final.why_failed == "The container could not be started."


def test_a_cancelled_run(site: Site, watch: Watch) -> None:
    fault(site.cluster, "hang-at-step", "10")
    run = site.launch()
    watching = watch(run)
    watching.wait_for(lambda state: state.progress.steps_done == 10)
    site.session().cancel(run.job_ids[0])
    final = watching.end()
    assert (final.stage, final.verdict, final.progress.failure) == ("cancelled", None, None)
    assert "after 10 of 50 steps" in final.no_verdict


def test_repeated_disconnects_lose_no_bytes_of_the_log(site: Site, watch: Watch) -> None:
    fault(site.cluster, "slow", "10")
    run = site.launch()
    watching = watch(run)
    for steps in (2, 12, 22, 32):
        watching.wait_for(lambda state: state.progress.steps_done >= steps)  # noqa: B023 - called in this iteration only
        drop_connections(site.cluster)
    final = watching.end()
    assert (final.stage, final.progress.steps_done) == ("done", 50)
    assert (site.runs.folder(run.id) / "log").read_bytes() == site.log_of(run).read_bytes()


def test_a_lost_link_is_reported_and_restored(site: Site, watch: Watch) -> None:
    fault(site.cluster, "hang-at-step", "10")
    watching = watch(site.launch())
    watching.wait_for(lambda state: state.progress.steps_done == 10 and state.link == "live")
    refuse(site.cluster, True)
    drop_connections(site.cluster)
    lost = watching.wait_for(lambda state: state.link == "lost")
    assert lost.job is not None
    assert lost.job.state == "RUNNING"
    assert lost.link_note
    before = len(watching.states)
    refuse(site.cluster, False)
    fault(site.cluster, "hang-at-step", None)
    assert watching.end().stage == "done"
    assert watching.states[-1].link == "live"
    assert len(watching.states) > before


def test_a_failed_poll_changes_only_a_note(site: Site, watch: Watch) -> None:
    fault(site.cluster, "hang-at-step", "10")
    watching = watch(site.launch())
    watching.wait_for(lambda state: state.progress.steps_done == 10 and state.job and state.job.state == "RUNNING")
    fault(site.cluster, "controller-down")
    noted = watching.wait_for(lambda state: "squeue" in state.slurm_note)
    assert noted.job is not None
    assert (noted.job.state, noted.link, noted.link_note) == ("RUNNING", "live", "")
    fault(site.cluster, "hang-at-step", None)
    watching.wait_for(lambda state: state.progress.steps_done == 50)
    fault(site.cluster, "controller-down", None)
    final = watching.end()
    assert (final.stage, final.slurm_note) == ("done", "")


@pytest.mark.parametrize("connected", [True, False])
def test_stop_is_heeded_within_half_a_second(
    site: Site, watch: Watch, connected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the stop, the monitor waits for events at most once; no wait takes half a second."""
    waits: list[float] = []

    class Inbox(SimpleQueue[WatchEvent]):
        def get(self, block: bool = True, timeout: float | None = None) -> WatchEvent:
            waits.append(threading.TIMEOUT_MAX if timeout is None else timeout)
            return super().get(block, timeout)

    monkeypatch.setattr("llmb_tui.watch.monitor.SimpleQueue", Inbox)
    fault(site.cluster, "hang-at-step", "10")
    watching = watch(site.launch())
    watching.wait_for(lambda state: state.progress.steps_done == 10)
    if not connected:
        refuse(site.cluster, True)
        drop_connections(site.cluster)
        watching.wait_for(lambda state: state.link == "lost")
    watching.stop.set()
    before = len(waits)
    assert watching.end().progress.steps_done == 10
    assert len(waits) <= before + 1
    assert max(waits) < 0.5


def test_reopening_shows_everything_immediately(site: Site, watch: Watch) -> None:
    fault(site.cluster, "hang-at-step", "20")
    run = site.launch()
    first = watch(run)
    first.wait_for(lambda state: state.progress.steps_done == 20)
    first.stop.set()
    first.end()
    second = watch(run)
    assert second.wait_for(lambda _: True).progress.steps_done == 20
    fault(site.cluster, "hang-at-step", None)
    assert second.end().stage == "done"
    assert (site.runs.folder(run.id) / "log").read_bytes() == site.log_of(run).read_bytes()


def test_a_finished_run_is_replayed_without_the_cluster(site: Site, watch: Watch) -> None:
    run = site.launch()
    final = watch(run).end()
    refuse(site.cluster, True)
    replayed = RunRecords(site.runs).record(site.runs.load(run.id)).state
    assert (replayed.stage, replayed.progress, replayed.verdict) == ("done", final.progress, final.verdict)
    assert replayed.link == "closed"


def test_watching_a_finished_run_again_ends_at_once(site: Site, watch: Watch) -> None:
    run = site.launch()
    final = watch(run).end()
    again = watch(site.runs.load(run.id)).end()
    assert (again.stage, again.verdict) == ("done", final.verdict)


def test_a_run_whose_job_is_unknown_to_slurm_fails_after_a_while(site: Site, watch: Watch) -> None:
    run = site.launch()
    final = watch(replace(run, job_ids=("987654",)), gone_after_s=0.5).end()
    assert (final.stage, final.job) == ("failed", None)
    assert "no longer knows" in final.slurm_note
    assert "before its first step" in final.no_verdict


def test_a_run_without_a_job_has_a_reason(site: Site) -> None:
    run = replace(site.launch(), submission="refused", job_ids=(), note="a note")
    published: list[RunState] = []
    final = site.monitor(run).watch(published.append, threading.Event())
    assert published == [final]
    assert (final.stage, final.no_verdict) == ("submitted", "a note")


def test_after_a_restart_the_newest_log_counts_and_the_old_copy_stays(site: Site, watch: Watch) -> None:
    run = site.launch()
    first = watch(run)
    first.end()
    old = (site.runs.folder(run.id) / "log").read_bytes()
    newer = old.replace(b"train_step_timing in s: ", b"train_step_timing in s: 9")
    site.log_of(run, restart=1).write_bytes(newer)
    final = watch(run).end()
    assert final.log_name == "log.1"
    assert (site.runs.folder(run.id) / "log").read_bytes() == old
    assert (site.runs.folder(run.id) / "log.1").read_bytes() == newer
    assert final.verdict is not None
    assert final.verdict.result == "FAIL"


def test_a_replaced_log_is_reported_and_its_copy_kept(site: Site, watch: Watch) -> None:
    run = site.launch()
    watch(run).end()
    copy = site.runs.folder(run.id) / "log"
    before = copy.read_bytes()
    site.log_of(run).write_bytes(b"another log\n")
    final = watch(run).end()
    assert "was replaced" in final.link_note
    assert copy.read_bytes() == before
    assert final.stage == "done"


def unknown_host(site: Site) -> SlurmCluster:
    """Return a session whose first connection asks the user to confirm the host key."""
    site.sessions.append(SlurmCluster(replace(site.cluster.profile, known_hosts=str(site.places.state / "nobody"))))
    return site.sessions[-1]


@pytest.mark.parametrize("person", [None, Person(accepts=False)], ids=["nobody is there", "who is there says no"])
def test_a_login_that_is_refused_ends_the_watch(site: Site, person: Person | None) -> None:
    run = site.launch()
    session = unknown_host(site)
    final = BackgroundWatch(Monitor(session, site.runs, run, JobPoller(session)), person).end()
    assert person is None or len(person.host_keys) == 1
    assert final.link == "closed"
    assert final.link_note
    assert (final.stage, final.no_verdict) == ("submitted", "No step yet.")


def test_the_user_is_prompted_before_any_thread_connects(site: Site) -> None:
    run = site.launch()
    session, person = unknown_host(site), Person(accepts=True)
    watching = BackgroundWatch(Monitor(session, site.runs, run, JobPoller(session)), person)
    assert watching.end().stage == "done"
    assert watching.states[0].link == "connecting"
    assert len(person.host_keys) == 1


def test_a_single_query_prompts_the_user_too(site: Site) -> None:
    run = site.launch()
    session, person = unknown_host(site), Person(accepts=True)
    assert Monitor(session, site.runs, run, JobPoller(session)).once(person).link == "live"
    assert len(person.host_keys) == 1


def test_a_watch_that_is_stopped_does_not_wait_for_an_answer(site: Site) -> None:
    asked, may_answer = threading.Event(), threading.Event()

    class Absent(Person):
        def accept_host_key(self, host: str, key_type: str, fingerprint: str, note: str = "") -> bool:
            asked.set()
            may_answer.wait(DEADLINE_S)
            return super().accept_host_key(host, key_type, fingerprint, note)

    run = site.launch()
    session = unknown_host(site)
    watching = BackgroundWatch(Monitor(session, site.runs, run, JobPoller(session)), Absent())
    assert asked.wait(DEADLINE_S)
    watching.stop.set()
    try:
        assert watching.end().link == "connecting"
    finally:
        may_answer.set()


def until_single(site: Site, run: Run, condition: Callable[[RunState], bool]) -> RunState:
    """Repeat single queries until the state fulfils the condition; return the state."""

    def queried() -> RunState | None:
        state = site.monitor(run).once()
        return state if condition(state) else None

    return until(queried, "a single query shows such a state")


def test_a_single_query_copies_the_current_log(site: Site) -> None:
    fault(site.cluster, "hang-at-step", "10")
    run = site.launch()
    state = until_single(site, run, lambda state: state.progress.steps_done >= 10)
    assert state.job is not None
    assert (state.stage, state.job.state, state.link) == ("measuring", "RUNNING", "live")
    fault(site.cluster, "controller-down")
    noted = site.monitor(run).once()
    assert (noted.stage, noted.job) == ("measuring", None)
    assert "squeue" in noted.slurm_note
    fault(site.cluster, "controller-down", None)
    site.session().cancel(run.job_ids[0])
    state = until_single(site, run, lambda state: state.stage == "cancelled")
    assert "after 10 of 50 steps" in state.no_verdict


def test_failed_accounting_does_not_disturb_a_watch_and_is_queried_by_the_next(site: Site, watch: Watch) -> None:
    run = site.launch()
    fault(site.cluster, "no-accounting")
    assert watch(run).end().stage == "done"
    path = site.runs.folder(run.id) / "accounting.txt"
    assert not path.exists()
    fault(site.cluster, "no-accounting", None)
    assert site.monitor(site.runs.load(run.id)).once().stage == "done"
    assert "COMPLETED" in path.read_text()


@pytest.mark.parametrize("selection", [NEMOTRON, HYDRA], ids=["nemo2", "hydra"])
def test_sockets_between_nodes_give_a_finished_run_a_warning(site: Site, watch: Watch, selection: Selection) -> None:
    """The log of a run that fell back to sockets looks like any other log."""
    fault(site.cluster, "socket")
    run = site.launch(selection)
    final = watch(run).end()
    assert final.verdict is not None
    assert (final.stage, final.verdict.result) == ("done", "WARN")
    (failed,) = [check for check in final.validity if check.outcome == "failed"]
    text = (site.runs.folder(run.id) / "network.txt").read_text()
    assert (failed.id, failed.source) == ("transport", "network.txt")
    assert "via NET/Socket/0" in failed.line
    assert failed.line in text.splitlines()
    assert failed.line in " ".join(final.verdict.reasons)
    assert text.count("== demo") == run.plan.nodes
    assert "NET/Socket" not in site.log_of(run).read_text()


def test_network_lines_are_copied_once_after_the_end_of_the_run(site: Site, watch: Watch) -> None:
    run = site.launch()
    final = watch(run).end()
    path = site.runs.folder(run.id) / "network.txt"
    assert next(check.outcome for check in final.validity if check.id == "transport") == "ok"
    assert "== demo001\ndemo001:" in path.read_text()
    written = Path(direct_spec(run).task_dir, "nccl")
    path.write_text("as it was")
    assert site.monitor(site.runs.load(run.id)).once().stage == "done"
    assert path.read_text() == "as it was"
    path.unlink()
    away = written.rename(written.with_name("away"))
    assert site.monitor(site.runs.load(run.id)).once().stage == "done"
    assert not path.exists()
    away.rename(written)
    assert site.monitor(site.runs.load(run.id)).once().stage == "done"
    assert path.exists()


def test_a_log_that_was_away_when_its_job_ended_stays_unread_until_it_is_back(
    site: Site, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmb_tui.watch.monitor.PATIENCE_S", 0.0)
    fault(site.cluster, "hang-at-step", "10")
    run = site.launch()
    site.runs.save(replace(run, log_read=False))
    watching = watch(site.runs.load(run.id))
    watching.wait_for(lambda state: state.progress.steps_done == 10)
    log = site.log_of(run)
    away = log.rename(log.with_suffix(".away"))
    site.session().cancel(run.job_ids[0])
    final = watching.end()
    assert (final.stage, final.log_unread, final.verdict) == ("cancelled", True, None)
    assert "is gone" in final.link_note
    assert (site.runs.folder(run.id) / "accounting.txt").is_file()
    looked = site.monitor(site.runs.load(run.id)).once()
    assert (looked.link, looked.log_unread, site.runs.load(run.id).log_read) == ("live", True, False)
    away.rename(log)
    read = site.monitor(site.runs.load(run.id)).once()
    assert (read.log_unread, site.runs.load(run.id).log_read) == (False, True)
    assert "after 10 of 50 steps" in read.no_verdict


def test_a_full_disk_is_not_a_lost_connection(site: Site, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise LlmbError("Could not write run.json.", "No space left on device.")

    run = site.launch()
    monkeypatch.setattr(Runs, "save_states", full)
    looked = site.monitor(run).once()
    assert (looked.link, looked.link_note) == ("live", "")
    assert watch(run).end().stage == "done"


def test_a_log_that_was_read_to_its_end_may_be_removed(
    site: Site, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmb_tui.watch.monitor.PATIENCE_S", 3600.0)
    run = site.launch()
    final = watch(run).end()
    site.log_of(run).unlink()
    again = watch(site.runs.load(run.id)).end()
    assert (again.stage, again.verdict, again.log_unread) == ("done", final.verdict, False)


def test_that_a_log_was_read_to_its_end_is_remembered(site: Site, watch: Watch) -> None:
    run = site.launch()
    site.runs.save(replace(run, log_read=False, job_state="COMPLETED"))
    unread = RunRecords(site.runs).record(site.runs.load(run.id)).state
    assert (unread.log_unread, unread.verdict) == (True, None)
    assert "has not been read" in unread.no_verdict
    final = watch(site.runs.load(run.id)).end()
    assert (final.log_unread, final.progress.steps_done) == (False, 50)
    assert site.runs.load(run.id).log_read
