"""`progress_of`: progress of a suite, folded from the records of its runs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from llmb_tui.errors import LlmbError
from llmb_tui.language.states import Label, RowStanding, VerdictResult, row_label
from llmb_tui.language.text import plural
from llmb_tui.suites.suite_plan import PlannedRow, SuitePlan, wall_s
from llmb_tui.watch.progress import after_warm_up
from llmb_tui.watch.report import label_of, state_word
from llmb_tui.watch.state import ENDED, FAILED, RunRecord
from llmb_tui.watch.verdict import rule_s

OVER: tuple[RowStanding, ...] = ("done", "refused", "failed", "cancelled")
_IN_QUEUE = ("submitted", "queued")


@dataclass(frozen=True, slots=True)
class RowProgress:
    planned: PlannedRow
    standing: RowStanding
    record: RunRecord | None
    """Record of its run; None until the run is stored, and if it cannot be read."""
    error: LlmbError | None = None
    """Reason why its run cannot be read; it may have a job, so it is never submitted again."""

    @property
    def state(self) -> str:
        """State in one word, as `jobs` reports it; `not sent` before that."""
        return state_word(self.record.run, self.record.state) if self.record else self.standing

    @property
    def label(self) -> Label:
        """State for display."""
        return label_of(self.record.run, self.record.state) if self.record else row_label(self.standing)

    @property
    def result(self) -> VerdictResult | None:
        """Verdict of a row that is done; None for any other row, and without a verdict."""
        verdict = self._done.state.verdict if self._done else None
        return verdict.result if verdict else None

    @property
    def step_time_s(self) -> float | None:
        """Step time by the recipe's rule, seconds, for a row that is done; None for any other."""
        done = self._done
        return rule_s(done.run.plan, done.run.rule, done.state.progress) if done else None

    @property
    def steps_s(self) -> tuple[float, ...]:
        """Step times after the warm-up, for a row that is done; empty for any other."""
        return tuple(after_warm_up(self._done.state.progress.step_times_s)) if self._done else ()

    @property
    def unread(self) -> bool:
        """Whether its job has ended and its log on the cluster may have lines that were not read."""
        return self.record is not None and self.record.state.log_unread

    @property
    def _done(self) -> RunRecord | None:
        return self.record if self.standing == "done" else None

    @property
    def left_s(self) -> float:
        """Expected remaining seconds of training."""
        if self.standing in OVER:
            return 0.0
        if self.record is not None and self.standing == "running":
            state = self.record.state
            if state.eta_s is not None:
                return state.eta_s
            total = state.progress.steps_total or self.planned.plan.steps
            return self.planned.expected_s * max(0.0, 1 - state.progress.steps_done / total) if total else 0.0
        return self.planned.expected_s

    @property
    def gpu_hours_left(self) -> float:
        """Expected remaining GPU-hours."""
        return self.planned.plan.selection.scale * self.left_s / 3600


@dataclass(frozen=True)
class SuiteProgress:
    """Progress of the whole suite."""

    plan: SuitePlan
    rows: tuple[RowProgress, ...]
    free_nodes: int | None = None
    given_up: frozenset[str] | None = None
    """Ids of runs for whose logs the submitter has waited long enough. None for a viewer, which waits for no log."""

    def count(self, *standings: RowStanding) -> int:
        """Number of rows in any of these states."""
        return sum(row.standing in standings for row in self.rows)

    def results(self, result: VerdictResult | None) -> int:
        """Number of rows that are done with this verdict; None: without one."""
        return sum(row.standing == "done" and row.result == result for row in self.rows)

    @property
    def unread(self) -> int:
        """Number of rows that are done without their logs being read to the end, so that their verdicts are unknown."""
        return sum(row.standing == "done" and row.unread for row in self.rows)

    @property
    def unreadable(self) -> int:
        """Number of rows whose stored runs cannot be read; waiting does not change them."""
        return sum(row.error is not None for row in self.rows)

    @property
    def failures(self) -> int:
        """Number of rejected or failed runs, without those that a user has cancelled."""
        return self.count("refused", "failed")

    @property
    def stopped(self) -> bool:
        """Whether nothing more is submitted: it was cancelled, too many runs failed, or a `tune` found no layout."""
        most = self.plan.suite.stop_after
        if self.plan.suite.cancelled or (most is not None and self.failures >= most):
            return True
        return self._has_no_layout

    @property
    def _has_no_layout(self) -> bool:
        short_runs = [row for row in self.rows if not row.planned.row.of_best]
        return len(short_runs) < len(self.rows) and not self.trying and not any(row.steps_s for row in short_runs)

    @property
    def trying(self) -> bool:
        """Whether short runs of a `tune` are active or still to be submitted, or their logs are awaited."""
        short_runs = [row for row in self.rows if not row.planned.row.of_best and row.error is None]
        return any(row.standing not in OVER or self._awaits_log(row) for row in short_runs)

    @cached_property
    def over(self) -> bool:
        """Whether none of its runs is active, and nothing more will be submitted."""
        going = self.count("unknown", "waiting", "running")
        return going == 0 and (self.stopped or self.count("not sent") == 0)

    @property
    def unfinished(self) -> bool:
        """Whether another `submit` would continue it: it is not over, rows were rejected, or logs may still arrive."""
        to_come = self._has_no_layout and any(row.unread for row in self.rows)
        return not self.over or (not self.plan.suite.cancelled and (self.count("refused") > 0 or to_come))

    @property
    def to_send(self) -> int:
        """Number of runs that another `submit` would submit: rejected rows and remaining rows."""
        if self.plan.suite.cancelled:
            return 0
        return self.count("refused") + (0 if self.stopped else self.count("not sent"))

    @property
    def gpu_hours_left(self) -> float:
        """Expected GPU-hours of active and remaining runs."""
        return sum(row.gpu_hours_left for row in self._ahead)

    @property
    def held_nodes(self) -> int:
        """Number of nodes on which its rows run."""
        return sum(row.planned.plan.nodes for row in self.rows if row.standing == "running")

    @property
    def left_s(self) -> float | None:
        """Remaining seconds of training, on the nodes of the running rows and the free nodes.

        None if that is unknown. Start-up and queue are not included.
        """
        nodes = None if self.free_nodes is None else self.held_nodes + self.free_nodes
        jobs = [(row.planned.plan.nodes, row.left_s) for row in self._ahead]
        return wall_s(jobs, nodes, self.plan.suite.at_a_time)

    @property
    def serial_left_s(self) -> float:
        """Remaining seconds if the remaining runs ran one after the other."""
        return sum(row.left_s for row in self._ahead)

    @property
    def words(self) -> str:
        """One line such as `7 of 12 runs done: 6 PASS, 1 FAIL · 2 running · 3 queued`."""
        verdicts = [f"{count} {result}" for result in get_args(VerdictResult) if (count := self.results(result))]
        if none := self.results(None):
            verdicts.append(f"{none} without a verdict")
        parts = [f"{self.count('done')} of {plural(len(self.rows), 'run')} done"]
        parts[0] += f": {', '.join(verdicts)}" if verdicts else ""
        shown: tuple[RowStanding, ...] = (
            "refused",
            "failed",
            "cancelled",
            "running",
            "waiting",
            "unknown",
            "not sent",
        )
        parts += [f"{count} {row_label(standing).word}" for standing in shown if (count := self.count(standing))]
        return " · ".join(parts)

    def _awaits_log(self, row: RowProgress) -> bool:
        return self.given_up is not None and row.unread and row.planned.row.run_id not in self.given_up

    @property
    def _ahead(self) -> list[RowProgress]:
        """Active rows first, then remaining rows, in the suite's order."""
        going = [row for row in self.rows if row.standing in ("running", "waiting", "unknown")]
        return going if self.stopped else going + [row for row in self.rows if row.standing == "not sent"]


def progress_of(plan: SuitePlan, records: Mapping[str, RunRecord | LlmbError]) -> SuiteProgress:
    """Progress of a suite by the records of its runs, by run id; other records are ignored."""
    rows = tuple(_row_progress(planned, records.get(planned.row.run_id)) for planned in plan.rows)
    return SuiteProgress(plan, rows)


def _row_progress(planned: PlannedRow, record: RunRecord | LlmbError | None) -> RowProgress:
    if isinstance(record, LlmbError):
        return RowProgress(planned, "unknown", None, record)
    return RowProgress(planned, standing_of(record), record)


def standing_of(record: RunRecord | None) -> RowStanding:
    """State of the row of a run; None: the run does not exist yet."""
    if record is None or record.run.submission == "intended":
        return "not sent"
    run, stage = record.run, record.state.stage
    if run.submission == "unknown":
        return "unknown"
    if run.submission == "refused":
        return "refused"
    if run.submission == "withdrawn":  # a run that was being submitted never reached its cluster and is submitted again
        return "cancelled" if run.sent_at is None else "not sent"
    if stage in ENDED:
        return "done" if stage == "done" else "failed" if stage in FAILED else "cancelled"
    return "waiting" if state_word(run, record.state) in _IN_QUEUE else "running"


def log_to_read(progress: SuiteProgress, last: str, read: Set[str]) -> str | None:
    """Id of the run whose log is copied next, one at a time: the first finished run that is not in `read`.

    Otherwise the running one after `last`; None if there is none.
    """
    records = [(row, row.record) for row in progress.rows if row.record is not None and row.record.run.job_ids]
    for row, record in records:
        if row.standing in OVER and row.unread and record.run.id not in read:
            return record.run.id
    running = [record.run.id for row, record in records if row.standing == "running"]
    return running[(running.index(last) + 1) % len(running) if last in running else 0] if running else None
