"""`Suites`: the suites that this machine remembers, one folder each, and their progress.

`run_ids` resolves an argument that may name a run or a suite.
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
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line
from llmb_tui.launch.naming import new_run_id
from llmb_tui.launch.policy import Policy
from llmb_tui.launch.runs import Runs
from llmb_tui.plan.selection import Selection
from llmb_tui.store import documents
from llmb_tui.store.files import exclusive_lock, locked
from llmb_tui.store.paths import UserPaths
from llmb_tui.suites.suite import Suite, SuiteRow
from llmb_tui.suites.suite_plan import SuitePlan, plan_suite
from llmb_tui.suites.suite_progress import SuiteProgress, progress_of
from llmb_tui.watch.run_records import RunRecords
from llmb_tui.watch.state import RunRecord

_ID = re.compile(r"s[0-9]{12}[a-z0-9]{4}")
_LISTS = "`llmb-tui suite list` lists suites, `llmb-tui jobs` runs."


class SuiteChangedError(LlmbError):
    """An active suite of this name requests something else. Exit code 1."""

    def __init__(self, suite: Suite, wanted: Suite) -> None:
        difference = _difference(suite, wanted)
        details = f" ({difference})" if difference else ""
        super().__init__(
            f"Suite {suite.id} ({suite.name}) is unfinished and differs from this one.",
            f"The content has changed since its submission{details}. Nothing was submitted.",
            f"`llmb-tui suite submit {suite.id}` continues the old one, `llmb-tui suite cancel {suite.id}` ends it; "
            "`--new` starts a second one.",
            exit_code=1,
        )


@dataclass(frozen=True, slots=True)
class Suites:
    """Stored suites. A suite's folder has `suite.json`, and `lock`, which its submitter locks. Thread-safe."""

    places: UserPaths
    runs: Runs
    run_records: RunRecords
    catalog: Catalog
    clusters: Clusters
    policy: Policy

    def keep(self, suite: Suite, *, new: bool = False) -> Suite:
        """Store a suite, with ids for it and its rows' runs; return it when it is on disk.

        If a suite of the same content is unfinished, return that one, unless `new` is set. Raises SuiteChangedError if
        an unfinished suite of the same name has other content.
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
        """Unfinished suite that `keep` would continue; None: it would store a new one. Raises as `keep` does."""
        if new:
            return None
        same_name = [stored for stored in self.all() if _is_alike(stored, suite) and self.progress(stored).unfinished]
        same = next((stored for stored in same_name if stored.digest == suite.digest), None)
        if same is None and same_name:
            raise SuiteChangedError(same_name[0], suite)
        return same

    def submitted(self, suite: Suite) -> Suite:
        """Newest suite of the same content, unfinished ones first; or a newer unfinished one of its name.

        Flags change the content of a file. Raises LlmbError (exit code 1) if there is none, or if there are several.
        """
        alike = [stored for stored in self.all() if _is_alike(stored, suite)]
        unfinished = [stored for stored in alike if self.progress(stored).unfinished]
        same = [stored for stored in alike if stored.digest == suite.digest]
        first = [stored for stored in unfinished if stored in same] or [
            stored for stored in alike if stored in unfinished or stored in same
        ]
        if not first:
            last = f"`llmb-tui suite watch {alike[0].id}` shows the last suite of that name, " if alike else ""
            fix = f"{last}`llmb-tui suite list` lists suites, `llmb-tui suite submit` submits one."
            raise LlmbError(f"{suite.name} was not submitted, or its content has changed since.", "", fix, exit_code=1)
        if first[0] not in same and len(unfinished) > 1:
            what = f"Several suites named {suite.name} are unfinished, and none has exactly this content."
            raise LlmbError(
                what, "", f"Name one by its id: {', '.join(stored.id for stored in unfinished)}.", exit_code=1
            )
        return first[0]

    def save(self, suite: Suite) -> Suite:
        """Write a suite; it is on disk when this returns."""
        documents.save(self.places.suites / suite.id / "suite.json", suite)
        return suite

    def change(self, suite_id: str, change: Callable[[Suite], Suite]) -> Suite:
        """Change a suite under its lock, so that no change of another program is lost; return the result."""
        with locked(self.places.suites):
            return self.save(change(self.load(suite_id)))

    def with_new_run(self, suite_id: str, row: SuiteRow) -> Suite:
        """Give a row whose run certainly has no job and never will a new run; save and return the suite."""
        return self.change(suite_id, lambda suite: suite.with_row(*self._with_runs((row,), suite.run_ids)))

    def load(self, suite_id: str) -> Suite:
        """Read a suite. Raises LlmbError: exit code 1 if there is none, 2 if its file cannot be read."""
        if not self.has(suite_id):
            raise LlmbError(f"There is no suite {clean_line(suite_id)[:80]}.", fix=_LISTS, exit_code=1)
        path = self.places.suites / suite_id / "suite.json"
        suite = documents.load(path, Suite, only_finite=True)
        if suite.id != suite_id or not suite.rows or not all(row.run_id for row in suite.rows):
            why = "It belongs to another folder, or has rows without runs."
            raise LlmbError(f"{path} is not valid.", why, "Restore the file from a backup, or move it away.")
        return suite

    def has(self, name: str) -> bool:
        """Whether this is the id of a stored suite."""
        return bool(_ID.fullmatch(name)) and (self.places.suites / name / "suite.json").is_file()

    def all(self) -> tuple[Suite, ...]:
        """Every suite, newest first. Raises LlmbError for an unreadable file, because its submissions are unknown."""
        try:
            stored = [self.load(name) for name in os.listdir(self.places.suites) if self.has(name)]
        except FileNotFoundError:
            return ()
        return tuple(sorted(stored, key=lambda suite: (suite.created_at, suite.id), reverse=True))

    def run_ids(self, name: str) -> tuple[str, ...]:
        """Stored runs of a suite, in order; for the id of a run, the run itself. Raises LlmbError."""
        if self.has(name):
            return tuple(run_id for run_id in self.load(name).run_ids if self.runs.has(run_id))
        with contextlib.suppress(LlmbError):  # the name cannot be an id
            if self.runs.has(name):
                return (name,)
        raise LlmbError(f"There is no run and no suite {clean_line(name)[:80]}.", fix=_LISTS, exit_code=1)

    def plan(self, suite: Suite, free_nodes: int | None = None) -> SuitePlan:
        """`plan_suite` on the suite's cluster, or without one if it is no longer saved."""
        try:
            profile = self.clusters.profile(suite.cluster)
        except LlmbError:
            if not suite.id:
                raise
            profile = None
        return plan_suite(suite, self.catalog, profile, self.policy, free_nodes)

    def progress(self, suite: Suite) -> SuiteProgress:
        """Progress by the data on this machine. Opens no connection."""
        return progress_of(self.plan(suite), self.records(suite))

    def records(self, suite: Suite) -> dict[str, RunRecord | LlmbError]:
        """Records of its stored runs, by run id; for a run that cannot be read, the reason."""
        records: dict[str, RunRecord | LlmbError] = {}
        for run_id in suite.run_ids:
            try:
                if self.runs.has(run_id):
                    records[run_id] = self.run_records.record(self.runs.load(run_id))
            except LlmbError as error:
                records[run_id] = error
        return records

    def lock(self, suite_id: str) -> contextlib.AbstractContextManager[bool]:
        """Lock a suite for this thread among all programs on this machine; False if another holds the lock."""
        return exclusive_lock(self.places.suites / suite_id)

    def _with_runs(self, rows: tuple[SuiteRow, ...], taken: Collection[str] = ()) -> tuple[SuiteRow, ...]:
        """Give each row the id of a new run."""
        ids: dict[str, None] = {}
        while len(ids) < len(rows):
            if (run_id := new_run_id(time.time())) not in taken and not self.runs.has(run_id):
                ids[run_id] = None
        return tuple(replace(row, run_id=run_id) for row, run_id in zip(rows, ids, strict=True))


def _is_alike(first: Suite, second: Suite) -> bool:
    """Whether both have the same content, or the same name on the same cluster."""
    return first.digest == second.digest or (first.name, first.cluster) == (second.name, second.cluster)


def _difference(going: Suite, wanted: Suite) -> str:
    """Differences from an unfinished suite, as far as they can be described."""
    before, new = _conduct(going), _conduct(wanted)
    parts = [f"{word} is {before[word]} there and {new[word]} here" for word in new if before[word] != new[word]]
    parts += ["its runs differ"] if _runs(going) != _runs(wanted) else []
    return ", ".join(parts) or "its rows are named differently, as in an older version"


def _conduct(suite: Suite) -> dict[str, str]:
    """Way of submission, by the flag or key of a file that sets it."""
    numbers = {"`--at-most`": suite.at_most, "`--stop-after`": suite.stop_after, "`--shuffle`": suite.shuffle}
    words = {flag: "not given" if number is None else str(number) for flag, number in numbers.items()}
    procedures = ", ".join(sorted({row.procedure for row in suite.rows}))
    return {**words, "`chain`": "on" if suite.chain else "off", "`--procedure`": procedures}


def _runs(suite: Suite) -> Counter[Selection]:
    """Runs in any order, without the run whose layout is found on the way."""
    return Counter(row.selection for row in suite.rows if not row.of_best)
