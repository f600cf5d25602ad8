"""`RunResult`: the result of one run by its recipe's rule, and the data behind its figures.

Runs of the same `Configuration` are repeats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from llmb_tui.analysis.statistics import SampleStatistics, spread
from llmb_tui.catalog.recipe import ResultRule, Variant
from llmb_tui.cluster.job import Job
from llmb_tui.language.labels import run_label
from llmb_tui.language.quantities import four_digits
from llmb_tui.language.states import RunStateName
from llmb_tui.language.text import plural
from llmb_tui.launch.run import Run
from llmb_tui.plan import throughput
from llmb_tui.plan.plan import Parallelism, Plan, Scaling
from llmb_tui.plan.selection import ProcedureId, RunOptions
from llmb_tui.watch.log_facts import CheckpointTime, LogFacts
from llmb_tui.watch.progress import after_warm_up
from llmb_tui.watch.report import state_word
from llmb_tui.watch.state import Progress, RunRecord, ValidityCheck, Verdict
from llmb_tui.watch.verdict import benchmark_s, rule_s, rule_words


@dataclass(frozen=True, slots=True)
class Configuration:
    """Trained configuration: everything the step time depends on, except the cluster and the procedure."""

    workload: str
    release: str
    size: str
    gpu: str
    dtype: str
    precision_variant: Variant | None
    scale: int
    """Number of GPUs."""
    scaling: Scaling
    layout: Parallelism
    options: RunOptions
    """Options of the run besides the benchmark itself."""

    @property
    def label(self) -> str:
        """Short text such as `nemotron4 15b fp8 · 64 × H100`."""
        return run_label(self.workload, self.size, self.dtype, self.scale, self.gpu)


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures computed from a step time of a plan, by the formulas of the recipes' READMEs."""

    tokens_per_s: float
    tflops_per_gpu: float | None
    """None without an estimate, which names the formula; the same applies to `mfu_pct`."""
    mfu_pct: float | None
    days_per_1t_tokens: float | None
    """None for a reduced model."""


@dataclass(frozen=True, slots=True)
class LossCheck:
    """Whether the training learns, by the losses in its log."""

    first: float
    last: float
    not_finite: int
    """Number of steps whose loss is not a finite number."""
    falls: bool
    """All losses are finite, and the mean of the last fifth is below the mean of the first."""
    means: tuple[float, float]
    """Means of the finite losses in the first fifth and in the last; equal for a single step."""
    steps: int
    """Number of steps that have a loss."""

    @property
    def words(self) -> str:
        """The check as a sentence."""
        if self.not_finite:
            has = "has" if self.not_finite == 1 else "have"
            return f"{plural(self.not_finite, 'step')} {has} a loss that is not a number"
        if self.steps == 1:
            return f"{four_digits(self.first)} at the only step"
        falls = "falls" if self.falls else "does not fall"
        if (self.last < self.first) is self.falls:
            return f"{falls}: {four_digits(self.first)} to {four_digits(self.last)}"
        first, last = map(four_digits, self.means)
        return f"{falls}: {first} to {last}, means of the first and the last fifth"


@dataclass(frozen=True, slots=True)
class LossDifference:
    """Difference of the losses from another run of the same configuration, in per cent of that run's losses.

    No limit for this difference is published.
    """

    run: str
    """Id of the other run."""
    step: int
    """Last step, 0-based, that has a loss in both runs."""
    last_pct: float
    """Difference at that step, signed."""
    largest_pct: float
    """Largest absolute difference of all steps that have a loss in both."""


@dataclass(frozen=True)
class RunResult:
    """The record of one run and the figures that follow from it. Times are seconds."""

    record: RunRecord
    facts: LogFacts | None = None
    """Facts of its whole log, if that was read."""

    @property
    def run(self) -> Run:
        """The run as it was submitted."""
        return self.record.run

    @property
    def progress(self) -> Progress:
        """Progress by the run's log; `step_times_s` has the first hundred steps and the newest ones."""
        return self.record.state.progress

    @property
    def id(self) -> str:
        return self.record.run.id

    @property
    def plan(self) -> Plan:
        """Plan as it was shown before submission."""
        return self.record.run.plan

    @property
    def procedure(self) -> ProcedureId:
        """Launch method of the run."""
        return self.record.run.procedure

    @property
    def cluster(self) -> str:
        """Name of the cluster."""
        return self.record.run.cluster

    @property
    def rule(self) -> ResultRule:
        """Result rule of the recipe."""
        return self.record.run.rule

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; if None, the reason is in the record's state."""
        return self.record.state.verdict

    @property
    def validity(self) -> tuple[ValidityCheck, ...]:
        """Validity checks of the run; empty before its first step."""
        return self.record.state.validity

    @property
    def state(self) -> RunStateName:
        """State of the run in one word, such as `done`, `failed` or `measuring`."""
        return state_word(self.record.run, self.record.state)

    @property
    def job(self) -> Job | None:
        """Last known state of the job by its scheduler, with its nodes, as far as recorded."""
        return self.record.state.job or self.record.run.job

    @property
    def restarts(self) -> int:
        """Number of times that the scheduler started the job again."""
        return self.record.run.job.restarts if self.record.run.job else 0

    @property
    def steps_total(self) -> int:
        """Number of steps by the log, or otherwise by the plan."""
        return self.plan.steps if self.progress.steps_total is None else self.progress.steps_total

    @cached_property
    def step_time_s(self) -> float | None:
        """Step time by the recipe's rule, seconds; None as long as the rule cannot be applied."""
        return rule_s(self.plan, self.rule, self.progress)

    @cached_property
    def comparable(self) -> bool:
        """Whether the run was successful, had enough steps for the rule, and used no option that slows it down."""
        done = self.record.state.stage == "done"
        return done and benchmark_s(self.plan, self.rule, self.progress, self.validity) is not None

    @property
    def made_at(self) -> float:
        """Unix time of the run's submission, or otherwise of the end of its log."""
        return self.run.submitted_at or self.record.log_grew_at

    @cached_property
    def configuration(self) -> Configuration:
        """Trained configuration."""
        return configuration_of(self.plan)

    @property
    def rule_words(self) -> str:
        """Text of the rule."""
        return rule_words(self.rule)

    @cached_property
    def steady(self) -> SampleStatistics | None:
        """Statistics of the steps in the rule's window; for a rule of the last step, of those after the warm-up."""
        return steady_of(self.rule, self.facts.step_times_s if self.facts else self.progress.step_times_s)

    @cached_property
    def figures(self) -> Figures | None:
        """Figures for the rule's step time; None without one."""
        return None if self.step_time_s is None else figures_of(self.plan, self.step_time_s)

    @property
    def loss(self) -> LossCheck | None:
        """Check of the losses; None if the log was not read or has no loss."""
        return None if self.facts is None else loss_check(self.facts)

    @property
    def of_published_pct(self) -> float | None:
        """Speed in per cent of the published row; None without such a row or without a step time."""
        published = self.plan.published
        return 100 * published.step_time_s / self.step_time_s if published and self.step_time_s else None

    @property
    def simulated(self) -> bool:
        """Whether the log states that nothing was trained."""
        return self.facts is not None and self.facts.simulated

    @property
    def checkpoints(self) -> tuple[CheckpointTime, ...]:
        """Saved and loaded checkpoints; empty if the log was not read."""
        return self.facts.checkpoints if self.facts else ()


def configuration_of(plan: Plan) -> Configuration:
    """Configuration of a plan. Whether the run keeps NCCL's network lines is not part of it."""
    selection, options = plan.selection, replace(plan.options, no_network_file=False)
    planned = (plan.scaling, plan.parallelism, options)
    names = (selection.workload, selection.release, selection.size, selection.gpu, selection.dtype)
    return Configuration(*names, plan.precision_variant, selection.scale, *planned)


def steady_of(rule: ResultRule, step_times_s: Sequence[tuple[int, float]]) -> SampleStatistics | None:
    """Statistics of the steps in the rule's window; for a rule of the last step, of those after the warm-up."""
    if rule.kind == "last":
        return spread(after_warm_up(step_times_s))
    last = math.inf if rule.last is None else rule.last
    return spread([seconds for index, seconds in step_times_s if (rule.first or 0) <= index <= last])


def figures_of(plan: Plan, step_time_s: float) -> Figures:
    """Figures computed from a step time, seconds."""
    layout, selection, estimate = plan.parallelism, plan.selection, plan.estimate
    tokens = throughput.tokens_per_s(layout.gbs, layout.seq_len, step_time_s)
    tflops = mfu = None
    if estimate is not None:
        tflops = throughput.tflops_per_gpu(layout.gbs, estimate.model_flops_per_sample, step_time_s, selection.scale)
        mfu = throughput.mfu_pct(tflops, estimate.peak_tflops)
    days = None if plan.scaling == "proxy" else throughput.days_per_1t_tokens(tokens)
    return Figures(tokens, tflops, mfu, days)


def loss_check(facts: LogFacts) -> LossCheck | None:
    """Check of the losses in a log; None for a log without a loss."""
    losses = [step.loss for step in facts.steps if step.loss is not None]
    if not losses:
        return None
    finite = [loss for loss in losses if math.isfinite(loss)]
    fifth = max(1, len(finite) // 5)
    means = (sum(finite[:fifth]) / fifth, sum(finite[-fifth:]) / fifth) if finite else (math.nan, math.nan)
    falls = len(finite) == len(losses) > 1 and means[1] < means[0]
    return LossCheck(losses[0], losses[-1], len(losses) - len(finite), falls, means, len(losses))


def loss_difference(result: RunResult, other: RunResult) -> LossDifference | None:
    """Difference of the losses; None for the same run, and if no step has a finite loss in both."""
    if result.id == other.id or result.facts is None or other.facts is None:
        return None
    theirs = {step.index: step.loss for step in other.facts.steps if step.loss and math.isfinite(step.loss)}
    differences = [
        (step.index, 100 * (step.loss / theirs[step.index] - 1))
        for step in result.facts.steps
        if step.index in theirs and step.loss is not None and math.isfinite(step.loss)
    ]
    return LossDifference(other.id, *differences[-1], max(abs(pct) for _, pct in differences)) if differences else None
