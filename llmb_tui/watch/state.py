"""`RunState`: all data that the screen shows of a run at one moment, and the values it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal, NamedTuple

from llmb_tui.cluster.job import Job
from llmb_tui.diagnosis.rule import Diagnosis
from llmb_tui.language.states import RunLink, Stage, ValidityOutcome, VerdictResult
from llmb_tui.launch.run import Run

FAILED: tuple[Stage, ...] = ("failed", "timeout", "node_fail")
"""Stages of runs that ended with an error, for which a reason may be known."""
BAD_ENDS: tuple[Stage, ...] = (*FAILED, "cancelled")
ENDED: tuple[Stage, ...] = ("done", *BAD_ENDS)
CheckId = Literal[
    "loss",
    "steps",
    "complete",
    "batch",
    "ranks",
    "gpu",
    "transport",
    "precision",
    "container",
    "settings",
    "starts",
]
StatementKind = Literal["ranks", "layout", "gpu", "version", "setting", "network", "channel"]
SHORTEST_STEP_S, LONGEST_STEP_S = 1e-6, 1e9
"""Bounds of a possible step time. A value outside them is an error of the log, and computing with it may overflow."""
MOST_TFLOPS, MOST_STEPS = 1e6, 1e15
"""The same bounds for the speed of one GPU and the number of steps of one run."""


class Step(NamedTuple):
    """One step. Fields that the log does not have are None.

    A tuple, because a log has hundreds of thousands of steps and a frozen dataclass takes four times as long to create.
    """

    index: int  # type: ignore[assignment]  # this replaces the tuple's own method, which is not needed
    """0-based training step."""
    total: int | None
    """Number of steps of the run."""
    step_time_s: float | None = None
    loss: float | None = None
    consumed_samples: float | None = None
    memory_peak_bytes: float | None = None
    memory_allocated_bytes: float | None = None
    tflops_per_gpu: float | None = None
    batch: float | None = None
    """Global batch size, as the step's line gives it."""
    skipped: float | None = None
    """Iterations since the previous line whose optimizer step Megatron skipped."""
    not_a_number: float | None = None
    """Iterations since the previous line in which Megatron found a NaN."""
    loss_scale: float | None = None
    grad_norm: float | None = None
    starts_again: bool = False
    """True for the first step of a further start of the training in the same log."""
    line: str = ""
    """The step's line, clean; kept only if a validity check may quote it."""

    @property
    def trained(self) -> bool:
        """Whether the line shows a loss, and no sign that the step trained nothing."""
        loss, grad_norm = self.loss, self.grad_norm
        if loss is None or not isfinite(loss) or (grad_norm is not None and not isfinite(grad_norm)):
            return False
        return not (self.skipped or self.not_a_number)


class BatchSize(NamedTuple):
    """Global batch size from one step on."""

    index: int  # type: ignore[assignment]  # as in `Step`
    batch: float | None
    """Global batch size that the lines give."""
    samples: float | None
    """Samples between two steps of one start, by the totals in the lines."""
    line: str
    """First line that gave the batch."""


class Statement(NamedTuple):
    """One fact that a log, or a file next to it, states about a start of the training."""

    kind: StatementKind
    name: str
    """Subject: a library, a setting, a pair of ranks; empty if the kind names it."""
    value: str
    line: str
    """The whole line, clean and bounded."""


class ValidityCheck(NamedTuple):
    """One check that a run was what it claims to be (CONTRACT: `validity`)."""

    id: CheckId
    outcome: ValidityOutcome
    found: str
    """Finding; for an unknown check, the input that it needs."""
    expected: str
    line: str = ""
    """The line that a failed check rests on."""
    source: str = ""
    """Place of that line: the log, or a file of the run."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Speed of a run against its expected step time. Ratio = expected step time / measured step time."""

    result: VerdictResult
    ratio: float
    measured_s: float
    """Measured step time, seconds: by the recipe's rule, or the median if `by_rule` is False."""
    against: str
    """Text of the expected step time, such as `published 1.98 s, nemotron4@25.04`."""
    rule: str
    """Text of the recipe's rule, such as `last step`."""
    reasons: tuple[str, ...] = ()
    by_rule: bool = True


@dataclass(frozen=True, slots=True)
class Progress:
    """Facts that the log has given so far."""

    steps_done: int = 0
    steps_total: int | None = None
    last: Step | None = None
    step_times_s: tuple[tuple[int, float], ...] = ()
    """(step index, seconds) for the chart, oldest first."""
    median_s: float | None = None
    """Median of the steps after warm-up."""
    spread: float | None = None
    """Half of the interquartile range of those steps, as a fraction of the median."""
    tokens_per_s: float | None = None
    mfu_pct: float | None = None
    again_at: tuple[int, ...] = ()
    """Steps at which further starts of the job began in the same log, ascending."""
    unbound: int = 0
    """Number of ranks that reported that they could not be bound to a NUMA node."""
    failure: Diagnosis | None = None
    """Log line that gives the reason for a failure, and its explanation."""
    before: str = ""
    """File name of the copy with the lines before the log was replaced, or of the job's previous start; else empty."""
    of_next_start: bool = False
    """`before` is the log of the previous start, which has its own file: this log was not replaced."""
    starts: int = 0
    """Number of starts of the training, in this log and in those of the job's earlier starts."""
    last_before: int = -1
    """Last step of the log that this one replaced: if the first step here is later, both are of the same start."""
    first_index: int = 0
    """Step at which the newest start began."""
    untrained: tuple[Step, ...] = ()
    """Steps whose line shows that they trained nothing (`Step.trained`): the oldest and the newest hundred."""
    batches: tuple[BatchSize, ...] = ()
    """Global batch sizes, oldest first: one entry for each change."""
    statements: tuple[Statement, ...] = ()
    """Facts besides the steps that the log states about its newest start."""
    slow_signs: tuple[str, ...] = ()
    """Log lines that may explain a slow run, one of each kind."""

    @property
    def whole(self) -> bool:
        """Whether the log has the last step."""
        return self.steps_total is not None and self.steps_done >= self.steps_total > 0


@dataclass(frozen=True, slots=True)
class RunState:
    """Immutable snapshot of a run; the monitor publishes a new one at each change."""

    run_id: str
    stage: Stage = "submitted"
    job: Job | None = None
    progress: Progress = Progress()
    eta_s: float | None = None
    """Seconds until the last step, by the rate at which steps arrive."""
    log_name: str = "log"
    """File name of the local copy in the run's folder, as a `LogCopy` gives it."""
    log_bytes: int = 0
    """Size of the local copy."""
    silent_s: float = 0.0
    """Seconds since the log last grew."""
    link: RunLink = "connecting"
    link_note: str = ""
    slurm_note: str = ""
    """Reason why Slurm could not be asked, or does not know the job; the link may be well."""
    verdict: Verdict | None = None
    """The verdict so far, or the final one when the stage is `done`."""
    no_verdict: str = ""
    """Reason why there is no verdict."""
    validity: tuple[ValidityCheck, ...] = ()
    """Checks that the run was what it claims to be; empty before its first step."""
    log_unread: bool = False
    """The job has ended, and its log on the cluster may have lines that were not read."""
    log_removed: bool = False
    """The local copy was removed after it had been read to its end; the facts read from it remain."""
    others: tuple[Job, ...] = ()
    """Other jobs of the run; only their state is known."""

    @property
    def why_failed(self) -> str:
        """Reason of a failed run in plain words; empty if it is unknown, and for any other run."""
        return self.progress.failure.reason if self.stage in FAILED and self.progress.failure else ""

    @property
    def is_failing(self) -> bool:
        """Whether the log of an active run has an error after its newest step that ends it.

        A scheduler reports a failed job only after its last process, which may wait for minutes.
        """
        failure = self.progress.failure
        return self.stage not in ENDED and self.stage != "queued" and failure is not None and failure.ends_a_run


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run and its state."""

    run: Run
    state: RunState
    log_grew_at: float = 0.0
    """Unix time at which the copy of its log last grew; 0 without a copy."""


@dataclass(frozen=True, slots=True)
class RunsChanged:
    """Changes since the previous event; the first event of a follower has all runs."""

    changed: tuple[RunRecord, ...] = ()
    """New runs, and runs whose record changed."""
    removed_ids: tuple[str, ...] = ()
    """Ids of runs that no longer exist here."""
    unreadable: int = 0
    """Number of runs that cannot be read."""
    unreachable: Mapping[str, str] = field(default_factory=dict)
    """Reasons why clusters could not be asked, by name."""
