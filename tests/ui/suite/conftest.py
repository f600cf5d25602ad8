"""Services with an unreachable cluster of twelve free nodes, and a runner that submits nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.app import App

from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.cluster.slurm.partition import parse_partitions
from llmb_tui.errors import LlmbError
from llmb_tui.launch.policy import Policy
from llmb_tui.suites.draft import SuiteDraft, draft_of
from llmb_tui.suites.suite import Suite, make_suite
from llmb_tui.suites.suite_progress import SuiteProgress
from llmb_tui.ui.screens.suite import SuiteScreen
from llmb_tui.ui.screens.suite_watch import SuiteWatchScreen
from llmb_tui.watch.state import RunState
from tests.kit.runs import CATALOG, CREATED_AT, NEMOTRON, make_run
from tests.ui.run.conftest import Host, LocalServices
from tests.ui.run.run_states import log_text

DRAFT = draft_of(NEMOTRON, "direct", "eos")
SUITE_ID = "s251009085320ab12"
_PARTITIONS = parse_partitions("batch|batch*|up|4:00:00|12|idle|gpu:8|\nbatch|batch*|up|4:00:00|4|allocated|gpu:8|")


@dataclass
class Sender:
    """Stand-in for `SuiteRunner`: it reports one message, and waits until it is released."""

    services: LocalServices
    sent: list[Suite] = field(default_factory=list)
    cancelled: list[Suite] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    refuses: LlmbError | None = None
    """Error that a cancel raises."""

    def submit(self, suite: Suite, tell: Callable[[str], None], stop: threading.Event, _: object) -> SuiteProgress:
        self.sent.append(suite)
        tell("checking eos for nemotron4 15b on 64")
        while not (stop.is_set() or self.released.wait(0.02)):
            pass
        return self.services.suites.progress(suite)

    def cancel(self, suite: Suite, _: object, __: object) -> tuple[SuiteProgress, tuple[str, ...]]:
        self.cancelled.append(suite)
        self.services.suites.save(replace(suite, cancelled=True))
        if self.refuses is not None:
            raise self.refuses
        return self.services.suites.progress(suite), suite.run_ids[1:3]


class SuiteServices(LocalServices):
    """Services with that cluster and that runner."""

    def __init__(self, root: Path, policy: Policy | None = None) -> None:
        super().__init__(root)
        self.catalog = CATALOG
        self.policy = policy or Policy()
        self.clusters.inventory = lambda *_: SimpleNamespace(partitions=_PARTITIONS)  # type: ignore[assignment, method-assign]
        self.feed.monitor = lambda run_id: SimpleNamespace(once=lambda: RunState(run_id))  # type: ignore[assignment, return-value, method-assign]
        self.sender = Sender(self)
        self.suite_runner = self.sender  # type: ignore[assignment]

    def keep_run(self, run_id: str, job_state: str, steps: int = 0, **changes: Any) -> None:
        """Store a run of the suite, with this number of steps in its log."""
        self.runs.save(make_run(run_id, job_state=job_state, job_ids=(run_id[-1],), **changes))
        if steps:
            (self.runs.folder(run_id) / "log").write_text(log_text(steps))


@pytest.fixture
def open_suite(tmp_path: Path) -> Callable[..., tuple[App[None], SuiteServices]]:
    """Function that makes an app with the screen of a draft, and its services."""

    def make(draft: SuiteDraft = DRAFT, policy: Policy | None = None) -> tuple[App[None], SuiteServices]:
        services = SuiteServices(tmp_path, policy)
        return Host(lambda: SuiteScreen(services, NonInteractivePrompter(), draft)), services  # type: ignore[arg-type, return-value]

    return make


def submitted_suite() -> Suite:
    """Two repeats on 64 GPUs and one on 16, 32 and 128."""
    scales = (64, 64, 16, 32, 128)
    suite = make_suite("scales", "eos", [(replace(NEMOTRON, scale=scale), "direct") for scale in scales], stop_after=3)
    rows = tuple(replace(row, run_id=f"2510090853{index}aaa{index}") for index, row in enumerate(suite.rows))
    return replace(suite, id=SUITE_ID, created_at=CREATED_AT, rows=rows)


@pytest.fixture
def open_watch(tmp_path: Path) -> Callable[..., tuple[App[None], SuiteServices]]:
    """Function that makes an app with a suite whose five runs are done, running, waiting, failed and not submitted."""

    def make(policy: Policy | None = None) -> tuple[App[None], SuiteServices]:
        services = SuiteServices(tmp_path, policy)
        suite = submitted_suite()
        services.suites.save(suite)
        done, runs, waits, failed, _ = suite.run_ids
        services.keep_run(done, "COMPLETED", 50)
        services.keep_run(runs, "RUNNING", 31)
        services.keep_run(waits, "PENDING")
        services.keep_run(failed, "FAILED", 3)
        return Host(lambda: SuiteWatchScreen(services, NonInteractivePrompter(), SUITE_ID)), services

    return make
