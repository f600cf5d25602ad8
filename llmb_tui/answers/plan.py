"""`plan_answer`: the run that a selection makes, its expected speed and memory, and the problems in its way."""

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
    given,
    gpu_hours,
    percent,
    step_time,
    step_time_range,
    tokens_per_s,
)
from llmb_tui.language.states import memory_label, method_word, severity_label
from llmb_tui.language.text import plural
from llmb_tui.plan.document import document
from llmb_tui.plan.plan import Estimate, Memory, Parallelism, Plan
from llmb_tui.plan.selection import FIELDS

if TYPE_CHECKING:
    from llmb_tui.plan.calibration import ClusterEstimate

_PARALLELISM = tuple(field.name for field in fields(Parallelism))


def parallelism_column(name: str, path: str = "") -> Column:
    """The column of one number of a `Parallelism`, whose place in a thing is `path`."""
    return Column(FIELDS[name].label if name in FIELDS else name.upper(), f"{path}{name}", name=name)


def plan_answer(plan: Plan, cluster: str | None = None, here: ClusterEstimate | None = None) -> Answer:
    """The answer to `plan`; `here`: the expectation from the runs of `cluster`, if one is named."""
    return Answer(
        plan_title(plan),
        lambda: tuple(_blocks(plan, cluster, here)),
        lambda: document(plan) | ({} if cluster is None else {"measured_here": here and asdict(here)}),
    )


def plan_title(plan: Plan) -> str:
    """The selection in one line."""
    selection = plan.selection
    return run_label(selection.recipe_id, selection.size, selection.dtype, selection.scale, selection.gpu)


def step_time_words(estimate: Estimate) -> str:
    """The expected step time, its band and its source."""
    method = method_word(estimate.method) + (f", {estimate.basis}" if estimate.method == "modelled" else "")
    return (
        f"{estimate.step_time_text} ({step_time_range(estimate.low_s, estimate.high_s)}), {method}: {estimate.anchor}"
    )


def memory_words(memory: Memory) -> str:
    """The memory of one GPU, and whether it suffices."""
    return (
        f"{gigabytes(memory.peak_gb)} of {gigabytes(memory.capacity_gb)}, {gigabytes(memory.state_gb)} of it for the "
        f"state: {memory_label(memory.verdict).word}"
    )


def _blocks(plan: Plan, cluster: str | None, here: ClusterEstimate | None) -> Iterator[Block]:
    size = f"{plural(plan.nodes, 'node')} of {plan.gpus_per_node} GPUs, {plan.scaling} scaling"
    yield Text(f"{plan_title(plan)} · {size}", strong=True)
    yield Grid("", Table.by([parallelism_column(name) for name in _PARALLELISM], [plan.parallelism]))
    yield Facts(tuple(_facts(plan, cluster, here)))
    if remarks := tuple(_remarks(plan)):
        yield Remarks(remarks)


def _remarks(plan: Plan) -> Iterator[Remark]:
    """Warnings, then notes. An error is the reason for the verb's exit code, which the verb prints to stderr."""
    for severity in ("warning", "note"):
        for problem in plan.problems:
            if problem.severity == severity:
                yield Remark(severity_label(severity), f"{problem.reason} {problem.fix}".rstrip())


def _facts(plan: Plan, cluster: str | None, here: ClusterEstimate | None) -> Iterator[Fact]:
    estimate = plan.estimate
    if estimate is not None:
        yield Fact("step time", step_time_words(estimate))
        yield Fact("tokens/s", tokens_per_s(estimate.tokens_per_s))
        yield Fact(
            "MFU", f"{percent(estimate.mfu_pct)} of {given(estimate.peak_tflops)} TFLOPS, {estimate.flops_formula}"
        )
        if estimate.days_per_1t_tokens is not None:
            yield Fact("1T tokens", days(estimate.days_per_1t_tokens))
    if plan.memory is not None:
        yield Fact("memory", memory_words(plan.memory))
    if plan.gpu_hours is not None:
        yield Fact("this run", f"{gpu_hours(plan.gpu_hours)} for {plural(plan.steps, 'step')}, and start-up")
    if here is not None:
        band = step_time_range(here.low_s, here.high_s)
        yield Fact("here", f"{step_time(here.step_time_s)} ({band}), {here.label}: {here.basis}")
    elif cluster is not None:
        yield Fact("here", f"nothing was measured on {cluster} that says something about this")
