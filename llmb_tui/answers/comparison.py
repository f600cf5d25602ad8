"""`compare`: runs or groups of runs side by side: differences with their noise, and why some are not compared. Pure."""

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
    given,
    percent_digits,
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
"""Names of the columns of runs that follow from a step time: a side has them by the mean of its repeats."""
_REPEATS: tuple[Column, ...] = (
    Column("step s", quantity("mean_s", step_time_digits)),
    Column("noise %", quantity("noise_pct", two_digits)),
    Column("± mean %", quantity("half_width_pct", two_digits)),
    Column("± own steps %", quantity("within_run_pct", two_digits)),
    Column("published s", quantity("published_s", given)),
    Column("of published %", quantity("of_published_pct", percent_digits)),
    Column("low–high s", _low_high),
)
"""Columns of repeats. Noise is the deviation between the runs; an interval is that of the mean, or of a single run."""


def comparison(
    compared: Comparison, curves: Sequence[ScalingCurve], changed: RunDifference | None, *, with_texts: bool = False
) -> Answer:
    """Runs compared with each other, or with those of another side.

    `changed`: what else differs between two runs; `with_texts`: show how their scripts and files differ.
    """
    likeness = compared.comparability

    def blocks() -> Iterator[Block]:
        yield from difference_blocks(compared)
        yield Grid(f"Runs: {PURPOSES[likeness.purpose]}.", _run_table(compared.runs))
        if any(len(one.runs) > 1 for one in compared.groups):
            yield repeats_grid(compared)
        yield from map(curve_grid, curves if likeness.comparable else ())
        if changed is not None and (changed.changes or with_texts):
            yield from change_blocks(changed, with_texts=with_texts)
        elif with_texts:
            yield Text("--diff shows what differs between two runs, or two sides: name two, or use --against.")

    return Answer(
        f"{plural(len(compared.runs), 'run')} compared",
        lambda: tuple(blocks()),
        lambda: comparison_document(compared, curves, changed),
        lambda: Table.for_programs(run_columns("compare csv"), map(row_from_result, compared.runs)),
    )


def difference_blocks(compared: Comparison) -> Iterator[Block]:
    """The differences, and remarks on what forbids or weakens the comparison, or is not in it."""
    if compared.contrasts:
        caption = f"Differences, by the time that a GPU takes for a token: {PURPOSES[compared.comparability.purpose]}."
        columns: tuple[Column, ...] = (
            Column("", lambda one: compared.name(one.other)),
            Column("compared with", lambda one: compared.name(one.base)),
            Column("step time", lambda one: f"{step_time(one.base.mean_s)} → {step_time(one.other.mean_s)}"),
            Column("difference", _outcome),
        )
        yield Grid(caption, Table.by(columns, compared.contrasts))
    if remarks := tuple(_remarks(compared)):
        yield Remarks(remarks)


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
        words = f"{plural(doubled, 'run')} of both sides: the difference is smaller than it would be without."
        yield Remark(doubtful, words)
    yield from (Remark(excluded, f"{label}: the other side has nothing like it.") for label in compared.unpaired)
    yield from (Remark(excluded, f"Run {run_id}: {why}.") for run_id, why in compared.left_out)


def repeats_grid(compared: Comparison) -> Grid:
    """Groups of repeats with their noise."""
    columns = (Column("", compared.name), Column("runs", lambda one: len(one.runs)), *_REPEATS)
    caption = f"Repeats: {MEASURE_WORDS[compared.measure]}, with its noise."
    return compact_grid(caption, Table.by(columns, compared.groups))


def _run_table(runs: Sequence[RunResult]) -> Table:
    """Runs without what all of them have in common."""
    names = dict(zip((run.id for run in runs), distinctions(runs), strict=True))
    first, *figures = run_columns("compare")
    return Table.by((first, Column("", lambda row: names[row.id]), *figures), map(row_from_result, runs))


@dataclass(frozen=True, slots=True)
class _Side:
    """A marked group, and its newest run with its whole log."""

    group: ResultGroup
    newest: RunResult

    @property
    def figures(self) -> Figures | None:
        """The figures by the mean step time of repeats."""
        repeats = self.group.repeats
        return figures_of(repeats.runs[-1].plan, repeats.mean_s) if repeats else None


def side_by_side(
    marked: Sequence[ResultGroup],
    newest: Sequence[RunResult],
    comparisons: Sequence[Comparison],
    differences: Sequence[RunDifference],
) -> Answer:
    """Marked groups, each compared with the first.

    `newest`: the newest run of each, with its whole log. `comparisons` and `differences`: of each further group with
    the first one.
    """
    names = side_names(marked)

    def blocks() -> Iterator[Block]:
        for name, compared in zip(names[1:], comparisons, strict=True):
            found = tuple(difference_blocks(compared))
            yield from found if len(names) == 2 else [Section(f"{name}, compared with {names[0]}", found)]
        yield _figures_grid(names, [_Side(*pair) for pair in zip(marked, newest, strict=True)])
        for changed in differences:
            yield from change_blocks(changed, with_texts=True)

    return Answer(
        f"{len(marked)} side by side",
        lambda: tuple(blocks()),
        lambda: [comparison_document(one, (), other) for one, other in zip(comparisons, differences, strict=True)],
    )


def side_names(marked: Sequence[ResultGroup]) -> list[str]:
    """A run's id; of a group the respects in which it differs from the others."""
    apart = distinctions([one.first for one in marked])
    names = [words if one.by == "configuration" else one.title for one, words in zip(marked, apart, strict=True)]
    singles = [one.first.id if one.by == "none" else "" for one in marked]
    return [single or name or group_name(one) for single, name, one in zip(singles, names, marked, strict=True)]


def _figures_grid(names: Sequence[str], sides: Sequence[_Side]) -> Grid:
    """A row for each figure that some side has, and a column for each side."""
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
    saves = [one.seconds for one in side.newest.checkpoints if one.kind == "save"]
    return f"{seconds(max(saves))} at most" if saves else None


_SIDE: tuple[Column, ...] = (
    Column("runs", _runs),
    *map(_of_repeats, _REPEATS),
    *(column for column in run_columns("compare") if column.name in _FIGURES),
    Column("of expected %", quantity(_of_expected_pct, percent_digits)),
    Column("verdicts", _verdicts),
    Column("loss", "newest.loss.words"),
    Column("checkpoint", _checkpoint),
    Column("simulated", lambda side: "yes: nothing was trained" if side.newest.simulated else None),
    Column("restarts", lambda side: side.newest.restarts or None),
    Column("nodes", lambda side: (side.newest.job and side.newest.job.node_list) or None),
)
"""Rows of the figures side by side; from the loss on of the newest run, by its log and its scheduler."""
