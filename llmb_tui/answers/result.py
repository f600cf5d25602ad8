"""`results`: how runs came out, by their recipes' rules or by one of NVIDIA's. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llmb_tui.analysis.upstream_rules import Rule
from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Fact, Facts, Grid
from llmb_tui.answers.run_columns import run_columns
from llmb_tui.answers.run_row import RunRow, row_from_document
from llmb_tui.answers.table import Table, bare
from llmb_tui.language.quantities import days, given, seconds, step_time, step_time_range, tflops, two_digits
from llmb_tui.language.states import validity_label
from llmb_tui.language.text import plural
from llmb_tui.plan.plan import expected_step_time

_Document = Mapping[str, Any]


def results(documents: Sequence[_Document], rule: Rule) -> Answer:
    """Results of runs and logs by their JSON objects; those of NVIDIA's `rule` are in `result.upstream`."""
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


def _with_columns(document: _Document, row: RunRow) -> _Document:
    """The JSON object of a run, with the columns that its keys do not have."""
    columns = {column.name: bare(column.cell(row)) for column in run_columns("results json")}
    return {**document, "result": {**document["result"], **columns}} if columns else document


def _facts(document: _Document, row: RunRow) -> Iterator[Fact]:
    """Facts of one run for which the table has no room."""
    result, figures, steady = document["result"], row.figures, row.steady
    estimate, published, loss = result["estimate"], result["published"], result["loss"]
    if steady:
        deviation = "" if steady.stdev is None else f", deviation {two_digits(steady.stdev)} s"
        words = f"mean {step_time(steady.mean)}, median {step_time(steady.median)}{deviation}"
        yield Fact("steady", f"{words}: {plural(steady.count, 'step')}, {step_time_range(steady.low, steady.high)}")
    if estimate:
        band = step_time_range(estimate["low_s"], estimate["high_s"])
        expected = expected_step_time(estimate["method"])(estimate["step_time_s"])
        yield Fact("expected", f"{expected} s ({band}), {estimate['anchor']}")
    if published:
        yield Fact("published", f"{given(published['step_time_s'])} s, {published['source']}")
    if figures and figures.days_per_1t_tokens:
        yield Fact("1T tokens", days(figures.days_per_1t_tokens))
    if row.logged_tflops_per_gpu is not None:
        yield Fact("log", f"{tflops(row.logged_tflops_per_gpu)} TFLOPS on each GPU")
    if loss:
        first = loss["against_first"]
        difference = two_digits(first["last_pct"], "+") if first else ""
        against = f"; {difference} % from run {first['run']} at step {first['step']}" if first else ""
        yield Fact("loss", f"{loss['words']}{against}")
    for checkpoint in row.checkpoints:
        at = "" if checkpoint.iteration is None else f" at iteration {checkpoint.iteration}"
        yield Fact("checkpoint", f"{checkpoint.kind} {seconds(checkpoint.seconds)}{at}")
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
