"""`Preview`: what will run and how fast it should be, for the plan it is given. It recomputes nothing."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.reactive import var

from llmb_tui.plan.plan import Estimate, Plan, Problem
from llmb_tui.ui import units
from llmb_tui.ui.text import MUTED, hanging, line
from llmb_tui.ui.widgets.folded import Folded
from llmb_tui.ui.widgets.step_chart import METHOD_WORDS

_LABEL = 12
# A printed MFU farther than this from ours, in points, was made with another formula.
_MFU_APART = 1.0
_TABLE = ("tp", "pp", "cp", "ep", "dp", "vp", "mbs", "gbs", "ga")


class Preview(Vertical):
    """The figures of a plan, and under them what is to be said about it.

    Where the style sheet gives the figures a fixed height, they are the strip of three lines.
    """

    made: var[Plan | None] = var[Plan | None](None)

    def compose(self) -> ComposeResult:
        """Figures first; problems scroll."""
        yield Figures()
        with VerticalScroll(can_focus=False):
            yield Remarks()

    def on_mount(self) -> None:
        """Name the box."""
        self.border_title = "What will run"

    def watch_made(self, made: Plan | None) -> None:
        """Show the plan in the frame in which it was made."""
        self.query_one(Figures).made = made
        self.query_one(Remarks).problems = made.problems if made else ()


class Figures(Folded):
    """Table, step time, throughput and cost of one plan; three lines where there is no more room."""

    made: var[Plan | None] = var[Plan | None](None)

    def watch_made(self) -> None:
        """Show the plan."""
        self.changed()

    def rows(self, width: int) -> list[Content]:
        """The plan as text, or a skeleton until there is one."""
        if not self.styles.auto_dimensions:
            return strip(self.made) if self.made else [line(("no plan yet", MUTED))]
        return figures(self.made, width) if self.made else skeleton(width)


class Remarks(Folded):
    """What is to be said about a plan."""

    problems: var[tuple[Problem, ...]] = var[tuple[Problem, ...]](())

    def watch_problems(self) -> None:
        """Show them."""
        self.changed()

    def rows(self, width: int) -> list[Content]:
        """Every problem, none cut."""
        return remarks(self.problems, width)


def figures(plan: Plan, width: int) -> list[Content]:
    """The full set of figures, `width` cells wide."""
    rows = [_size(plan), Content(""), *_table(plan, width), Content("")]
    if plan.estimate is None:
        rows += [_row("step time", ("no honest number can be given: see below", MUTED))]
        rows += [_row(label, ("–", MUTED)) for label in ("band", "from", "tokens/s", "MFU", "per GPU", "1T tokens")]
    else:
        rows += _expected(plan, plan.estimate, width)
    return [*rows, _memory(plan), _checkpoint(plan), _cost(plan)]


def strip(plan: Plan) -> list[Content]:
    """The same in three lines."""
    p = plan.parallelism
    table = " ".join(f"{name.upper()} {units.optional(getattr(p, name))}" for name in _TABLE)
    first = line(table, (f" · {plan.nodes} × {plan.gpus_per_node} · seq {p.seq_len}", MUTED))
    third = line(_memory_text(plan), " · ", _cost_text(plan), *_counts(plan.problems))
    if plan.estimate is None:
        return [first, line(("no honest step time can be given", MUTED)), third]
    e = plan.estimate
    second = line(
        (units.seconds(e.step_time_s), "bold"),
        f"  {units.band(e.low_s, e.high_s)}  ",
        (METHOD_WORDS[e.method], "$text-accent"),
        f"  {units.tokens_per_s(e.tokens_per_s)} tok/s  MFU {units.percent(e.mfu_pct)}",
        "" if e.days_per_1t_tokens is None else f"  {units.days(e.days_per_1t_tokens).removesuffix('ays')}/1T",
    )
    return [first, second, third]


def _counts(problems: tuple[Problem, ...]) -> list[str | tuple[str, str]]:
    """How many problems of each severity, and the key that shows them."""
    parts: list[str | tuple[str, str]] = []
    for severity, (glyph, style) in units.SEVERITIES.items():
        count = sum(problem.severity == severity for problem in problems)
        if count:
            parts += ["   ", (f"{glyph} {count} {severity}{'' if count == 1 else 's'}", style)]
    return [*parts, (" (p)", MUTED)] if parts else []


def skeleton(width: int) -> list[Content]:
    """The labels without figures, while there is no plan."""
    rows = [line(("no plan yet", MUTED)), Content(""), *_table(None, width), Content("")]
    labels = (
        "step time",
        "band",
        "from",
        "tokens/s",
        "MFU",
        "per GPU",
        "1T tokens",
        "memory",
        "checkpoint",
        "this run",
    )
    return rows + [_row(label, ("–", MUTED)) for label in labels]


def remarks(problems: tuple[Problem, ...], width: int) -> list[Content]:
    """Problems, worst first, each with glyph, word, reason and mend."""
    rows = []
    for severity, (glyph, style) in units.SEVERITIES.items():
        for problem in problems:
            if problem.severity == severity:
                fix = f" {problem.fix}" if problem.fix else ""
                rows += hanging(
                    line((f"{glyph} ", style)), line((f"{severity}: ", style), problem.reason, (fix, MUTED)), width
                )
    return rows


def _size(plan: Plan) -> Content:
    gpus = f"{plan.gpus_per_node} {plan.selection.gpu.upper()}"
    p = plan.parallelism
    return line(
        (f"{units.nodes(plan.nodes)} × {gpus}", "bold"), f"   seq {p.seq_len}   {p.layers} layers   {plan.scaling}"
    )


def _table(plan: Plan | None, width: int) -> list[Content]:
    """Two lines, a column for each name; a cell that is not the printed one is marked."""
    cell = min(max(width // len(_TABLE), 4), 7)
    heads = "".join(f"{name.upper():>{cell}}" for name in _TABLE)
    if plan is None:
        return [line((heads, MUTED)), line(("".join(f"{'–':>{cell}}" for _ in _TABLE), MUTED))]
    cells: list[str | tuple[str, str]] = []
    for name in _TABLE:
        value = getattr(plan.parallelism, name)
        printed = getattr(plan.printed, name) if plan.printed else None
        other = printed is not None and printed != value
        cells.append((f"{units.optional(value)}{'*' if other else ''}".rjust(cell), "bold"))
    legend = [line(("* the README prints another value", MUTED))] if any("*" in cell[0] for cell in cells) else []
    return [line((heads, MUTED)), line(*cells), *legend]


def _expected(plan: Plan, estimate: Estimate, width: int) -> list[Content]:
    e = estimate
    drawn = units.track(e.step_time_s, e.low_s, e.high_s, 15)
    mfu = ("", "")
    if plan.published is not None:
        apart = abs(plan.published.mfu_pct - e.mfu_pct) > _MFU_APART
        mfu = (f"   printed {units.percent(plan.published.mfu_pct, 2)}", "$text-warning" if apart else MUTED)
    return [
        _row("step time", (units.seconds(e.step_time_s), "bold"), "   ", (METHOD_WORDS[e.method], "$text-accent")),
        _row("band", f"{drawn}  {units.band(e.low_s, e.high_s)}"),
        *_anchor(e.anchor, width),
        _row("tokens/s", units.tokens_per_s(e.tokens_per_s)),
        _row("MFU", units.percent(e.mfu_pct), mfu),
        _row("per GPU", f"{e.tflops_per_gpu:,.0f} of {e.peak_tflops:,.0f} TFLOPS"),
        _row("1T tokens", units.days(e.days_per_1t_tokens)),
    ]


def _anchor(anchor: str, width: int) -> list[Content]:
    """Where the number comes from, folded: it is never cut."""
    return hanging(_row("from"), line((anchor, MUTED)), width)


def _memory(plan: Plan) -> Content:
    if plan.memory is None:
        return _row("memory", ("not computed yet", MUTED))
    style = "" if plan.memory.verdict == "fits" else "$text-warning"
    return _row("memory", _memory_text(plan).removeprefix("memory "), ("", style))


def _memory_text(plan: Plan) -> str:
    if plan.memory is None:
        return "memory not computed yet"
    m = plan.memory
    return f"memory {m.peak_gb:.1f} of {m.capacity_gb:g} GB   {m.verdict}"


def _checkpoint(plan: Plan) -> Content:
    if plan.checkpoint_gb is None:
        return _row("checkpoint", ("size not published", MUTED))
    return _row("checkpoint", units.gigabytes(plan.checkpoint_gb))


def _cost(plan: Plan) -> Content:
    return _row("this run", _cost_text(plan))


def _cost_text(plan: Plan) -> str:
    if plan.gpu_hours is None:
        return f"{plan.steps} steps, cost not known"
    return f"{units.gpu_hours(plan.gpu_hours)} + start-up"


def _row(label: str, *parts: str | tuple[str, str]) -> Content:
    return line((f"{label:<{_LABEL}}", MUTED), *parts)
