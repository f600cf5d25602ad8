"""`Suites`: the suites that this machine remembers, one folder each, and how they stand.

Whoever takes a run or a suite as argument asks `run_ids`.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.clusters import Clusters
from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean_line
from llmb_tui.launch.naming import new_run_id
from llmb_tui.launch.policy import Policy
from llmb_tui.launch.runs import Runs
from llmb_tui.plan.selection import Selection
from llmb_tui.store import documents
from llmb_tui.store.files import held, locked
from llmb_tui.store.paths import Places
from llmb_tui.suites.suite import Suite, SuiteRow
from llmb_tui.suites.suite_plan import SuitePlan, plan_suite
from llmb_tui.suites.suite_progress import SuiteProgress, progress_of
from llmb_tui.watch.run_records import RunRecords
from llmb_tui.watch.state import RunRecord

_ID = re.compile(r"s[0-9]{12}[a-z0-9]{4}")
_LISTS = "`llmb-tui suite list` lists suites, `llmb-tui jobs` runs."


class SuiteChanged(Trouble):
    """A suite of this name goes on that asks for something else. Exit code 1."""

    def __init__(self, suite: Suite, wanted: Suite) -> None:
        difference = _difference(suite, wanted)
        otherwise = f" ({difference})" if difference else ""
        super().__init__(
            f"Suite {suite.id} ({suite.name}) goes on, and asks for something else.",
            f"What is submitted now is not what it was submitted from{otherwise}: nothing was sent.",
            f"`llmb-tui suite submit {suite.id}` goes on with that one, `llmb-tui suite cancel {suite.id}` ends it; "
            "`--new` begins another beside it.",
            exit_code=1,
        )


@dataclass(frozen=True, slots=True)
class Suites:
    """A suite's folder holds `suite.json`, and `lock`, which its submitter holds. Thread-safe."""

    places: Places
    runs: Runs
    run_records: RunRecords
    catalog: Catalog
    clusters: Clusters
    policy: Policy

    def keep(self, suite: Suite, *, new: bool = False) -> Suite:
        """The suite with an id, and its rows with those of their runs; on the disk when this returns.

        Where one of the same content is unfinished, that one, unless a `new` one is wanted. Raises SuiteChanged where
        one of the same name is unfinished and asks for something else.
        """
        with locked(self.places.suites):
            if (same := self.unfinished(suite, new=new)) is not None:
                return same
            now = time.time()
            while self.has(suite_id := f"s{new_run_id(now)}"):
                pass
            rows, hours = self._with_runs(suite.rows), self.plan(suite).gpu_hours
            return self.save(replace(suite, id=suite_id, created_at=now, rows=rows, agreed_gpu_hours=hours))

    def unfinished(self, suite: Suite, *, new: bool = False) -> Suite | None:
        """The one that `keep` would go on with; None: it would begin another. Raises as `keep` does."""
        if new:
            return None
        going = [one for one in self.all() if _is_alike(one, suite) and self.progress(one).unfinished]
        same = next((one for one in going if one.digest == suite.digest), None)
        if same is None and going:
            raise SuiteChanged(going[0], suite)
        return same

    def submitted(self, suite: Suite) -> Suite:
        """The newest of the same content, one that is unfinished first; or a newer unfinished one of its name.

        Flags make another content of a file. Raises Trouble (exit code 1) where there is none, or it may be several.
        """
        alike = [one for one in self.all() if _is_alike(one, suite)]
        going = [one for one in alike if self.progress(one).unfinished]
        same = [one for one in alike if one.digest == suite.digest]
        first = [one for one in going if one in same] or [one for one in alike if one in going or one in same]
        if not first:
            last = f"`llmb-tui suite watch {alike[0].id}` says how the last of its name ended, " if alike else ""
            fix = f"{last}`llmb-tui suite list` lists suites, `llmb-tui suite submit` submits one."
            raise Trouble(f"{suite.name} was not submitted, or is another by now.", "", fix, exit_code=1)
        if first[0] not in same and len(going) > 1:
            what = f"Several suites {suite.name} go on, and none of them is just this."
            raise Trouble(what, "", f"Name one by its id: {', '.join(one.id for one in going)}.", exit_code=1)
        return first[0]

    def save(self, suite: Suite) -> Suite:
        """Write it; it is on the disk when this returns."""
        documents.save(self.places.suites / suite.id / "suite.json", suite)
        return suite

    def change(self, suite_id: str, change: Callable[[Suite], Suite]) -> Suite:
        """The suite as it then is; no other change of another program is lost."""
        with locked(self.places.suites):
            return self.save(change(self.load(suite_id)))

    def with_new_run(self, suite_id: str, row: SuiteRow) -> Suite:
        """The suite, saved, with another run for a row whose run certainly has no job and never will."""
        return self.change(suite_id, lambda suite: suite.with_row(*self._with_runs((row,), suite.run_ids)))

    def load(self, suite_id: str) -> Suite:
        """Read one. Raises Trouble: exit code 1 if there is none, 2 if its file cannot be read."""
        if not self.has(suite_id):
            raise Trouble(f"There is no suite {clean_line(suite_id)[:80]}.", fix=_LISTS, exit_code=1)
        path = self.places.suites / suite_id / "suite.json"
        suite = documents.load(path, Suite)
        if suite.id != suite_id or not suite.rows or not all(row.run_id for row in suite.rows):
            why = "It is not the suite of this folder, or has rows without runs."
            raise Trouble(f"{path} cannot be right.", why, "Restore the file from a backup, or move it away.")
        return suite

    def has(self, name: str) -> bool:
        """True for the id of a suite that was kept here."""
        return bool(_ID.fullmatch(name)) and (self.places.suites / name / "suite.json").is_file()

    def all(self) -> tuple[Suite, ...]:
        """Every suite, newest first. Raises Trouble for a file that cannot be read: what it has sent is not known."""
        try:
            found = [self.load(name) for name in os.listdir(self.places.suites) if self.has(name)]
        except FileNotFoundError:
            return ()
        return tuple(sorted(found, key=lambda one: (one.created_at, one.id), reverse=True))

    def run_ids(self, name: str) -> tuple[str, ...]:
        """The runs of a suite that were stored, in order; the run itself, for the id of a run. Raises Trouble."""
        if self.has(name):
            return tuple(run_id for run_id in self.load(name).run_ids if self.runs.has(run_id))
        with contextlib.suppress(Trouble):  # of what can be no id at all
            if self.runs.has(name):
                return (name,)
        raise Trouble(f"There is no run and no suite {clean_line(name)[:80]}.", fix=_LISTS, exit_code=1)

    def plan(self, suite: Suite, free_nodes: int | None = None) -> SuitePlan:
        """`plan_suite` on its cluster, as far as that is still saved."""
        try:
            profile = self.clusters.profile(suite.cluster)
        except Trouble:
            if not suite.id:
                raise
            profile = None
        return plan_suite(suite, self.catalog, profile, self.policy, free_nodes)

    def progress(self, suite: Suite) -> SuiteProgress:
        """How it stands by what this machine has of its runs. Takes no connection."""
        return progress_of(self.plan(suite), self.records(suite))

    def records(self, suite: Suite) -> dict[str, RunRecord | Trouble]:
        """Those of its runs that were stored, by run id; of one that cannot be read, why."""
        found: dict[str, RunRecord | Trouble] = {}
        for run_id in suite.run_ids:
            try:
                if self.runs.has(run_id):
                    found[run_id] = self.run_records.record(self.runs.load(run_id))
            except Trouble as trouble:
                found[run_id] = trouble
        return found

    def lock(self, suite_id: str) -> contextlib.AbstractContextManager[bool]:
        """Hold a suite for this thread alone, among all programs here; False where another has it."""
        return held(self.places.suites / suite_id)

    def _with_runs(self, rows: tuple[SuiteRow, ...], taken: Collection[str] = ()) -> tuple[SuiteRow, ...]:
        """Each with the id of a run that there is not yet."""
        ids: dict[str, None] = {}
        while len(ids) < len(rows):
            if (run_id := new_run_id(time.time())) not in taken and not self.runs.has(run_id):
                ids[run_id] = None
        return tuple(replace(row, run_id=run_id) for row, run_id in zip(rows, ids, strict=True))


def _is_alike(one: Suite, other: Suite) -> bool:
    """Of the same content, or of the same name on the same cluster."""
    return one.digest == other.digest or (one.name, one.cluster) == (other.name, other.cluster)


def _difference(going: Suite, wanted: Suite) -> str:
    """In what a suite is another than one that goes on, as far as that can be said in words."""
    before, now = _conduct(going), _conduct(wanted)
    parts = [f"{word} is {before[word]} there and {now[word]} here" for word in now if before[word] != now[word]]
    parts += ["its runs are others"] if _runs(going) != _runs(wanted) else []
    return ", ".join(parts) or "its rows are called otherwise, as an older version did"


def _conduct(suite: Suite) -> dict[str, str]:
    """How it is sent, by the flag or the word of a file that says it."""
    numbers = {"`--at-most`": suite.at_most, "`--stop-after`": suite.stop_after, "`--shuffle`": suite.shuffle}
    words = {flag: "not given" if number is None else str(number) for flag, number in numbers.items()}
    procedures = ", ".join(sorted({row.procedure for row in suite.rows}))
    return {**words, "`chain`": "on" if suite.chain else "off", "`--procedure`": procedures}


def _runs(suite: Suite) -> Counter[Selection]:
    """What it runs, in any order; without the run whose layout is found on the way."""
    return Counter(row.selection for row in suite.rows if not row.of_best)
