"""A simulated Run:ai site over a line that breaks, the stored runs of this machine, and runs to submit."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import pytest

from llmb_tui.cluster.runai.cluster import RunaiCluster
from llmb_tui.cluster.runai.https import trusting
from llmb_tui.errors import LlmbError
from llmb_tui.launch.files import as_json
from llmb_tui.launch.run import Run
from llmb_tui.launch.runai.workload import Placement, creation_request, workload_name
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.spec import RunaiSpec
from llmb_tui.launch.submit import reconcile, submit_once
from llmb_tui.store.journal import Journal
from llmb_tui.store.paths import UserPaths
from tests.kit.runai import FaultySite
from tests.launch.runai.workload_cases import NEMOTRON_340B, intent, request_of
from tests.rig.line import Line


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeat requests without pauses, and read the system's certificates once."""
    monkeypatch.setattr("llmb_tui.cluster.runai.api.trusting", lru_cache(trusting))
    monkeypatch.setattr("llmb_tui.cluster.runai.api.FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr("llmb_tui.launch.runai.delivery.LOOK_EVERY_S", 0.0)
    monkeypatch.setattr("llmb_tui.launch.runai.delivery.ANSWERS_WITHIN_S", 0.05)


@dataclass
class Tally:
    """Counted outcomes of many submissions."""

    troubles: int = 0
    were_unknown: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    twice: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        ended = ", ".join(f"{count} {state}" for state, count in sorted(self.ended.items()))
        return (
            f"{self.troubles} troubles in {sum(self.ended.values())} submissions to Run:ai: {ended} "
            f"({self.were_unknown} were unknown and then settled), {len(self.twice)} twice, {len(self.lost)} lost"
        )


class SubmitSite:
    """The simulated site, and this machine with its runs."""

    def __init__(self, folder: Path, site: FaultySite, line: Line) -> None:
        self.site, self.line = site, line
        self.places = UserPaths(folder / "config", folder / "state")
        self.runs, self.journal = self.program()
        self.made: list[Run] = []
        self._numbers = itertools.count(1)
        site_port = site.base_url.rpartition(":")[2]
        self.profile = replace(site.profile, base_url=f"https://127.0.0.1:{line.port}/{site_port.partition('/')[2]}")
        run, _ = intent(request_of(NEMOTRON_340B, self.profile))
        assert isinstance(run.spec, RunaiSpec)
        self._run, self._spec = run, replace(run.spec, files=(("configs/plan.json", "{}"),))
        with self.cluster() as cluster:
            project = cluster.project()
            self._placed = Placement(project.id, project.cluster_id)

    def program(self) -> tuple[Runs, Journal]:
        """Runs and journal, as another program on this machine reads them."""
        return Runs(self.places), Journal(self.places.journal)

    @contextlib.contextmanager
    def cluster(self) -> Iterator[RunaiCluster]:
        """Connection of one program, with its own login."""
        cluster = RunaiCluster(self.profile)
        cluster.secret.give(self.site.app_secret)
        with contextlib.closing(cluster):
            yield cluster

    def new(self) -> Run:
        """New run, which `settle` will check."""
        run_id = f"251121080102{next(self._numbers):04}"
        spec = replace(self._spec, run_id=run_id, workload=workload_name("pretrain", run_id))
        run = replace(self._run, id=run_id, spec=spec, cluster=self.profile.name)
        self.made.append(run)
        return run

    def script(self, run: Run) -> str:
        """Request that creates the run's workload."""
        assert isinstance(run.spec, RunaiSpec)
        return as_json(creation_request(run.spec, self._placed))

    def submit(self, run: Run, cluster: RunaiCluster) -> Run:
        """Submit the run, as one program on this machine does."""
        return submit_once(cluster, *self.program(), run, self.script(run))

    def reconcile(self, run: Run, cluster: RunaiCluster) -> Run:
        """Settle the run by its workload on the cluster."""
        return reconcile(cluster, *self.program(), run)

    def remembered(self, run: Run) -> Run:
        """The run as this machine has stored it."""
        return self.runs.load(run.id) if self.runs.has(run.id) else run

    def there(self) -> dict[str, list[str]]:
        """Ids of all workloads that were ever created, by name."""
        found: dict[str, list[str]] = {}
        for deleted in (False, True):
            for workload in self.site.workloads.all(deleted=deleted):
                found.setdefault(workload.name, []).append(workload.id)
        return found

    def settle(self, tally: Tally, until: Callable[[Callable[[], bool]], object]) -> None:
        """Reconcile until no run is unknown; then check that every run agrees with the site."""
        self.site.faults.clear()
        unknown = [run for run in self.made if self.remembered(run).submission == "unknown"]
        tally.were_unknown += len(unknown)
        with self.cluster() as cluster:

            def all_known() -> bool:
                unknown[:] = [run for run in unknown if self.reconcile(run, cluster).submission == "unknown"]
                return not unknown

            until(all_known)
        there = self.there()
        for run in map(self.remembered, self.made):
            real = there.pop(run.job_name, [])
            tally.ended[run.submission] += 1
            if len(real) > 1:
                tally.twice.append(f"{run.id}: {real}")
            if list(run.job_ids) != real:
                tally.lost.append(f"{run.id}: {run.submission} {run.job_ids}, but there is {real}. {run.note}")
        assert there == {}, "a workload is of no run"


def suppressed() -> contextlib.suppress:
    """Errors are reported to the user; only stored runs and existing workloads count."""
    return contextlib.suppress(LlmbError)
