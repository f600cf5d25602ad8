"""`planned_suite`, `submitted_suite`, `suites`: what a suite will be, how it stands, and all of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Bullets, Fact, Facts, Grid, Remark, Remarks, Text, known
from llmb_tui.answers.run_columns import run_columns
from llmb_tui.answers.run_row import row_from_plan, row_from_progress
from llmb_tui.answers.table import Column, Table
from llmb_tui.language.quantities import duration, gpu_hours, gpu_hours_digits
from llmb_tui.language.states import severity_label
from llmb_tui.language.text import plural
from llmb_tui.suites.document import plan_document, progress_document
from llmb_tui.suites.outcome import outcome_of
from llmb_tui.suites.suite import SUITE_KINDS
from llmb_tui.suites.suite_plan import SuitePlan
from llmb_tui.suites.suite_progress import SuiteProgress

_SUITES: tuple[Column, ...] = (
    Column("suite", "plan.suite.id"),
    Column("name", "plan.suite.name"),
    Column("cluster", "plan.suite.cluster"),
    Column("runs", "words"),
)


def planned_suite(plan: SuitePlan) -> Answer:
    """Preview of a suite: its runs, their cost and time, and its problems."""
    suite = plan.suite

    def blocks() -> Iterator[Block]:
        yield Text(f"{suite.name} on {suite.cluster}: {SUITE_KINDS[suite.kind]}")
        yield Grid("", Table.by(run_columns("suite plan"), map(row_from_plan, plan.rows)))
        yield _cost(plan)
        if plan.blockers:
            error = severity_label("error")
            remarks = (
                Remark(error, f"{row.row.key if row else suite.name}: {problem.reason} {problem.fix}".rstrip())
                for row, problem in plan.blockers
            )
            yield Remarks(tuple(remarks))

    return Answer(f"Plan of suite {suite.name}", lambda: tuple(blocks()), lambda: plan_document(plan))


def _cost(plan: SuitePlan) -> Facts:
    most = gpu_hours_digits(plan.most_gpu_hours)
    parallel = "" if plan.parallel_s is None else f", {duration(plan.parallel_s)} on {plan.free_nodes} free nodes"
    unknown = f"{plural(plan.without_estimate, 'run')}, by the time limit" if plan.without_estimate else ""
    return known(
        Fact("cost", f"{gpu_hours(plan.gpu_hours)} and start-up, at most {most} by the time limits"),
        Fact("without an estimate", unknown),
        Fact("training", f"{duration(plan.serial_s)} one after the other{parallel}; queue and start-up not in it"),
        Fact("submission", plan.suite.conduct),
    )


def submitted_suite(progress: SuiteProgress) -> Answer:
    """How a suite stands: its runs, the answer of the suite so far, and the remaining work."""

    def blocks() -> Iterator[Block]:
        yield Grid("", Table.by(run_columns("suite"), map(row_from_progress, progress.rows)))
        errors = [(row.planned.row.key, row.error) for row in progress.rows if row.error is not None]
        if errors:
            label = severity_label("error")
            lines = ((key, " ".join(str(error).splitlines())) for key, error in errors)
            yield Remarks(tuple(Remark(label, f"{key}: {text}") for key, text in lines))
        yield Bullets(outcome_of(progress).lines)
        if not progress.over:
            left = f"{gpu_hours(progress.gpu_hours_left)}, {duration(progress.serial_left_s)} of training"
            yield Facts((Fact("remaining", left),))

    return Answer(f"Suite {progress.plan.suite.name}", lambda: tuple(blocks()), lambda: progress_document(progress))


def suites(found: Sequence[SuiteProgress]) -> Answer:
    """All suites in the order that they are given in."""
    return Answer(
        "Suites",
        lambda: (Grid("", Table.by(_SUITES, found)),),
        lambda: [progress_document(progress) for progress in found],
    )
