"""`compare`: runs or groups of runs side by side, their differences with the noise, and excluded runs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from llmb_tui.analysis.comparability import PURPOSES, distinctions
from llmb_tui.analysis.compare import MEASURE_WORDS, Comparison, Contrast, Group
from llmb_tui.analysis.difference import RunDifference
from llmb_tui.analysis.document import comparison_document
from llmb_tui.analysis.groups import ResultGroup, group_name
from llmb_tui.analysis.result import Figures, RunResult, figures_of
from llmb_tui.analysis.scaling import ScalingCurve
from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Grid, Remark, Remarks, Section, Text, compact_grid
from llmb_tui.answers.changes import change_blocks
from llmb_tui.answers.run_columns import run_columns
from llmb_tui.answers.run_row import row_from_result
from llmb_tui.answers.scaling import curve_grid
from llmb_tui.answers.table import Cell, Column, Table, Toned, quantity
from llmb_tui.language.quantities import (
    percent_digits,
    plain_number,
    seconds,
    step_time,
    step_time_digits,
    step_time_range_digits,
    two_digits,
)
from llmb_tui.language.states import contrast_label, remark_label, verdict_label
from llmb_tui.language.text import plural


def _low_high(repeats: Group) -> str | None:
    several = len(repeats.runs) > 1
    return step_time_range_digits(min(repeats.values_s), max(repeats.values_s)) if several else None


_FIGURES = frozenset(field.name for field in fields(Figures))
"""Names of the columns that follow from a step time; a side has them by the mean step time of its repeats."""
_REPEATS: tuple[Column, ...] = (
    Column("step s", quantity("mean_s", step_time_digits)),
    Column("noise %", quantity("noise_pct", two_digits)),
    Column("± mean %", quantity("half_width_pct", two_digits)),
    Column("± within run %", quantity("within_run_pct", two_digits)),
    Column("published s", quantity("published_s", plain_number)),
    Column("of published %", quantity("of_published_pct", percent_digits)),
    Column("low–high s", _low_high),
)
"""Columns for repeats. The noise is the deviation between runs; an interval belongs to the mean or to a single run."""


def comparison(
    compared: Comparison, curves: Sequence[ScalingCurve], changed: RunDifference | None, *, with_texts: bool = False
) -> Answer:
    """Runs compared with each other, or with those of another side.

    `changed`: further differences of two runs; `with_texts`: include differences of their scripts and files.
    """
    comparability = compared.comparability

    def blocks() -> Iterator[Block]:
        yield from difference_blocks(compared)
        yield Grid(f"Runs, compared for: {PURPOSES[comparability.purpose]}.", _run_table(compared.runs))
        if any(len(repeats.runs) > 1 for repeats in compared.groups):
            yield repeats_grid(compared)
        yield from map(curve_grid, curves if comparability.comparable else ())
        if changed is not None and (changed.changes or with_texts):
            yield from change_blocks(changed, with_texts=with_texts)
        elif with_texts:
            yield Text("--diff needs two runs or two sides: name two runs, or use --against.")

    return Answer(
        f"{plural(len(compared.runs), 'run')} compared",
        lambda: tuple(blocks()),
        lambda: comparison_document(compared, curves, changed),
        lambda: Table.for_programs(run_columns("compare csv"), map(row_from_result, compared.runs)),
    )


def difference_blocks(compared: Comparison) -> Iterator[Block]:
    """The differences, and remarks on refusals, on weaknesses of the comparison and on excluded runs."""
    if compared.contrasts:
        caption = f"Differences of the GPU time per token, compared for: {PURPOSES[compared.comparability.purpose]}."
        columns: tuple[Column, ...] = (
            Column("", lambda contrast: compared.name(contrast.other)),
            Column("compared with", lambda contrast: compared.name(contrast.base)),
            Column("step time", _step_times),
            Column("difference", _outcome),
        )
        yield Grid(caption, Table.by(columns, compared.contrasts))
    if remarks := tuple(_remarks(compared)):
        yield Remarks(remarks)


def _step_times(contrast: Contrast) -> str:
    return f"{step_time(contrast.base.mean_s)} → {step_time(contrast.other.mean_s)}"


def _outcome(contrast: Contrast) -> Cell:
    return Toned(contrast.words, contrast_label(contrast.outcome).tone)


def _remarks(compared: Comparison) -> Iterator[Remark]:
    refused, doubtful, excluded = remark_label("refused"), remark_label("doubtful"), remark_label("excluded")
    yield from (Remark(refused, remark.words) for remark in compared.comparability.refusals)
    if not compared.groups:
        yield Remark(refused, "None of these runs counts.")
    elif compared.unpaired and compared.comparability.comparable and not compared.contrasts:
        yield Remark(refused, "No run has a counterpart on the other side.")
    yield from (Remark(doubtful, remark.words) for remark in compared.comparability.warnings)
    if doubled := len(compared.runs) - len({run.id for run in compared.runs}):
        words = f"{plural(doubled, 'run')} on both sides, which makes the difference smaller than it is."
        yield Remark(doubtful, words)
    yield from (Remark(excluded, f"{label}: no comparable run on the other side.") for label in compared.unpaired)
    yield from (Remark(excluded, f"Run {run_id}: {why}.") for run_id, why in compared.left_out)


def repeats_grid(compared: Comparison) -> Grid:
    """A table of groups of repeats with their noise."""
    columns = (Column("", compared.name), Column("runs", lambda repeats: len(repeats.runs)), *_REPEATS)
    caption = f"Repeats: {MEASURE_WORDS[compared.measure]}, with its noise."
    return compact_grid(caption, Table.by(columns, compared.groups))


def _run_table(runs: Sequence[RunResult]) -> Table:
    """A table of runs, each named by its differences from the others."""
    names = dict(zip((run.id for run in runs), distinctions(runs), strict=True))
    first, *figures = run_columns("compare")
    return Table.by((first, Column("", lambda row: names[row.id]), *figures), map(row_from_result, runs))


@dataclass(frozen=True, slots=True)
class _Side:
    """A marked group, and its newest run with the whole log."""

    group: ResultGroup
    newest: RunResult

    @property
    def figures(self) -> Figures | None:
        """Figures by the mean step time of the repeats."""
        repeats = self.group.repeats
        return figures_of(repeats.runs[-1].plan, repeats.mean_s) if repeats else None


def side_by_side(
    marked: Sequence[ResultGroup],
    newest: Sequence[RunResult],
    comparisons: Sequence[Comparison],
    differences: Sequence[RunDifference],
) -> Answer:
    """Marked groups, each compared with the first.

    `newest`: the newest run of each group, with its whole log. `comparisons` and `differences`: each further group
    against the first one.
    """
    names = side_names(marked)

    def blocks() -> Iterator[Block]:
        for name, compared in zip(names[1:], comparisons, strict=True):
            parts = tuple(difference_blocks(compared))
            yield from parts if len(names) == 2 else [Section(f"{name}, compared with {names[0]}", parts)]
        yield _figures_grid(names, [_Side(*pair) for pair in zip(marked, newest, strict=True)])
        for changed in differences:
            yield from change_blocks(changed, with_texts=True)

    return Answer(
        f"{len(marked)} side by side",
        lambda: tuple(blocks()),
        lambda: [
            comparison_document(compared, (), changed)
            for compared, changed in zip(comparisons, differences, strict=True)
        ],
    )


def side_names(marked: Sequence[ResultGroup]) -> list[str]:
    """Names of the sides: the id of a single run, the title of a group, or its differences from the other groups."""
    differences = distinctions([group.first for group in marked])
    return [_side_name(*pair) for pair in zip(marked, differences, strict=True)]


def _side_name(group: ResultGroup, differences: str) -> str:
    if group.by == "none":
        return group.first.id
    return (differences if group.by == "configuration" else group.title) or group_name(group)


def _figures_grid(names: Sequence[str], sides: Sequence[_Side]) -> Grid:
    """A table with a row for each figure that any side has, and a column for each side."""
    rows = ((column.heading, *map(column.cell, sides)) for column in _SIDE)
    known = [row for row in rows if any(cell is not None for cell in row[1:])]
    return Grid("", Table.of(("", *names), known), fold="columns")


def _runs(side: _Side) -> str:
    group = side.group
    return f"{group.counted} of {len(group.runs)} count" if len(group.runs) > 1 else group.first.id


def _of_repeats(column: Column) -> Column:
    return Column(column.heading, lambda side: column.cell(side.group.repeats) if side.group.repeats else None)


def _of_expected_pct(side: _Side) -> float | None:
    return None if side.group.ratio is None else 100 * side.group.ratio


def _verdicts(side: _Side) -> Cell:
    group = side.group
    if group.worst is None:
        return None
    counts = ", ".join(f"{verdict_label(result).text} {count}" for result, count in group.verdicts.items())
    return Toned(counts, verdict_label(group.worst).tone)


def _checkpoint(side: _Side) -> str | None:
    saves = [checkpoint.seconds for checkpoint in side.newest.checkpoints if checkpoint.kind == "save"]
    return f"up to {seconds(max(saves))}" if saves else None


_SIDE: tuple[Column, ...] = (
    Column("runs", _runs),
    *map(_of_repeats, _REPEATS),
    *(column for column in run_columns("compare") if column.name in _FIGURES),
    Column("of expected %", quantity(_of_expected_pct, percent_digits)),
    Column("verdicts", _verdicts),
    Column("loss", "newest.loss.words"),
    Column("checkpoint", _checkpoint),
    Column("simulated", lambda side: "yes: no GPU trained anything" if side.newest.simulated else None),
    Column("restarts", lambda side: side.newest.restarts or None),
    Column("nodes", lambda side: (side.newest.job and side.newest.job.node_list) or None),
)
"""Rows of the figures side by side. `loss` and the rows after it belong to the newest run."""
