"""`Rail`: the seven steps with their answers, or one line of it where there is no room."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import var

from llmb_tui.ui.text import MUTED, hanging, line
from llmb_tui.ui.widgets.folded import Folded
from llmb_tui.wizard.steps import TITLES, Mark, StepId

_GLYPHS: dict[Mark, tuple[str, str]] = {
    "done": ("✓", "$text-success"),
    "open": (" ", ""),
    "flagged": ("✗", "$text-error"),
}


@dataclass(frozen=True, slots=True)
class RailStep:
    """One step as the rail shows it."""

    step: StepId
    mark: Mark
    summary: str


class Rail(Folded):
    """Where the person is, what is answered, what is flagged."""

    current: var[StepId] = var(StepId.WORKLOAD)
    steps: var[tuple[RailStep, ...]] = var[tuple[RailStep, ...]](())

    class Chosen(Message):
        """A step was clicked."""

        def __init__(self, step: StepId) -> None:
            super().__init__()
            self.step = step

    def watch_current(self, current: StepId) -> None:
        """Count the steps in the border."""
        self.border_title = f"{int(current)} of {len(TITLES)}"
        self.changed()

    def watch_steps(self) -> None:
        """Show them."""
        self.changed()

    def rows(self, width: int) -> list[Content]:
        """All steps under each other, or the current one and the answers in one line."""
        return [self._one_line()] if self.size.height == 1 else [row for row, _ in self._rows(width)]

    def on_click(self, event: events.Click) -> None:
        """Go to the step under the mouse."""
        rows = self._rows(self.size.width)
        if self.size.height > 1 and 0 <= event.y - self.gutter.top < len(rows):
            self.post_message(self.Chosen(rows[event.y - self.gutter.top][1]))

    def _rows(self, width: int) -> list[tuple[Content, StepId]]:
        rows = []
        roomy = self.size.height >= 3 * len(TITLES)
        for one in self.steps:
            glyph, style = _GLYPHS[one.mark]
            here = one.step is self.current
            if here:
                glyph, style = ("▸", "bold") if one.mark != "flagged" else (glyph, style)
            rows.append((line((glyph, style), " ", (TITLES[one.step], "bold" if here else "")), one.step))
            if one.summary:
                rows += [(row, one.step) for row in hanging(line("  "), line((one.summary, MUTED)), width)]
            if roomy:
                rows.append((Content(""), one.step))
        return rows

    def _one_line(self) -> Content:
        answers = [one.summary for one in self.steps if one.summary]
        flagged = [TITLES[one.step] for one in self.steps if one.mark == "flagged"]
        parts = [line((f"{int(self.current)}/{len(TITLES)} {TITLES[self.current]}", "bold"))]
        parts += [line((answer, MUTED)) for answer in answers]
        parts += [line((f"✗ {title}", "$text-error")) for title in flagged]
        return Content(" · ").join(parts)
