"""`planned_suite`, `submitted_suite`, `suites`: the plan of a suite, its progress, and the list of all suites. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Bullets, Fact, Facts, Grid, Remark, Remarks, Text, known_facts
from llmb_tui.answers.plan import cost_words
from llmb_tui.answers.run_columns import run_columns
from llmb_tui.answers.run_row import row_from_plan, row_from_progress
from llmb_tui.answers.table import Column, Table
from llmb_tui.language.quantities import duration, gpu_hours
from llmb_tui.language.states import NO_ESTIMATE, severity_label
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
    """Preview of a suite: its runs, their cost and duration, and its problems."""
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
    parallel = "" if plan.parallel_s is None else f", {duration(plan.parallel_s)} on {plan.free_nodes} free nodes"
    unknown = f"{plural(plan.without_estimate, 'run')}, counted by the time limit" if plan.without_estimate else ""
    return known_facts(
        Fact("cost", f"{cost_words(plan.gpu_hours)}; at most {gpu_hours(plan.most_gpu_hours)} by the time limits"),
        Fact(NO_ESTIMATE, unknown),
        Fact("training", f"{duration(plan.serial_s)} in sequence{parallel}; plus queue and start-up"),
        Fact("submission", plan.suite.submission_words),
    )


def submitted_suite(progress: SuiteProgress) -> Answer:
    """Progress of a suite: its runs, its outcome so far, and the remaining work."""

    def blocks() -> Iterator[Block]:
        yield Grid("", Table.by(run_columns("suite"), map(row_from_progress, progress.rows)))
        errors = [(row.planned.row.key, row.error) for row in progress.rows if row.error is not None]
        if errors:
            label = severity_label("error")
            words = ((key, " ".join(str(error).splitlines())) for key, error in errors)
            yield Remarks(tuple(Remark(label, f"{key}: {text}") for key, text in words))
        yield Bullets(outcome_of(progress).lines)
        if not progress.over:
            remaining = f"{gpu_hours(progress.gpu_hours_left)}, {duration(progress.serial_left_s)} of training"
            yield Facts((Fact("remaining", remaining),))

    return Answer(f"Suite {progress.plan.suite.name}", lambda: tuple(blocks()), lambda: progress_document(progress))


def suites(listed: Sequence[SuiteProgress]) -> Answer:
    """A list of suites, in the given order."""
    return Answer(
        "Suites",
        lambda: (Grid("", Table.by(_SUITES, listed)),),
        lambda: [progress_document(progress) for progress in listed],
    )
