"""`RunPart`: a widget that shows a part of the screen's run; `Metrics` and `VerdictCard`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from textual.content import Content
from textual.reactive import var
from textual.widget import Widget

from llmb_tui.language.quantities import byte_size, four_digits, gigabytes, percent, step_time, tokens_per_s
from llmb_tui.language.states import method_phrase, verdict_label
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.launch.run import Run
from llmb_tui.plan.plan import Plan
from llmb_tui.ui.text import MUTED, badge, line, lines
from llmb_tui.watch.state import ENDED, Progress, RunState, Verdict

Trend = Literal["↓", "↑", "→", ""]
_STRIP_HEIGHT = 2


class RunPart(Widget):
    """A widget bound to the run and the state of the run screen; it is repainted only if its content changes.

    A run has up to ten states a second, and most of them change the content of one part or of none.
    """

    training_run: var[Run | None] = var[Run | None](None)
    """None until the run is loaded."""
    run_state: var[RunState | None] = var[RunState | None](None)
    """None until the monitor has published a state."""
    _shown: tuple[object, Content] | None = None

    def render(self) -> Content:
        run, state = self.training_run, self.run_state
        if run is None:
            return Content("")
        state = state or RunState(run.id)
        key = (run, self.shown_values(state), self.content_size)
        if self._shown is None or self._shown[0] != key:
            self._shown = key, self.draw(run, state)
        return self._shown[1]

    def shown_values(self, state: RunState) -> object:
        """The values of a state that the part shows; it is drawn again only if they change."""
        return state

    def draw(self, run: Run, state: RunState) -> Content:
        """Content of the part for a loaded run."""
        raise NotImplementedError

    def watch_training_run(self, run: Run | None) -> None:  # noqa: ARG002 - for subclasses
        self._changed()

    def watch_run_state(self, before: RunState | None, now: RunState | None) -> None:  # noqa: ARG002 - as above
        self._changed()

    def _changed(self) -> None:
        """Repaint after a change of run or state, unless the content is the same."""
        before = self._shown
        if before is None or not self.render().is_same(before[1]):
            self.refresh()


class RunCard(RunPart):
    """A part with a frame and a title."""

    DEFAULT_CSS = """
    RunCard {
        border: blank;
        border-title-color: $text;
        border-title-style: bold;
        border-subtitle-color: $text-muted;
        padding: 0 1;
        height: 1fr;
    }
    """

    def update_title(self, title: str) -> None:
        if title != self.border_title:  # an assignment repaints the whole card
            self.border_title = title


def metric_rows(progress: Progress, plan: Plan, trend: Trend = "") -> list[tuple[str, str, str]]:
    """(name, value so far, expected value) for each metric; an unknown value is `–`."""
    last, estimate = progress.last, plan.estimate
    # Neither is the run's step time by the recipe's rule, which is in the verdict.
    name, step_time_s = "median step", progress.median_s
    if step_time_s is None:
        name, step_time_s = "last step", last.step_time_s if last else None
    loss = last.loss if last else None
    peak = last.memory_peak_bytes if last else None
    step = tokens = mfu = ""
    if estimate is not None:
        step, tokens = estimate.step_time_text, tokens_per_s(estimate.tokens_per_s)
        mfu = percent(estimate.mfu_pct)
    room = f"of {gigabytes(plan.memory.capacity_gb)}" if plan.memory else ""
    return [
        (name, _figure(step_time_s, step_time), step),
        ("tokens/s", _figure(progress.tokens_per_s, tokens_per_s), tokens),
        ("MFU", _figure(progress.mfu_pct, percent), mfu),
        ("loss", f"{_figure(loss, four_digits)} {trend}".strip(), ""),
        ("memory", _figure(peak, byte_size), room),
    ]


def metrics_card(rows: list[tuple[str, str, str]], width: int) -> Content:
    """One line for each metric, with the expected values if all of them fit."""
    names = max(len(name) for name, _, _ in rows) + 2
    values = max(9, *(len(value) for _, value, _ in rows))
    plain = [Content.assemble((name.ljust(names), MUTED), (value.rjust(values), "bold")) for name, value, _ in rows]
    notes = [expected if expected.startswith("of ") else f"expected {expected}" for _, _, expected in rows]
    full = [
        row + Content.styled(f"  {note}", MUTED) if expected else row
        for row, note, (_, _, expected) in zip(plain, notes, rows, strict=True)
    ]
    return Content("\n").join(full if max(row.cell_length for row in full) <= width else plain)


def metrics_strip(rows: list[tuple[str, str, str]], width: int) -> Content:
    """The metrics in one line, as many as fit."""
    strip = Content("")
    for name, value, _ in rows:
        part = Content.assemble((f"{name} ", MUTED), (value, "bold"))
        longer = Content("   ").join([strip, part]) if strip else part
        if longer.cell_length > width:
            break
        strip = longer
    return strip


def loss_trend(before: float | None, now: float | None) -> Trend:
    """Direction from one loss to a later one; empty if one is missing or not finite."""
    if before is None or now is None or not (math.isfinite(before) and math.isfinite(now)):
        return ""
    if abs(now - before) < 0.005:  # half of the last shown digit
        return "→"
    return "↓" if now < before else "↑"


def _figure(value: float | None, write: Callable[[float], str]) -> str:
    return "–" if value is None else write(value)


class Metrics(RunCard):
    """The metrics of the screen's run; in one line if the widget is too low for a card."""

    def __init__(self) -> None:
        super().__init__()
        self._trend: Trend = ""
        self._loss: float | None = None
        """Loss at the start of the trend: from step to step a loss may change by less than the shown digits."""

    def watch_run_state(self, before: RunState | None, now: RunState | None) -> None:
        if now and (last := now.progress.last):
            trend = loss_trend(self._loss, last.loss)
            if trend != "→" or not self._trend:
                self._trend, self._loss = trend, last.loss
        self.update_title("measured" if now and now.stage in ENDED else "so far")
        super().watch_run_state(before, now)

    def shown_values(self, state: RunState) -> object:
        return state.progress, self._trend

    def draw(self, run: Run, state: RunState) -> Content:
        rows = metric_rows(state.progress, run.plan, self._trend)
        draw = metrics_strip if self.content_size.height < _STRIP_HEIGHT else metrics_card
        return draw(rows, self.content_size.width)


def verdict_card(state: RunState, reference: str, procedure: str) -> Content:
    """The verdict with ratio, rule and reasons, or why there is none. `reference`: name of the speed that is 100 %."""
    if (verdict := state.verdict) is None:
        return line((state.no_verdict or "No verdict yet.", MUTED))
    doubtful = verdict.result != "PASS"
    unknown = ", ".join(check.id for check in state.validity if check.outcome == "unknown")
    return lines(
        Content.assemble(_badge(state, verdict), f"  {ratio_text(verdict, reference)}"),
        line(f"{_measured(verdict)} against {verdict.against}"),
        line((f"judged by: {verdict.rule} · {procedure}", MUTED)),
        *(line((reason, "$text-warning" if doubtful else MUTED)) for reason in verdict.reasons),
        *([line((f"Not checked: {unknown}. The report lists what each check needs.", MUTED))] if unknown else []),
    )


def verdict_strip(state: RunState, reference: str, procedure: str, width: int) -> Content:
    """The verdict in one line."""
    verdict = state.verdict
    if verdict is None:
        strip = line((state.no_verdict or "No verdict yet.", MUTED))
    else:
        rule = f"   {verdict.rule} · {procedure}"
        strip = Content.assemble(("" if state.stage in ENDED else "so far ", MUTED), _badge(state, verdict), "  ")
        strip += line(f"{ratio_text(verdict, reference)}   {_measured(verdict)}", (rule, MUTED))
    return strip.truncate(width, ellipsis=True)


def _badge(state: RunState, verdict: Verdict) -> Content:
    return badge(verdict_label(verdict.result), final=state.stage in ENDED)


def _measured(verdict: Verdict) -> str:
    return f"{'' if verdict.by_rule else 'median '}{step_time(verdict.measured_s)}"


def ratio_text(verdict: Verdict, reference: str) -> str:
    """Speed as a share of the expected one, such as `98.5 % of published`."""
    return f"{percent(verdict.ratio * 100)} of {reference}"


class VerdictCard(RunCard):
    """The verdict of the screen's run; in one line if the widget is too low for a card."""

    def watch_run_state(self, before: RunState | None, now: RunState | None) -> None:
        self.update_title("verdict" if now and now.stage in ENDED else "verdict so far")
        super().watch_run_state(before, now)
        self._make_room()

    def on_resize(self) -> None:
        self._make_room()

    def _make_room(self) -> None:
        """Give the row of cards the height of the verdict, at most half of the screen."""
        width, height = self.content_size
        if width and isinstance(self.parent, Widget):
            is_card = height >= _STRIP_HEIGHT
            rows = len(self.render().wrap(width)) + 1 if is_card else 0  # with the title
            self.parent.styles.min_height = min(rows, self.screen.size.height // 2)

    def shown_values(self, state: RunState) -> object:
        return state.verdict, state.no_verdict, state.stage, state.validity

    def draw(self, run: Run, state: RunState) -> Content:
        reference = method_phrase(run.plan.estimate.method) if run.plan.estimate else "expected"
        if self.content_size.height < _STRIP_HEIGHT:
            return verdict_strip(state, reference, PROCEDURES[run.procedure].title, self.content_size.width)
        return verdict_card(state, reference, PROCEDURES[run.procedure].title)
