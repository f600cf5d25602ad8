"""`plan_answer`: the run of a selection, its expected speed and memory, and its problems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Fact, Facts, Grid, Remark, Remarks, Text
from llmb_tui.answers.table import Column, Table
from llmb_tui.language.labels import run_label
from llmb_tui.language.quantities import (
    days,
    gigabytes,
    gpu_hours,
    percent,
    plain_number,
    step_time,
    step_time_range,
    tokens_per_s,
)
from llmb_tui.language.states import memory_label, method_word, severity_label
from llmb_tui.language.text import plural
from llmb_tui.plan.document import document
from llmb_tui.plan.plan import Estimate, Memory, Parallelism, Plan, Scaling
from llmb_tui.plan.selection import FIELDS

if TYPE_CHECKING:
    from llmb_tui.plan.calibration import ClusterEstimate

_PARALLELISM = tuple(field.name for field in fields(Parallelism))


def parallelism_column(name: str, path: str = "") -> Column:
    """Column for one number of a `Parallelism`; `path` leads to that object, such as `parallelism.`."""
    return Column(FIELDS[name].label if name in FIELDS else name.upper(), f"{path}{name}", name=name)


def plan_answer(plan: Plan, cluster: str | None = None, measured: ClusterEstimate | None = None) -> Answer:
    """The answer to `plan`; `measured`: the estimate from the runs on `cluster`, if a cluster is named."""
    return Answer(
        plan_title(plan),
        lambda: tuple(_blocks(plan, cluster, measured)),
        lambda: document(plan) | ({} if cluster is None else {"measured_here": measured and asdict(measured)}),
    )


def plan_title(plan: Plan) -> str:
    """Workload and GPUs of a plan: `nemotron4@25.04 15b fp8 · 64 × H100`."""
    selection = plan.selection
    return run_label(selection.recipe_id, selection.size, selection.dtype, selection.scale, selection.gpu)


def scaling_word(scaling: Scaling) -> str:
    """Kind of scaling, as people read it."""
    return "reduced model" if scaling == "proxy" else scaling


def expected_words(step_time_text: str, low_s: float, high_s: float, source: str) -> str:
    """An expected step time with its band and its source."""
    return f"{step_time_text} ({step_time_range(low_s, high_s)}), {source}"


def step_time_words(estimate: Estimate) -> str:
    """The expected step time of an estimate with its band and its source."""
    method = method_word(estimate.method) + (f", {estimate.basis}" if estimate.method == "modelled" else "")
    return expected_words(estimate.step_time_text, estimate.low_s, estimate.high_s, f"{method}: {estimate.anchor}")


def cost_words(cost_gpu_h: float) -> str:
    """The expected cost of a run."""
    return f"{gpu_hours(cost_gpu_h)} plus start-up"


def memory_words(memory: Memory) -> str:
    """The memory that a plan needs on one GPU, and whether it fits."""
    return (
        f"{gigabytes(memory.peak_gb)} of {gigabytes(memory.capacity_gb)}, {gigabytes(memory.state_gb)} of it model "
        f"state: {memory_label(memory.verdict).word}"
    )


def _blocks(plan: Plan, cluster: str | None, measured: ClusterEstimate | None) -> Iterator[Block]:
    scaling = f"{scaling_word(plan.scaling)}{'' if plan.scaling == 'proxy' else ' scaling'}"
    size = f"{plural(plan.nodes, 'node')} of {plan.gpus_per_node} GPUs, {scaling}"
    yield Text(f"{plan_title(plan)} · {size}", strong=True)
    yield Grid("", Table.by([parallelism_column(name) for name in _PARALLELISM], [plan.parallelism]))
    yield Facts(tuple(_facts(plan, cluster, measured)))
    if remarks := tuple(_remarks(plan)):
        yield Remarks(remarks)


def _remarks(plan: Plan) -> Iterator[Remark]:
    """Warnings, then notes. Errors are the reason for the verb's exit code: the verb prints them to stderr."""
    for severity in ("warning", "note"):
        for problem in plan.problems:
            if problem.severity == severity:
                yield Remark(severity_label(severity), f"{problem.reason} {problem.fix}".rstrip())


def _facts(plan: Plan, cluster: str | None, measured: ClusterEstimate | None) -> Iterator[Fact]:
    estimate = plan.estimate
    if estimate is not None:
        yield Fact("step time", step_time_words(estimate))
        yield Fact("tokens/s", tokens_per_s(estimate.tokens_per_s))
        yield Fact(
            "MFU",
            f"{percent(estimate.mfu_pct)} of {plain_number(estimate.peak_tflops)} TFLOPS; FLOPs formula: "
            f"{estimate.flops_formula}",
        )
        if estimate.days_per_1t_tokens is not None:
            yield Fact("1T tokens", days(estimate.days_per_1t_tokens))
    if plan.memory is not None:
        yield Fact("memory", memory_words(plan.memory))
    if plan.gpu_hours is not None:
        yield Fact("cost", f"{cost_words(plan.gpu_hours)}, for {plural(plan.steps, 'step')}")
    if measured is not None:
        source = f"{measured.label}: {measured.basis}"
        text = step_time(measured.step_time_s)
        yield Fact("this cluster", expected_words(text, measured.low_s, measured.high_s, source))
    elif cluster is not None:
        yield Fact("this cluster", f"no run on {cluster} is comparable with this configuration")
