"""`Metrics`: what the run reaches so far, beside what was expected."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from textual.content import Content

from llmb_tui.plan.plan import Plan
from llmb_tui.ui.text import MUTED
from llmb_tui.ui.units import gigabytes, percent, seconds, tokens_per_s
from llmb_tui.ui.widgets.run_part import ENDED, RunPart
from llmb_tui.watch.state import Progress, RunState

Trend = Literal["↓", "↑", "→", ""]
_STRIP_HEIGHT = 2


def metric_rows(progress: Progress, plan: Plan, trend: Trend = "") -> list[tuple[str, str, str]]:
    """(name, value so far, expected value) for each metric; a value that is not known is `–`."""
    expected = plan.estimate
    last = progress.last
    step_time = progress.median_s if progress.median_s is not None else (last.step_time_s if last else None)
    loss = last.loss if last else None
    peak = last.memory_peak_bytes if last else None
    return [
        ("step time", _figure(step_time, seconds), seconds(expected.step_time_s) if expected else ""),
        (
            "tokens/s",
            _figure(progress.tokens_per_s, tokens_per_s),
            tokens_per_s(expected.tokens_per_s) if expected else "",
        ),
        ("MFU", _figure(progress.mfu_pct, percent), percent(expected.mfu_pct) if expected else ""),
        ("loss", f"{_figure(loss, '{:.2f}'.format)} {trend}".strip(), ""),
        (
            "memory",
            _figure(peak and peak / 1e9, gigabytes),
            f"of {plan.memory.capacity_gb:.0f} GB" if plan.memory else "",
        ),
    ]


def metrics_card(rows: list[tuple[str, str, str]], width: int) -> Content:
    """One line for each metric: names left, values right-aligned, expected values if they all have room."""
    names = max(len(name) for name, _, _ in rows) + 2
    values = max(9, *(len(value) for _, value, _ in rows))
    plain = [Content.assemble((name.ljust(names), MUTED), (value.rjust(values), "bold")) for name, value, _ in rows]
    words = [expected if expected.startswith("of ") else f"expected {expected}" for _, _, expected in rows]
    whole = [
        row + Content.styled(f"  {word}", MUTED) if expected else row
        for row, word, (_, _, expected) in zip(plain, words, rows, strict=True)
    ]
    return Content("\n").join(whole if max(row.cell_length for row in whole) <= width else plain)


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
    """The direction from one loss to a later one; nothing where one is missing or not finite."""
    if before is None or now is None or not (math.isfinite(before) and math.isfinite(now)):
        return ""
    if abs(now - before) < 0.005:  # the last shown digit
        return "→"
    return "↓" if now < before else "↑"


def _figure(value: float | None, write: Callable[[float], str]) -> str:
    return "–" if value is None else write(value)


class Metrics(RunPart):
    """The metrics of the run that the screen shows; one line where the widget is that low."""

    DEFAULT_CSS = """
    Metrics {
        border: round $border-blurred;
        border-title-color: $text;
        padding: 0 1;
        height: 1fr;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._trend: Trend = ""

    def watch_run_state(self, before: RunState | None, now: RunState | None) -> None:
        """Keep the direction of the loss from one step to the next."""
        self.border_title = "measured" if now and now.stage in ENDED else "so far"
        was, last = (state.progress.last if state else None for state in (before, now))
        if was and last and was.index != last.index:
            self._trend = loss_trend(was.loss, last.loss)

    def render(self) -> Content:
        """Empty until the run is loaded."""
        if self.training_run is None:
            return Content("")
        progress = self.run_state.progress if self.run_state else Progress()
        rows = metric_rows(progress, self.training_run.plan, self._trend)
        draw = metrics_strip if self.content_size.height < _STRIP_HEIGHT else metrics_card
        return draw(rows, self.content_size.width)
