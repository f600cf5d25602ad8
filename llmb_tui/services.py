"""`Services`: creates the parts of the program that the screens and the verbs share.

A part that loads a heavy room is created on first use, which may read files or import for a while: screens ask for it
in a thread.
"""

# ruff: noqa: PLC0415 - each part imports its own heavy room
from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Self, TypeVar, overload

from llmb_tui.diagnosis.rules import rules, use_own_rules
from llmb_tui.errors import LlmbError
from llmb_tui.launch.policy import Policy
from llmb_tui.preflight.needs import Sources
from llmb_tui.store.files import remove_leftovers, write_atomic
from llmb_tui.store.journal import Journal
from llmb_tui.store.settings import Settings
from llmb_tui.watch.timing import Timing

if TYPE_CHECKING:
    from llmb_tui.answers.report import Reports
    from llmb_tui.catalog.catalog import Catalog
    from llmb_tui.clusters import Clusters
    from llmb_tui.evidence.export import Exporter
    from llmb_tui.history import History
    from llmb_tui.launch.direct.render import WarmRenderer
    from llmb_tui.launch.launcher import Launcher
    from llmb_tui.launch.notes import Notes
    from llmb_tui.launch.runs import Runs
    from llmb_tui.plan.plan import Plan
    from llmb_tui.plan.selection import ProcedureId
    from llmb_tui.request import RunRequest
    from llmb_tui.store.paths import UserPaths
    from llmb_tui.suites.runner import SuiteRunner
    from llmb_tui.suites.submissions import Submissions
    from llmb_tui.suites.suites import Suites
    from llmb_tui.watch.local_results import LocalResults
    from llmb_tui.watch.runs_feed import RunsFeed

T = TypeVar("T")


class _part(Generic[T]):  # noqa: N801 - used as a decorator, like `property`
    """Property for a part that is created once, by the first thread that needs it.

    Unlike `functools.cached_property` it uses only the lock of the services. Before Python 3.12 `cached_property` has a
    lock for each property: two threads that needed two parts waited for each other.
    """

    def __init__(self, make: Callable[[Services], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, services: None, owner: type[Services]) -> Self: ...
    @overload
    def __get__(self, services: Services, owner: type[Services]) -> T: ...
    def __get__(self, services: Services | None, owner: type[Services]) -> Self | T:
        if services is None:
            return self
        with services.lock:
            parts = vars(services)
            if self._make.__name__ not in parts:
                parts[self._make.__name__] = self._make(services)
            part: T = parts[self._make.__name__]
            return part


class Services:
    """Shared parts of the program, one object each. Thread-safe."""

    def __init__(
        self,
        places: UserPaths,
        settings: Settings | None = None,
        timing: Timing | None = None,
        *,
        read_only: bool = False,
    ) -> None:
        self.lock = threading.RLock()
        """Held while a part is created."""
        self.places = places
        self.settings = settings or Settings()
        self.timing = timing or Timing()
        self.policy = Policy(read_only, self.settings.limits.gpu_hours, self.settings.limits.suite_gpu_hours)
        """Limits that the operator has set."""
        self.sources = Sources()
        """Registries and repositories from which installs download."""
        self.on_broken_file: Callable[[LlmbError], None] | None = None
        """Receives the error of each unreadable preset or profile of the user, once each; the file is then skipped.
        None: the error is raised. Errors of failure rules are never raised."""
        self.before_start: Callable[[], None] | None = None
        """Called in a thread after the first frame is painted, before any file is read."""
        self.interactive = False
        """True if the user stays in the program, so that processes that are slow to start are kept."""
        self._reported: set[str] = set()
        for directory in (places.config, places.state):
            remove_leftovers(directory)
        self.journal = Journal(places.journal)
        use_own_rules(places.failures, self._report)

    @_part
    def clusters(self) -> Clusters:
        """The saved clusters."""
        from llmb_tui.clusters import Clusters

        return Clusters(
            self.places.clusters, self.timing.look_every_s, policy=self.policy, on_broken_file=self._report_or_raise
        )

    @_part
    def runs(self) -> Runs:
        """Records of runs."""
        from llmb_tui.launch.runs import Runs

        return Runs(self.places)

    @_part
    def catalog(self) -> Catalog:
        """The presets. Raises `PresetError` unless `on_broken_file` is set."""
        from llmb_tui.catalog.kept import kept_catalog, kept_text, stamp_of

        stamp = stamp_of((self.places.presets,))
        catalog = kept_catalog(self.places.catalog, stamp)
        if catalog is None:
            from llmb_tui.catalog.load import load_presets

            catalog = load_presets((self.places.presets,), self._report_or_raise)
            if stamp is not None and not catalog.broken:
                with contextlib.suppress(LlmbError, ValueError):  # the cache only saves time
                    write_atomic(self.places.catalog, kept_text(catalog, stamp).encode())
        if self.places.failures.is_dir():
            rules("submit")  # report unreadable rules together with the presets, and not when a job fails
        return catalog

    @_part
    def feed(self) -> RunsFeed:
        """States of all runs, here and on their clusters."""
        from llmb_tui.watch.runs_feed import RunsFeed

        threshold = self.settings.verdict.threshold
        return RunsFeed(self.runs, self.journal, self.clusters, threshold=threshold, timing=self.timing)

    @_part
    def local_results(self) -> LocalResults:
        """Finished benchmarks, by the data on this machine."""
        from llmb_tui.watch.local_results import LocalResults

        return LocalResults(self.feed.records, self.catalog)

    @_part
    def history(self) -> History:
        """Results of the remembered runs."""
        from llmb_tui.history import History

        return History(self.feed.records, self.runs)

    @_part
    def notes(self) -> Notes:
        """Notes on the remembered runs."""
        from llmb_tui.launch.notes import Notes

        return Notes(self.runs)

    @_part
    def reports(self) -> Reports:
        """Reports about runs for other people."""
        from llmb_tui.answers.report import Reports
        from llmb_tui.evidence.reported_run import RunGatherer

        threshold = self.settings.verdict.threshold
        return Reports(RunGatherer(self.runs, self.history, self.notes, self.catalog, threshold), self.suites)

    @property
    def exporter(self) -> Exporter:
        """Exporter of run archives, for the currently saved clusters."""
        from llmb_tui.evidence.export import Exporter

        profiles, threshold = self.clusters.profiles(), self.settings.verdict.threshold
        return Exporter(self.runs, profiles, self.places.presets, threshold=threshold)

    @_part
    def suites(self) -> Suites:
        """Stored suites."""
        from llmb_tui.suites.suites import Suites

        return Suites(self.places, self.runs, self.feed.records, self.catalog, self.clusters, self.policy)

    @_part
    def suite_runner(self) -> SuiteRunner:
        """Submits suites."""
        from llmb_tui.suites.runner import SuiteRunner

        return SuiteRunner(self.suites, self.launcher, self.feed, self.clusters)

    @_part
    def submissions(self) -> Submissions:
        """Suites that this program is currently submitting."""
        from llmb_tui.suites.submissions import Submissions

        return Submissions(self.suite_runner.submit)

    @_part
    def launcher(self) -> Launcher:
        """Checks, installs, prepares and submits requests."""
        from llmb_tui.launch.direct.render import render as render_once
        from llmb_tui.launch.launcher import Launcher

        render = self.renderer if self.interactive else render_once
        return Launcher(self.clusters.cluster, self.catalog, self.runs, self.journal, self.policy, self.sources, render)

    @_part
    def renderer(self) -> WarmRenderer:
        """Writer of batch scripts for an interactive session."""
        from llmb_tui.launch.direct.render import WarmRenderer

        return WarmRenderer()

    def close(self) -> None:
        """End all background work: suites, connections, and the process that renders scripts."""
        if "submissions" in vars(self):
            self.submissions.end()
        self.clusters.close()
        if "renderer" in vars(self):
            self.renderer.close()

    def request(self, cluster: str, plan: Plan, procedure: ProcedureId | None = None) -> RunRequest:
        """Request for a plan on a saved cluster; the default procedure means the cluster's default. Never connects."""
        from llmb_tui.launch.procedures import procedure_on
        from llmb_tui.plan.selection import DEFAULT_PROCEDURE
        from llmb_tui.request import RunRequest

        recipe = self.catalog.recipe(plan.selection.workload, plan.selection.release)
        profile = self.clusters.profile(cluster)
        wanted = procedure or DEFAULT_PROCEDURE
        if wanted == DEFAULT_PROCEDURE:
            wanted = procedure_on(profile, wanted)
        return RunRequest(recipe, plan, profile, wanted)

    def _report(self, problem: LlmbError) -> None:
        if self.on_broken_file is not None and problem.what not in self._reported:
            self._reported.add(problem.what)
            self.on_broken_file(problem)

    def _report_or_raise(self, problem: LlmbError) -> None:
        if self.on_broken_file is None:
            raise problem
        self._report(problem)
