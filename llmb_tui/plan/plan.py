"""`Plan` and its parts: what will run, what was published, what to expect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from llmb_tui.catalog.recipe import Variant
from llmb_tui.catalog.rows import ResultRow
from llmb_tui.language.quantities import given, step_time_digits
from llmb_tui.language.states import MemoryVerdict, Method, Severity
from llmb_tui.plan.selection import NOTHING_MORE, RunOptions, Selection

Scaling = Literal["weak", "strong", "proxy"]
PRINTED_METHODS: tuple[Method, ...] = ("published", "other_release")
"""Their step time is a number of a published table."""


@dataclass(frozen=True, slots=True)
class Parallelism:
    """What will run. `dp` and `ga` are None where the other numbers do not divide."""

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
    """The cells of the README's table for this scale; None for NA and for a column it does not have."""

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
    """Where a step's time goes, in seconds; a model, not a measurement. The parts add up to the step time."""

    compute_s: float
    """Matrix products, attention and memory traffic, with what a rank waits for in every layer."""
    communication_s: float
    """Tensor, context, expert, pipeline and data parallel traffic that is not hidden behind computing."""
    bubble_s: float
    """Pipeline stages that wait for their first or after their last micro-batch."""
    optimizer_s: float


@dataclass(frozen=True, slots=True)
class Expectation:
    """A step time in seconds, half its band in per cent, and what both rest on."""

    step_time_s: float
    half_width_pct: float
    method: Method
    anchor: str
    basis: str
    published: ResultRow | None = None
    """The row itself, where the recipe's own tables have this configuration."""
    breakdown: Breakdown | None = None
    new_layout: bool = False
    """True where nobody has measured the layout."""
    other_variant: str = ""
    """Which variant of the precision it rests on, where that is another one; a sentence."""
    vboost: bool = False
    """True where it rests on runs of scripts that always try to give the tensor cores more power."""
    container: str | None = None
    """Image in which the published row was measured; None without a published row, or if its source names no image."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The expected step time, its band and where it comes from; the rest follows from the step time."""

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
    """The method in a few words for a person, such as `the same model in bf16`."""
    breakdown: Breakdown | None = None
    """None where the model of the hardware says nothing."""
    other_variant: str = ""
    """As of the expectation, and so are the next ones."""
    vboost: bool = False
    container: str | None = None

    @property
    def step_time_text(self) -> str:
        """The step time with its unit, for a person."""
        return f"{expected_step_time(self.method)(self.step_time_s)} s"


def expected_step_time(method: Method) -> Callable[[float], str]:
    """Writes an expected step time without its unit: a printed one keeps the digits of its table."""
    return given if method in PRINTED_METHODS else step_time_digits


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of one GPU, decimal GB."""

    state_gb: float
    peak_gb: float
    capacity_gb: float
    verdict: MemoryVerdict


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something cannot or should not be run. An `error` cannot be launched."""

    field: str
    severity: Severity
    reason: str
    fix: str

    @property
    def words(self) -> str:
        """The field, the reason and the fix in one line."""
        return f"{self.field}: {self.reason} {self.fix}".rstrip()


def error(field: str, reason: str, fix: str) -> Problem:
    """What cannot be launched."""
    return Problem(field, "error", reason, fix)


def warning(field: str, reason: str, fix: str) -> Problem:
    """What can be launched, and should not be."""
    return Problem(field, "warning", reason, fix)


def note(field: str, reason: str) -> Problem:
    """What is to be known, and asks for nothing."""
    return Problem(field, "note", reason, "")


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is known about a selection before it runs."""

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
    """The selection's; of a profile both steps are known."""
    container_versions: tuple[tuple[str, str], ...] = ()
    """(library, version) that a source names of the container, by the names that a log prints."""
    unplanned: tuple[str, ...] = ()
    """Parameters of the model that somebody changed who started the run elsewhere, and that are not in the plan."""

    @property
    def launchable(self) -> bool:
        """True unless a problem is an error."""
        return all(p.severity != "error" for p in self.problems)
