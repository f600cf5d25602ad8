"""`Plan` and its parts: the configuration, the published result, the estimate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from llmb_tui.catalog.recipe import Variant
from llmb_tui.catalog.rows import ResultRow
from llmb_tui.language.quantities import plain_number, step_time_digits
from llmb_tui.language.states import MemoryVerdict, Method, Severity
from llmb_tui.plan.selection import NOTHING_MORE, RunOptions, Selection

Scaling = Literal["weak", "strong", "proxy"]
PRINTED_METHODS: tuple[Method, ...] = ("published", "other_release")
"""Methods whose step time is a number from a published table."""


@dataclass(frozen=True, slots=True)
class Parallelism:
    """The layout of a run. `dp` and `ga` are None if the other numbers do not divide."""

    tp: int
    pp: int
    cp: int
    ep: int
    dp: int | None
    vp: int | None
    mbs: int
    gbs: int
    ga: int | None
    seq_len: int
    layers: int


@dataclass(frozen=True, slots=True)
class Printed:
    """Cells of the README's table for the scale; None for NA and for a missing column."""

    tp: int | None = None
    pp: int | None = None
    cp: int | None = None
    ep: int | None = None
    dp: int | None = None
    vp: int | None = None
    mbs: int | None = None
    gbs: int | None = None
    ga: int | None = None
    seq_len: int | None = None
    layers: int | None = None


@dataclass(frozen=True, slots=True)
class PublishedResult:
    """One row of the recipe's own result tables, as printed."""

    step_time_s: float
    tokens_per_s: float
    mfu_pct: float
    days_per_1t_tokens: float | None
    source: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Modelled parts of a step's time, seconds; they add up to the step time."""

    compute_s: float
    """Matrix products, attention and memory traffic, with the latency of every layer."""
    communication_s: float
    """Tensor, context, expert, pipeline and data parallel traffic that does not overlap with computation."""
    bubble_s: float
    """Idle time of pipeline stages before their first and after their last micro-batch."""
    optimizer_s: float


@dataclass(frozen=True, slots=True)
class Expectation:
    """A step time in seconds, the half-width of its band in per cent, and their basis."""

    step_time_s: float
    half_width_pct: float
    method: Method
    anchor: str
    basis: str
    published: ResultRow | None = None
    """Published row of this configuration, if the recipe has one."""
    breakdown: Breakdown | None = None
    new_layout: bool = False
    """True if the layout was not measured."""
    other_variant: str = ""
    """Sentence about the scaling of the precision behind the estimate, if it differs from the recipe's."""
    vboost: bool = False
    """True if the runs behind the estimate used scripts that always try vboost (more power for the tensor cores)."""
    container: str | None = None
    """Image of the published measurement; None without one, or if its source does not name an image."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The expected step time with its band and source; the other figures follow from the step time."""

    step_time_s: float
    low_s: float
    high_s: float
    method: Method
    anchor: str
    tokens_per_s: float
    mfu_pct: float
    days_per_1t_tokens: float | None
    tflops_per_gpu: float
    model_flops_per_sample: float
    peak_tflops: float
    flops_formula: str
    basis: str = ""
    """The method in a few words, such as `the same model in bf16`."""
    breakdown: Breakdown | None = None
    """None without a model of the GPU type."""
    other_variant: str = ""
    """As in `Expectation`, like the next two."""
    vboost: bool = False
    container: str | None = None

    @property
    def step_time_text(self) -> str:
        """The step time with its unit."""
        return f"{expected_step_time(self.method)(self.step_time_s)} s"


def expected_step_time(method: Method) -> Callable[[float], str]:
    """The format of an expected step time without its unit: a published number keeps its digits."""
    return plain_number if method in PRINTED_METHODS else step_time_digits


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of one GPU, decimal GB."""

    state_gb: float
    peak_gb: float
    capacity_gb: float
    verdict: MemoryVerdict


@dataclass(frozen=True, slots=True)
class Problem:
    """A reason against a plan, or a note on it. A plan with an `error` cannot be launched."""

    field: str
    severity: Severity
    reason: str
    fix: str

    @property
    def words(self) -> str:
        """The field, the reason and the fix in one line."""
        return f"{self.field}: {self.reason} {self.fix}".rstrip()


def error(field: str, reason: str, fix: str) -> Problem:
    """A problem that prevents a launch."""
    return Problem(field, "error", reason, fix)


def warning(field: str, reason: str, fix: str) -> Problem:
    """A problem that does not prevent a launch."""
    return Problem(field, "warning", reason, fix)


def note(field: str, reason: str) -> Problem:
    """Information without a remedy."""
    return Problem(field, "note", reason, "")


@dataclass(frozen=True, slots=True)
class Plan:
    """All facts about a selection before it runs."""

    selection: Selection
    scaling: Scaling
    nodes: int
    gpus_per_node: int
    parallelism: Parallelism
    printed: Printed | None
    published: PublishedResult | None
    estimate: Estimate | None
    memory: Memory | None
    checkpoint_gb: float | None
    gpu_hours: float | None
    steps: int
    time_limit: str
    container: str | None
    problems: tuple[Problem, ...]
    precision_variant: Variant | None = None
    options: RunOptions = NOTHING_MORE
    """Options of the selection; both steps of a profile are set."""
    container_versions: tuple[tuple[str, str], ...] = ()
    """(library, version) of the container from its sources; names as in the log."""
    unplanned: tuple[str, ...] = ()
    """Model parameters of a run that was started elsewhere, if they were changed and are not in the plan."""

    @property
    def launchable(self) -> bool:
        """True unless a problem is an error."""
        return all(p.severity != "error" for p in self.problems)
