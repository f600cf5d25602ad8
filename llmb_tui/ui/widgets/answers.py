"""`ResultAnswer`: what is said of some results, as texts and charts: compared, over scales, by nodes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from textual.content import Content

from llmb_tui.analysis.chart import Chart
from llmb_tui.analysis.compare import Comparison, Contrast, Group
from llmb_tui.analysis.difference import RunDifference, TextDiff
from llmb_tui.analysis.groups import ResultGroup
from llmb_tui.analysis.likeness import PURPOSES, distinctions
from llmb_tui.analysis.result import RunResult, figures_of
from llmb_tui.analysis.scaling import ScalingCurve
from llmb_tui.analysis.slow_nodes import RULE, NodeFinding, SlowNodes
from llmb_tui.evidence.manifest import Manifest
from llmb_tui.language.node_list import compress
from llmb_tui.language.quantities import (
    byte_size,
    count,
    days,
    given,
    percent,
    percent_digits,
    seconds,
    step_time,
    step_time_range,
    tflops,
    tokens_per_s,
    two_digits,
)
from llmb_tui.language.states import contrast_label, node_label, verdict_label
from llmb_tui.language.text import plural
from llmb_tui.ui.text import ERROR_MARK, MUTED, STYLES, hanging, line, state_mark
from llmb_tui.ui.widgets.result_texts import group_name
from llmb_tui.ui.widgets.texts import Paragraph, Rows, folded

_NAMES = 15
_LEAST_COLUMN = 14
_DIFF_STYLES = {"+": "$text-success", "-": "$text-error", "@": "$text-accent"}


@dataclass(frozen=True, slots=True)
class ResultAnswer:
    """What a view shows from top to bottom."""

    title: str
    blocks: tuple[Rows | Chart, ...]
    copy: str = ""
    """What may be taken from it; empty: nothing."""
    no_copy: str = ""
    """Why nothing may be."""

    @property
    def charts(self) -> tuple[Chart, ...]:
        """Those among its blocks."""
        return tuple(block for block in self.blocks if isinstance(block, Chart))


# Marked groups or runs, side by side.


def compared(
    marked: Sequence[ResultGroup],
    newest: Sequence[RunResult],
    comparisons: Sequence[Comparison],
    differences: Sequence[RunDifference],
) -> ResultAnswer:
    """Marked groups beside each other, each held against the first.

    `newest` has of each its newest run with its whole log; `comparisons` and `differences` those of each further one
    with the first.
    """
    names = column_names(marked)
    blocks: list[Rows] = [lambda width: side_by_side(names, _figures(marked, newest), width)]
    for name, comparison, difference in zip(names[1:], comparisons, differences, strict=True):
        blocks.append(_texts(_against(f"{name}, held against {names[0]}", comparison)))
        blocks.append(_texts(_differing(difference)))
    return ResultAnswer(f"{len(marked)} side by side", tuple(blocks))


def column_names(marked: Sequence[ResultGroup]) -> list[str]:
    """In what they differ; a run also by its id."""
    apart = distinctions([one.first for one in marked])
    names = [words if one.by == "configuration" else one.title for one, words in zip(marked, apart, strict=True)]
    singles = [one.first.id if one.by == "none" else "" for one in marked]
    return [single or name or group_name(one) for single, name, one in zip(singles, names, marked, strict=True)]


def side_by_side(names: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], width: int) -> list[Content]:
    """Named rows of cells under the names of their columns; in several parts where not all columns fit."""
    room = max(width - _NAMES, _LEAST_COLUMN)
    widest = max(len(cell) for cell in (*names, *(cell for _, cells in rows for cell in cells))) + 2
    column = min(max(widest, _LEAST_COLUMN), max(room // len(names), _LEAST_COLUMN + 6), room)
    fitting = max(room // column, 1)
    found: list[Content] = []
    for begin in range(0, len(names), fitting):
        part = slice(begin, begin + fitting)
        found += [Content("")] if begin else []
        found += _row("", names[part], column, "bold")
        for name, values in rows:
            found += _row(name, values[part], column)
    return found


def _row(name: str, cells: Sequence[str], column: int, style: str = "") -> Iterator[Content]:
    """As many lines as the cell takes that is folded most often."""
    folded = [[str(part).rstrip() for part in line(cell).wrap(column - 2)] for cell in cells]
    for at, texts in enumerate(zip_longest(*folded, fillvalue="")):
        row = "".join(text.ljust(column) for text in texts).rstrip()
        yield line((f"{'' if at else name:<{_NAMES}}", MUTED if name else ""), (row, style))


def _figures(marked: Sequence[ResultGroup], newest: Sequence[RunResult]) -> list[tuple[str, list[str]]]:
    """The rows of the comparison: only those in which some column has a value."""
    columns = [_column(*pair) for pair in zip(marked, newest, strict=True)]
    names = list(dict.fromkeys(name for column in columns for name in column))
    return [(name, [column.get(name) or "–" for column in columns]) for name in names]


def _column(group: ResultGroup, newest: RunResult) -> dict[str, str]:
    """The values of one column by the names of their rows; what is not known is left out."""
    out = {"runs": f"{group.counted} of {len(group.runs)} count" if len(group.runs) > 1 else group.first.id}
    if group.repeats is not None:
        out |= _times(group.repeats)
    if group.ratio is not None:
        out["of expected"] = percent(100 * group.ratio)
    if group.verdicts:
        counts = group.verdicts.items()
        out["verdicts"] = ", ".join(f"{verdict_label(result).text} {count}" for result, count in counts)
    return out | _last(newest)


def _times(repeats: Group) -> dict[str, str]:
    figures, out = figures_of(repeats.runs[-1].plan, repeats.mean_s), {"step time": step_time(repeats.mean_s)}
    if len(repeats.runs) > 1:
        out["low – high"] = step_time_range(min(repeats.values_s), max(repeats.values_s))
    parts = {
        "between runs": repeats.noise_pct,
        "mean, 95 %": repeats.half_width_pct,
        "by its steps": repeats.within_run_pct,
    }
    out |= {name: f"± {two_digits(value)} %" for name, value in parts.items() if value is not None}
    out["tokens/s"] = tokens_per_s(figures.tokens_per_s)
    if figures.tflops_per_gpu is not None and figures.mfu_pct is not None:
        out |= {"TFLOPS/GPU": tflops(figures.tflops_per_gpu), "MFU": percent(figures.mfu_pct)}
    out["1T tokens"] = days(figures.days_per_1t_tokens)
    if repeats.of_published_pct is not None:
        out["of published"] = percent(repeats.of_published_pct)
    return out


def _last(newest: RunResult) -> dict[str, str]:
    """What its log and its scheduler say of the newest run."""
    out: dict[str, str] = {}
    if newest.loss is not None:
        out["loss"] = newest.loss.words
    if saves := [one.seconds for one in newest.checkpoints if one.kind == "save"]:
        out["checkpoint"] = f"{seconds(max(saves))} at most"
    if newest.facts is not None and newest.facts.simulated:
        out["simulated"] = "yes: nothing was trained"
    if newest.restarts:
        out["restarts"] = f"{newest.restarts}"
    if newest.job and newest.job.node_list:
        out["nodes"] = newest.job.node_list
    return out


def _against(head: str, comparison: Comparison) -> Iterator[Paragraph]:
    """The answer of a comparison, with what forbids it or weakens it."""
    likeness = comparison.likeness
    yield line(), line((head, "bold"), (f"   {PURPOSES[likeness.purpose]}", MUTED))
    for refusal in likeness.refusals:
        yield line(ERROR_MARK), line(("not compared: ", "$text-error"), refusal.words)
    for contrast in comparison.contrasts:
        yield _contrast(comparison, contrast)
    if not comparison.contrasts and not likeness.refusals:
        yield line(("? ", MUTED)), line("Nothing can be held against each other: no run of one side counts.")
    for warning in likeness.warnings:
        yield line(("! ", "$text-warning")), line(("with care: ", "$text-warning"), warning.words)
    if doubled := len(comparison.runs) - len({run.id for run in comparison.runs}):
        words = f"{plural(doubled, 'run')} of both sides: the difference is smaller than it would be without."
        yield line(("! ", "$text-warning")), line(("with care: ", "$text-warning"), words)
    for label in comparison.unpaired:
        yield line(("· ", MUTED)), line((f"{label}: nothing on the other side to hold it against", MUTED))
    for run_id, why in comparison.left_out:
        yield line(("· ", MUTED)), line((f"run {run_id} is left out: {why}", MUTED))


def _contrast(comparison: Comparison, contrast: Contrast) -> Paragraph:
    mark = state_mark(contrast_label(contrast.outcome))
    times = f"{step_time(contrast.base.mean_s)} → {step_time(contrast.other.mean_s)}"
    named = f"{contrast.other.configuration.label}: " if len(comparison.contrasts) > 1 else ""
    return line(mark), line(named, (contrast.words, f"bold {mark[1]}"), f"   {times}")


def _differing(difference: RunDifference) -> Iterator[Paragraph]:
    """What else differs between the newest runs of both."""
    yield line(), line((f"what differs from run {difference.before} to run {difference.after}", "bold"))
    if not difference.changes and not difference.texts:
        yield line(), line(("nothing that is known", MUTED))
    for part in dict.fromkeys(change.part for change in difference.changes):
        for at, change in enumerate(one for one in difference.changes if one.part == part):
            head = line((f"{'' if at else part:<{_NAMES - 2}}", MUTED))
            yield head, line(f"{change.name}: ", change.before or "not set", " → ", change.after or "not set")
    for text in difference.texts:
        yield from _text_diff(text)
    for sentence in difference.unknown:
        yield line(("· ", MUTED)), line((sentence, MUTED))


def _text_diff(text: TextDiff) -> Iterator[Paragraph]:
    yield line(), line((text.name, "bold"))
    for row in text.lines:
        if not row.startswith(("---", "+++")):
            yield line("  "), line((row, _DIFF_STYLES.get(row[:1], MUTED)))
    if text.cut:
        yield line("  "), line((f"{plural(text.cut, 'further line')}", MUTED))


# Over the number of GPUs.


def over_scales(curves: Sequence[tuple[ScalingCurve, Sequence[Chart]]]) -> ResultAnswer:
    """Scaling curves, each with its charts."""
    blocks: list[Rows | Chart] = []
    for curve, charts in curves:
        blocks += [_curve_table(curve), *charts]
        blocks.append(_texts((line(), line((note, MUTED))) for chart in charts for note in chart.notes))
    return ResultAnswer(f"Scaling: {curves[0][0].label}" if len(curves) == 1 else "Scaling", tuple(blocks))


def _curve_table(curve: ScalingCurve) -> Rows:
    heads = ("GPUs", "runs", "step time", "tokens/s", "efficiency", "published", "its efficiency")
    widths = (7, 6, 11, 13, 16, 11, 15)
    rows = [line((f"{curve.label}, {curve.scaling} scaling", "bold")), line((_cells(heads, widths), MUTED))]
    for point in curve.points:
        half = "" if point.efficiency_half_width_pct is None else f" ± {two_digits(point.efficiency_half_width_pct)}"
        texts = (
            count(point.gpus),
            f"{len(point.group.runs)}",
            step_time(point.group.mean_s),
            tokens_per_s(point.tokens_per_s),
            f"{percent_digits(point.efficiency_pct)}{half} %",
            "–" if point.published_s is None else f"{given(point.published_s)} s",
            "–" if point.published_efficiency_pct is None else percent(point.published_efficiency_pct),
        )
        rows.append(line(_cells(texts, widths)))
    return lambda width: [row.truncate(width, ellipsis=True) for row in rows]


# By nodes.


def by_nodes(found: SlowNodes, clusters: Sequence[str]) -> ResultAnswer:
    """Which nodes are slow, with the evidence, and what leaves them out."""
    words = [(line(), line((found.words, "bold")))]
    if found.exclude:
        words.append((line(), line("y copies ", (found.exclude, "$text-accent"))))
    if found.passed_over:
        beside = f"{plural(found.passed_over, 'run')} could not be used: no repeats, nodes not known, or not comparable"
        words.append((line(), line((beside, MUTED))))
    blocks = [_texts(words)]
    if found.findings:
        blocks.append(_node_table(found.findings))
    blocks.append(_texts([(line(), line((RULE, MUTED)))]))
    why = "" if found.exclude else "No node is suspected, so there is nothing to leave out."
    return ResultAnswer(f"Slow nodes of {', '.join(clusters)}", tuple(blocks), found.exclude, why)


def _node_table(findings: Sequence[NodeFinding]) -> Rows:
    """A row for each node of which something is known, and one for all others."""
    known = [one for one in findings if one.difference_pct is not None]
    others = [node for one in findings if one.difference_pct is None for node in one.nodes]
    longest = max((len(compress(one.nodes)) for one in known), default=0)
    widths = (min(max(longest, 6), 30), 5, 8, 11, 8, 8)
    heads = ("nodes", "with", "without", "difference", "noise", "chance")

    def rows(width: int) -> list[Content]:
        drawn = [line((f"  {_cells(heads, widths)}", MUTED))] if known else []
        for one in known:
            texts = (
                compress(one.nodes),
                f"{one.runs_with}",
                f"{one.runs_without}",
                f"{two_digits(one.difference_pct or 0.0, '+')} %",
                "–" if one.noise_pct is None else f"± {two_digits(one.noise_pct)} %",
                "–" if one.chance is None else f"{two_digits(100 * one.chance)} %",
            )
            label = node_label(one.state)
            style = f"bold {STYLES[label.tone]}" if label.tone == "bad" else STYLES[label.tone]
            cells = line((f"{label.glyph} {_cells(texts, widths)}  ", style))
            drawn += hanging(cells, line((one.words, style)), width)
        if others:
            words = f"{plural(len(others), 'node')} without runs to be held against: {compress(others)}"
            drawn += hanging(line("  "), line((words, MUTED)), width)
        return drawn

    return rows


# As one file.


def exported(file: Path, size: int, manifest: Manifest) -> ResultAnswer:
    """What was written, and what is not in it. `size` in bytes."""
    from llmb_tui.evidence.anonymous import WHAT  # loads zstd
    from llmb_tui.evidence.verify import CAVEAT

    runs, files = plural(len(manifest.runs), "run"), plural(len(manifest.members), "file")
    said = [(line(("✓ ", "$text-success")), line((str(file), "bold"), f": {runs}, {files}, {byte_size(size)}"))]
    said += [
        (line(("· ", MUTED)), line(f"run {one.run}: missing is the {one.what}. {one.why}")) for one in manifest.missing
    ]
    if manifest.anonymous:
        said.append((line(("· ", MUTED)), line(WHAT)))
    said.append((line(("· ", MUTED)), line((f"left out: {', '.join(manifest.left_out)}", MUTED))))
    said.append((line(), line((f"`llmb-tui verify {file.name}` checks it, on any machine. {CAVEAT}", MUTED))))
    return ResultAnswer("Exported", (_texts(said),), str(file))


def _cells(texts: Sequence[str], widths: Sequence[int]) -> str:
    """The first to the left, figures to the right."""
    figures = (text.rjust(width) for text, width in zip(texts[1:], widths[1:], strict=True))
    return texts[0].ljust(widths[0]) + "".join(figures)


def _texts(paragraphs: Iterable[Paragraph]) -> Rows:
    kept = list(paragraphs)
    return lambda width: folded(kept, width)
