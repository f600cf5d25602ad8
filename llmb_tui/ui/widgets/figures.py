"""The figures of a plan, in full or in three lines, and the breakdown of its step time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

from textual.content import Content
from textual.reactive import var

from llmb_tui.language.quantities import (
    days,
    gigabytes,
    gpu_hours,
    percent,
    plain_number,
    share,
    step_time,
    step_time_range,
    tflops,
    tokens_per_s,
)
from llmb_tui.language.states import Severity, memory_label, severity_label
from llmb_tui.language.text import plural
from llmb_tui.ui import units
from llmb_tui.ui.text import MUTED, STYLES, Part, hanging_paragraph, line, origin_style
from llmb_tui.ui.widgets.texts import WrappedLines

if TYPE_CHECKING:
    from llmb_tui.plan.calibration import ClusterEstimate
    from llmb_tui.plan.plan import Breakdown, Estimate, Plan, Problem

_LABEL = 12
_RUNS_NAMED = 2
# If a README value of the MFU differs from ours by more percentage points, it was computed with another formula.
_MFU_TOLERANCE = 1.0
_TABLE = ("tp", "pp", "cp", "ep", "dp", "vp", "mbs", "gbs", "ga")
_OVERRIDDEN, _DIFFERS = "†", "*"
_LEGEND = {_OVERRIDDEN: "† manual override", _DIFFERS: "* differs from NVIDIA's README"}
_NONE = ("–", MUTED)
_BLOCKS: dict[str, tuple[str, str]] = {
    "compute": ("█", "$text-primary"),
    "communication": ("▓", "$text-warning"),
    "bubble": ("▒", "$text-error"),
    "optimizer": ("░", "$text-success"),
}
"""Character and style of each part; the characters differ, so that the bar needs no colour."""


class PlanFigures(WrappedLines):
    """Table, step time, throughput and cost of a plan; in three lines if the style sheet sets a height."""

    plan: var[Plan | None] = var["Plan | None"](None)
    measured: var[ClusterEstimate | None] = var["ClusterEstimate | None"](None)
    watch_plan = watch_measured = WrappedLines.changed

    def rows(self, width: int) -> list[Content]:
        if not self.styles.auto_dimensions:
            return strip(self.plan, self.measured) if self.plan else [line(("no plan yet", MUTED))]
        return figures(self.plan, self.measured, width) if self.plan else skeleton(width)


def figures(plan: Plan, measured: ClusterEstimate | None, width: int) -> list[Content]:
    """All figures, in rows of at most `width` cells."""
    rows = [_size(plan, width), *_table(plan, width), Content("")]
    estimate = plan.estimate
    if estimate is None:
        rows.append(_row("step time", ("no estimate (reason below)", MUTED)))
        rows += [_row(label, _NONE) for label in ("band", "based on")]
    else:
        rows += _expected(estimate, width)
    rows += _measured_here(measured, width)
    rows += _throughput(plan, estimate, width) if estimate else [_row(label, _NONE) for label in ("tokens/s", "MFU")]
    return [*rows, *_resources(plan, width)]


def strip(plan: Plan, measured: ClusterEstimate | None) -> list[Content]:
    """The most important figures in three lines."""
    p = plan.parallelism
    table = " ".join(f"{name.upper()} {units.number_or_dash(getattr(p, name))}{_mark(plan, name)}" for name in _TABLE)
    first = line(table, (f" · {plan.nodes} × {plan.gpus_per_node} · seq {p.seq_len}", MUTED))
    memory = (
        f"memory {_memory_used(plan)}   {memory_label(plan.memory.verdict).word}" if plan.memory else "memory unknown"
    )
    third = line(memory, " · ", _cost_text(plan), *_counts(plan.problems))
    if plan.estimate is None:
        return [first, line(("no step time estimate", MUTED)), third]
    from llmb_tui.language.states import method_word

    e = plan.estimate
    parts: list[Part] = [
        (e.step_time_text, "bold"),
        f"  {step_time_range(e.low_s, e.high_s)}  ",
        (method_word(e.method), origin_style(e.method)),
    ]
    if measured is not None:
        source = measured.label if measured.same else "adjusted"
        parts += ["  ", (step_time(measured.step_time_s), "bold"), (f" {source}", "$measured")]
    else:
        parts.append(f"  {tokens_per_s(e.tokens_per_s)} tok/s")
    parts.append(f"  MFU {percent(e.mfu_pct)}")
    if e.days_per_1t_tokens is not None:
        parts.append(f"  {days(e.days_per_1t_tokens).removesuffix('ays')}/1T")
    return [first, line(*parts), third]


def skeleton(width: int) -> list[Content]:
    """The labels with dashes, as long as there is no plan."""
    heads = [line(("no plan yet", MUTED)), *_heads(width), Content("")]
    labels = ("step time", "band", "based on", "tokens/s", "MFU", "1T tokens", "memory", "this run")
    return heads + [_row(label, _NONE) for label in labels]


def _counts(problems: tuple[Problem, ...]) -> list[Part]:
    """Number of problems by severity, and the key that shows them."""
    parts: list[Part] = []
    for label in map(severity_label, get_args(Severity)):
        count = sum(severity_label(problem.severity) == label for problem in problems)
        if count:
            parts += ["   ", (f"{label.glyph} {plural(count, label.word)}", STYLES[label.tone])]
    return [*parts, (" (p)", MUTED)] if parts else []


def _size(plan: Plan, width: int) -> Content:
    p = plan.parallelism
    scaling = "reduced" if plan.scaling == "proxy" else plan.scaling
    nodes = f"{plural(plan.nodes, 'node')} × {plan.gpus_per_node} {plan.selection.gpu.upper()}"
    rest = [f"seq {p.seq_len}{_mark(plan, 'seq_len')}", f"{p.layers}{_mark(plan, 'layers')} layers", scaling]
    gap = "   " if len("   ".join([nodes, *rest])) <= width else "  "
    return line((nodes, "bold"), gap, gap.join(rest))


def _table(plan: Plan, width: int) -> list[Content]:
    """The parallelism table in two lines, and a legend. Overridden values and those unlike the README's are marked."""
    marks = {name: _mark(plan, name) for name in _TABLE}
    cells: list[Part] = [
        (f"{units.number_or_dash(getattr(plan.parallelism, name))}{marks[name]}".rjust(_cell(width)), "bold")
        for name in _TABLE
    ]
    marks |= {name: _mark(plan, name) for name in ("seq_len", "layers")}
    legend = "   ".join(text for mark, text in _LEGEND.items() if mark in marks.values())
    return [_heads(width)[0], line(*cells), *([line((legend, MUTED))] if legend else [])]


def _heads(width: int) -> list[Content]:
    heads, cell = "".join(f"{name.upper():>{_cell(width)}}" for name in _TABLE), _cell(width)
    return [line((heads, MUTED)), line(("".join(f"{'–':>{cell}}" for _ in _TABLE), MUTED))]


def _cell(width: int) -> int:
    return min(max(width // len(_TABLE), 4), 7)


def _mark(plan: Plan, name: str) -> str:
    """Mark of a value that the user overrode, or that differs from the README's; empty for others."""
    overridden = plan.selection.overrides.set_fields()
    if name in overridden:
        return _OVERRIDDEN
    # The README describes the recipe's layout only: a custom layout is not compared with it.
    readme_value = getattr(plan.printed, name) if plan.printed and not overridden else None
    return _DIFFERS if readme_value is not None and readme_value != getattr(plan.parallelism, name) else ""


def _expected(e: Estimate, width: int) -> list[Content]:
    """Step time, method, band and anchor; long texts wrap and are never cut."""
    from llmb_tui.language.states import method_phrase

    drawn = units.band_position(e.step_time_s, e.low_s, e.high_s, 15)
    method = method_phrase(e.method)
    basis = f": {e.basis}" if e.basis and e.basis not in method else ""
    return [
        *hanging_paragraph(
            _row("step time", (e.step_time_text, "bold"), "   "),
            line((method, origin_style(e.method)), (basis, MUTED)),
            width,
        ),
        _row("band", f"{drawn}  {step_time_range(e.low_s, e.high_s)}"),
        *hanging_paragraph(_row("based on"), line((e.anchor, MUTED)), width),
    ]


def _measured_here(measured: ClusterEstimate | None, width: int) -> list[Content]:
    """Step time by runs on the chosen cluster, in rows separate from the published one; empty without such runs."""
    if measured is None:
        return []
    named = ", ".join(measured.runs[:_RUNS_NAMED])
    more = len(measured.runs) - _RUNS_NAMED
    runs = f"{measured.basis} ({named}{f' and {more} more' if more > 0 else ''})"
    value = (step_time(measured.step_time_s), "bold")
    return [
        _row("cluster", value, f"   {step_time_range(measured.low_s, measured.high_s)}"),
        *hanging_paragraph(line("  "), line((measured.label, "$measured"), (f": {runs}", MUTED)), width),
    ]


def _throughput(plan: Plan, e: Estimate, width: int) -> list[Content]:
    rates = [
        [tokens_per_s(e.tokens_per_s)],
        [f"{tflops(e.tflops_per_gpu)} of {plain_number(e.peak_tflops)} TFLOPS/GPU"],
    ]
    mfu: list[list[Part]] = [[percent(e.mfu_pct)]]
    if plan.published is not None:
        differs = abs(plan.published.mfu_pct - e.mfu_pct) > _MFU_TOLERANCE
        readme_value = f"NVIDIA's README: {plain_number(plan.published.mfu_pct)} %"
        mfu.append([(readme_value, "$text-warning" if differs else MUTED)])
    return [*_flow("tokens/s", rates, width), *_flow("MFU", mfu, width)]


def _resources(plan: Plan, width: int) -> list[Content]:
    """Time for 1T tokens, checkpoint size, memory and cost."""
    training: list[Part] = [days(plan.estimate.days_per_1t_tokens) if plan.estimate else _NONE]
    size: Part = ("size not published", MUTED)
    if plan.checkpoint_gb is not None:
        size = f"{plain_number(plan.checkpoint_gb)} GB"
    memory: list[Part] = [("unknown", MUTED)]
    if plan.memory is not None:
        label = memory_label(plan.memory.verdict)
        memory = [f"{_memory_used(plan)}   ", (label.word, STYLES[label.tone])]
    return [
        *_flow("1T tokens", [training, [("checkpoint ", MUTED), size]], width),
        *hanging_paragraph(_row("memory"), line(*memory), width),
        _row("this run", _cost_text(plan)),
    ]


def _memory_used(plan: Plan) -> str:
    return f"{gigabytes(plan.memory.peak_gb)} of {gigabytes(plan.memory.capacity_gb)}" if plan.memory else ""


def _cost_text(plan: Plan) -> str:
    if plan.gpu_hours is None:
        return f"{plan.steps} steps, cost unknown"
    return f"{gpu_hours(plan.gpu_hours)} + start-up"


def _flow(label: str, texts: Sequence[Sequence[Part]], width: int) -> list[Content]:
    """A label, and texts that are in one row if the width allows it."""
    first, *others = (line(*text) for text in texts)
    return _joined([_row(label, first), *others], "   ", _row(""), width)


def _joined(parts: Sequence[Content], gap: str, indent: Content, width: int) -> list[Content]:
    """Parts with gaps between them; a part that does not fit into the width begins a new row after the indent."""
    rows = [parts[0]]
    for part in parts[1:]:
        longer = rows[-1] + gap + part
        if longer.cell_length <= width:
            rows[-1] = longer
        else:
            rows.append(indent + part)
    return rows


def _row(label: str, *parts: Part) -> Content:
    return line((f"{label:<{_LABEL}}", MUTED), *parts)


class TimeParts(WrappedLines):
    """The step time breakdown: title, bar and legend."""

    parts: var[Breakdown | None] = var["Breakdown | None"](None)

    watch_parts = WrappedLines.changed

    def rows(self, width: int) -> list[Content]:
        return time_parts(self.parts, width) if self.parts is not None else []


def time_parts(parts: Breakdown, width: int) -> list[Content]:
    """Title, bar and legend. Each part that takes time has at least one cell of the bar."""
    seconds = {name: getattr(parts, f"{name}_s") for name in _BLOCKS}
    total = sum(seconds.values())
    cells = _cells([value / total for value in seconds.values()], width)
    bar = line(*((block * count, style) for (block, style), count in zip(_BLOCKS.values(), cells, strict=True)))
    rows = [line(("step time breakdown", "bold"), (" (modelled)", MUTED)), bar]
    legend = [
        line((f"{block} ", style), f"{name} {share(seconds[name] / total)}") for name, (block, style) in _BLOCKS.items()
    ]
    return [*rows, *_joined(legend, "  ", Content(""), width)]


def _cells(shares: list[float], width: int) -> list[int]:
    """Shares as whole cells that add up to `width`: the largest share absorbs the rounding."""
    cells = [max(round(part * width), 1) if part > 0 else 0 for part in shares]
    cells[shares.index(max(shares))] += width - sum(cells)
    return cells
