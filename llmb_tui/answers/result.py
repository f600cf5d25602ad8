"""`results`: results of runs, by their recipes' rules or by a rule of NVIDIA's tools. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llmb_tui.analysis.result import LossDifference
from llmb_tui.analysis.statistics import SampleStatistics
from llmb_tui.analysis.upstream_rules import Rule
from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Fact, Facts, Grid
from llmb_tui.answers.plan import expected_words
from llmb_tui.answers.run_columns import run_columns
from llmb_tui.answers.run_row import RunRow, row_from_document
from llmb_tui.answers.table import Table, bare
from llmb_tui.language.quantities import days, plain_number, seconds, step_time, step_time_range, tflops, two_digits
from llmb_tui.language.states import method_word, validity_label
from llmb_tui.language.text import plural
from llmb_tui.plan.plan import expected_step_time

_Document = Mapping[str, Any]


def results(documents: Sequence[_Document], rule: Rule) -> Answer:
    """Results of runs and logs, from their JSON objects; those by a `rule` of NVIDIA's are in `result.upstream`."""
    rows = [row_from_document(document) for document in documents]
    by_recipe = rule == "recipe"

    def blocks() -> Iterator[Block]:
        yield Grid("", Table.by(run_columns("results" if by_recipe else "rule"), rows))
        if by_recipe and len(rows) == 1:
            yield Facts(tuple(_facts(documents[0], rows[0])))

    return Answer(
        "Results",
        lambda: tuple(blocks()),
        lambda: [_with_columns(*pair) for pair in zip(documents, rows, strict=True)],
        lambda: Table.for_programs(run_columns("results csv" if by_recipe else "rule csv"), rows),
    )


def steady_words(steady: SampleStatistics) -> str:
    """Mean, median, deviation and range of the steady steps."""
    deviation = ""
    if steady.stdev is not None and steady.cv_pct is not None:
        deviation = f", deviation {two_digits(steady.stdev)} s ({two_digits(steady.cv_pct)} %)"
    times = f"mean {step_time(steady.mean)}, median {step_time(steady.median)}"
    return f"{times}{deviation}, range {step_time_range(steady.low, steady.high)}"


def loss_words(words: str, difference: LossDifference | None) -> str:
    """Course of the loss, and its difference from the configuration's first run."""
    if difference is None:
        return words
    last, largest = two_digits(difference.last_pct, "+"), two_digits(difference.largest_pct)
    return (
        f"{words}; {last} % at iteration {difference.step} compared with run {difference.run}, the first of this "
        f"configuration; at most {largest} %"
    )


def _with_columns(document: _Document, row: RunRow) -> _Document:
    """The JSON object of a run, with the columns for which it has no keys."""
    columns = {column.name: bare(column.cell(row)) for column in run_columns("results json")}
    return {**document, "result": {**document["result"], **columns}} if columns else document


def _facts(document: _Document, row: RunRow) -> Iterator[Fact]:
    """Facts of a single run that are not in the table."""
    result, figures, steady = document["result"], row.figures, row.steady
    estimate, published, loss = result["estimate"], result["published"], result["loss"]
    if steady:
        yield Fact("steady", f"{plural(steady.count, 'step')}: {steady_words(steady)}")
    if estimate:
        text = expected_step_time(estimate["method"])(estimate["step_time_s"])
        source = f"{method_word(estimate['method'])}: {estimate['anchor']}"
        yield Fact("expected", expected_words(f"{text} s", estimate["low_s"], estimate["high_s"], source))
    if published:
        yield Fact("published", f"{plain_number(published['step_time_s'])} s, {published['source']}")
    if figures and figures.days_per_1t_tokens:
        yield Fact("1T tokens", days(figures.days_per_1t_tokens))
    if row.logged_tflops_per_gpu is not None:
        yield Fact("logged", f"{tflops(row.logged_tflops_per_gpu)} TFLOPS/GPU")
    if loss:
        first = loss["against_first"]
        yield Fact("loss", loss_words(loss["words"], LossDifference(**first) if first else None))
    for checkpoint in row.checkpoints:
        iteration = "" if checkpoint.iteration is None else f" at iteration {checkpoint.iteration}"
        yield Fact("checkpoint", f"{checkpoint.kind} {seconds(checkpoint.seconds)}{iteration}")
    if row.node_list:
        yield Fact("nodes", row.node_list)
    if row.restarts:
        yield Fact("restarts", f"{row.restarts}")
    yield from (Fact("earlier log", log) for log in result["earlier_logs"])
    if document["starts"] > 1:
        yield Fact("starts", f"{document['starts']}")
    for check in document["validity"]:
        label = validity_label(check["outcome"])
        yield Fact(f"check {check['id']}", f"{label.word}: {check['found']}", tone=label.tone)
