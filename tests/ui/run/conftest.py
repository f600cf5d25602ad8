"""A host for one screen, and services whose monitor does not query a cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.screen import Screen

import llmb_tui.ui
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import NonInteractivePrompter, Prompter
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.clusters import Clusters
from llmb_tui.errors import LlmbError
from llmb_tui.launch.run import Run
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.store.settings import THRESHOLD
from llmb_tui.ui.failure_dialogs import FailureDialogs
from llmb_tui.ui.screens.jobs import JobsScreen
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.watch.job_poller import JobPoller
from llmb_tui.watch.runs_feed import RunsFeed
from llmb_tui.watch.state import RunState
from llmb_tui.watch.timing import Timing
from tests.kit.runs import CREATED_AT, make_run
from tests.ui.run.run_states import log_text

TIMING = Timing(read_every_s=0.3, settle_every_s=0.3)
"""After each key Textual's pilot waits for up to a second, until this process is idle for 20 ms."""
RUN = make_run()


class Standing:
    """A monitor that publishes the given states and then waits until it is stopped."""

    def __init__(self, states: tuple[RunState, ...]) -> None:
        self.states = states
        self.stopped = threading.Event()

    def watch(
        self, publish: Callable[[RunState], None], stop: threading.Event, prompter: Prompter | None = None
    ) -> RunState:
        del prompter  # it does not connect
        for state in self.states:
            publish(state)
        stop.wait()
        self.stopped.set()
        return self.states[-1] if self.states else RunState("")


class OutOfReach:
    """A session without a login; every use raises an error."""

    def __init__(self, profile: ClusterProfile) -> None:
        self.profile = profile

    def connect(self, prompter: Prompter | None = None) -> None:
        """Succeed without a connection."""

    def __getattr__(self, _: str) -> Any:
        raise LlmbError("eos cannot be reached from a test.")


class LocalClusters(Clusters):
    """One unreachable cluster."""

    notice: str | None = None
    observed = False

    def cluster(self, ref: ClusterProfile | str) -> Any:
        return OutOfReach(self.profile(ref) if isinstance(ref, str) else ref)

    login_node = cluster

    def poller(self, ref: ClusterProfile | str) -> JobPoller:
        raise LlmbError(f"{ref} cannot be reached from a test.")

    def profile(self, name: str) -> SlurmProfile:
        return replace(self.profiles()[0], name=name)

    def profiles(self) -> tuple[SlurmProfile, ...]:
        profile = SlurmProfile("eos", "eos-login", "acct", "batch", "/lustre/llmb", notice=self.notice)
        return (replace(profile, read_only=self.observed),)


class LocalFeed(RunsFeed):
    """A feed with a monitor that does not query a cluster."""

    standing: Standing

    def monitor(self, run_id: str) -> Any:  # noqa: ARG002
        return self.standing


class LocalServices(Services):
    """The real services on directories of a test, with unreachable clusters."""

    def __init__(self, root: Path, *states: RunState) -> None:
        super().__init__(UserPaths(root / "config", root / "state"), timing=TIMING)
        self.clusters = LocalClusters(self.places.clusters, 10.0)
        self.standing = Standing(states)
        self.feed = feed = LocalFeed(self.runs, self.journal, self.clusters, threshold=THRESHOLD, timing=TIMING)
        feed.standing = self.standing


class Host(FailureDialogs):
    """An app that shows one screen, with the program's own styles."""

    CSS_PATH = Path(llmb_tui.ui.__file__).with_name("app.tcss")

    def __init__(self, make_screen: Callable[[], Screen[None]]) -> None:
        super().__init__()
        self._make_screen = make_screen

    def on_mount(self) -> None:
        self.push_screen(self._make_screen())


@pytest.fixture
def services_of(tmp_path: Path) -> Callable[..., Services]:
    """Function that makes services with stored runs, whose monitor publishes the given states."""

    def make(runs: Sequence[Run], *published: RunState, log: str = "") -> Services:
        services = LocalServices(tmp_path, *published)
        for run in runs:
            services.runs.save(run)
            if log:
                (services.runs.folder(run.id) / "log").write_bytes(log.encode())
        return services

    return make


@pytest.fixture
def open_run(services_of: Callable[..., Services]) -> Callable[..., tuple[App[None], Services]]:
    """Function that makes an app with the screen of a run (`run=None`: of a missing run), and its services."""

    def make(*published: RunState, run: Run | None = RUN, log: str = "") -> tuple[App[None], Services]:
        services = services_of([run] if run else [], *published, log=log)
        return Host(lambda: RunScreen(services, NonInteractivePrompter(), RUN.id)), services

    return make


# Id, Slurm's state, steps in the log, submission, seconds since it was submitted.
_LISTED = (
    ("aaa1", "RUNNING", 31, "submitted", 60),
    ("aaa2", "PENDING", 0, "submitted", 120),
    ("aaa3", "COMPLETED", 50, "submitted", 4_000),
    ("aaa4", "FAILED", 3, "submitted", 8_000),
    ("aaa5", "CANCELLED", 10, "submitted", 90_000),
    ("aaa6", None, 0, "unknown", 200_000),
)


@pytest.fixture
def open_jobs(services_of: Callable[..., Services]) -> Callable[..., tuple[App[None], Services]]:
    """Function that makes an app with six runs of every kind, or the given ones of them, and its services."""

    def make(runs: Sequence[str] = ("aaa1", "aaa2", "aaa3", "aaa4", "aaa5", "aaa6")) -> tuple[App[None], Services]:
        services = services_of([])
        for run_id, job_state, count, submission, ago in _LISTED:
            if run_id not in runs:
                continue
            job_ids = (run_id[-1],) if submission == "submitted" else ()
            at = CREATED_AT - ago
            run = make_run(run_id, job_state=job_state, submission=submission, job_ids=job_ids, created_at=at)
            services.runs.save(replace(run, submitted_at=at if job_ids else None))
            if count:
                (services.runs.folder(run_id) / "log").write_text(log_text(count))
        return Host(lambda: JobsScreen(services, NonInteractivePrompter(), clock=lambda: CREATED_AT)), services

    return make
