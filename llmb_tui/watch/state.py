"""`RunState`: everything that the screen shows of a run, at one moment."""

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
"""It ended badly, and something says why."""
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
"""No step takes less or more: what does so in a log is a fault of the log, and reckoning with it may overflow."""
MOST_TFLOPS, MOST_STEPS = 1e6, 1e15
"""No GPU does more, and no run takes more: the same."""


class Step(NamedTuple):
    """One step. Fields that the log does not carry are None.

    A tuple: a log has hundreds of thousands, and a frozen dataclass takes four times as long to make.
    """

    index: int  # type: ignore[assignment]  # the tuple's own method of this name is of no use here
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
    """Iterations since the line before whose optimizer step Megatron skipped."""
    not_a_number: float | None = None
    """Iterations since the line before in which Megatron found a NaN."""
    loss_scale: float | None = None
    grad_norm: float | None = None
    starts_again: bool = False
    """First step of a further start of the training in the same log."""
    line: str = ""
    """The step's line, clean; kept only if a validity check may quote it."""

    @property
    def trained(self) -> bool:
        """The line shows a loss, and nothing that says that the step trained nothing."""
        loss, grad_norm = self.loss, self.grad_norm
        if loss is None or not isfinite(loss) or (grad_norm is not None and not isfinite(grad_norm)):
            return False
        return not (self.skipped or self.not_a_number)


class BatchSize(NamedTuple):
    """Global batch size from one step on."""

    index: int  # type: ignore[assignment]  # as in `Step`
    batch: float | None
    """As the lines give it."""
    samples: float | None
    """Samples between two steps of one start, by the lines' own totals."""
    line: str
    """The line that first gave the batch."""


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
    """Is the cluster as fast as it should be? Ratio = expected step time / measured step time."""

    result: VerdictResult
    ratio: float
    measured_s: float
    """Measured step time, seconds: by the recipe's rule, or the median where `by_rule` is False."""
    against: str
    """What it was compared with, such as `published 1.98 s, nemotron4@25.04`."""
    rule: str
    """The recipe's rule in words, such as `last step`."""
    reasons: tuple[str, ...] = ()
    by_rule: bool = True


@dataclass(frozen=True, slots=True)
class Progress:
    """What the log says so far."""

    steps_done: int = 0
    steps_total: int | None = None
    last: Step | None = None
    step_times_s: tuple[tuple[int, float], ...] = ()
    """(step index, seconds) for the chart, oldest first."""
    median_s: float | None = None
    """Median of the steps after warm-up."""
    spread: float | None = None
    """Half of the interquartile range of those steps, as a part of the median."""
    tokens_per_s: float | None = None
    mfu_pct: float | None = None
    again_at: tuple[int, ...] = ()
    """Steps at which further starts of the job began in the same log; none behind that of a later one."""
    unbound: int = 0
    """How many ranks said that they could not be bound to a NUMA node, as they should be."""
    failure: Diagnosis | None = None
    """A line of the log that says why the run failed, and what it means."""
    before: str = ""
    """File name of the copy of what the log was before it began anew, or of the job's start before; else empty."""
    of_next_start: bool = False
    """`before` is the log of the start before, which has a file of its own: this log did not begin anew."""
    starts: int = 0
    """How often the training began, in this log and in those of the job's earlier starts."""
    last_before: int = -1
    """Last step of the log before it was replaced by this one: a later step as the first one is of the same start."""
    first_index: int = 0
    """Step at which the newest start began."""
    untrained: tuple[Step, ...] = ()
    """Steps whose line shows that they trained nothing (`Step.trained`), the oldest and the newest hundred."""
    batches: tuple[BatchSize, ...] = ()
    """Global batch sizes, oldest first: one entry for each change."""
    statements: tuple[Statement, ...] = ()
    """Facts that the log states about its newest start besides the steps."""
    slow_signs: tuple[str, ...] = ()
    """Lines that may explain a slow run, one of each kind."""

    @property
    def whole(self) -> bool:
        """The log has the last step."""
        return self.steps_total is not None and self.steps_done >= self.steps_total > 0


@dataclass(frozen=True, slots=True)
class RunState:
    """One immutable snapshot; the monitor publishes a new one whenever something changed."""

    run_id: str
    stage: Stage = "submitted"
    job: Job | None = None
    progress: Progress = Progress()
    eta_s: float | None = None
    """Seconds until the last step, by the pace at which steps arrive."""
    log_name: str = "log"
    """File name of the local copy in the run's folder, a `LogCopy`'s."""
    log_bytes: int = 0
    """Size of the local copy."""
    silent_s: float = 0.0
    """Seconds since the log last grew."""
    link: RunLink = "connecting"
    link_note: str = ""
    slurm_note: str = ""
    """Why Slurm could not be asked, or does not know the job, although the link may be well."""
    calls_per_minute: int = 0
    """Remote commands in the last minute that asked Slurm about the jobs of this cluster."""
    verdict: Verdict | None = None
    """The verdict so far, or the final one when the stage is `done`."""
    no_verdict: str = ""
    """Why there is no verdict."""
    validity: tuple[ValidityCheck, ...] = ()
    """The checks that the run was what it claims to be; none before its first step."""
    log_unread: bool = False
    """The job is over, and more of its log may be on the cluster than was read."""
    log_removed: bool = False
    """The local copy was taken away once it was read to its end; what it said stays."""
    others: tuple[Job, ...] = ()
    """The run's other jobs, of which only the state is known."""

    @property
    def why_failed(self) -> str:
        """Why a failed run did, in plain words; empty where that is not known, and of another run."""
        return self.progress.failure.reason if self.stage in FAILED and self.progress.failure else ""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run and how it stands."""

    run: Run
    state: RunState
    log_grew_at: float = 0.0
    """When the copy of its log last grew, Unix time; 0 without one."""


@dataclass(frozen=True, slots=True)
class RunsChanged:
    """Changes since the event before; the first event of a follower has all runs."""

    changed: tuple[RunRecord, ...] = ()
    """New runs, and runs whose record changed."""
    gone: tuple[str, ...] = ()
    """Ids of runs that are here no more."""
    unreadable: int = 0
    """How many runs cannot be read."""
    silent: Mapping[str, str] = field(default_factory=dict)
    """Why a cluster could not be asked, by its name."""
