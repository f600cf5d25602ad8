"""`Rail`: the seven steps with their answers; one line if there is no room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.content import Content
from textual.reactive import var

from llmb_tui.language.states import mark_label
from llmb_tui.ui.text import MUTED, STYLES, hanging_paragraph, line, state_mark
from llmb_tui.ui.widgets.texts import WrappedLines
from llmb_tui.wizard.steps import TITLES, StepId, StepStatus

if TYPE_CHECKING:
    from llmb_tui.wizard.state import WizardState


class Rail(WrappedLines):
    """The current step, the answers so far, and the flagged steps."""

    state: var[WizardState | None] = var["WizardState | None"](None)
    current: var[StepId] = var(StepId.WORKLOAD)
    steps: var[tuple[StepStatus, ...]] = var(tuple(StepStatus(step, "open", "") for step in StepId))

    def watch_state(self, state: WizardState | None) -> None:
        if state is not None:
            from llmb_tui.wizard.gates import statuses

            self.current, self.steps = state.step, statuses(state)

    def watch_current(self, current: StepId) -> None:
        self.border_title = f"{int(current)} of {len(TITLES)}"
        self.changed()

    watch_steps = WrappedLines.changed

    def rows(self, width: int) -> list[Content]:
        return [self._one_line()] if self.size.height == 1 else [row for row, _ in self._rows(width)]

    async def on_click(self, event: events.Click) -> None:
        rows, row = self._rows(self.size.width), event.y - self.gutter.top
        if self.size.height > 1 and 0 <= row < len(rows):
            await self.run_action(f"screen.go({int(rows[row][1])})")

    def _rows(self, width: int) -> list[tuple[Content, StepId]]:
        rows = []
        roomy = self.size.height >= 3 * len(TITLES)
        for status in self.steps:
            label = mark_label(status.mark)
            glyph, style = label.glyph, STYLES[label.tone]
            current = status.step is self.current
            if current and status.mark != "flagged":
                glyph, style = "▸", "bold"
            rows.append((line((glyph, style), " ", (TITLES[status.step], "bold" if current else "")), status.step))
            if status.summary:
                rows += [
                    (row, status.step) for row in hanging_paragraph(line("  "), line((status.summary, MUTED)), width)
                ]
            if roomy:
                rows.append((Content(""), status.step))
        return rows

    def _one_line(self) -> Content:
        answers = [status.summary for status in self.steps if status.summary]
        flagged = [TITLES[status.step] for status in self.steps if status.mark == "flagged"]
        parts = [line((f"{int(self.current)}/{len(TITLES)} {TITLES[self.current]}", "bold"))]
        parts += [line((answer, MUTED)) for answer in answers]
        glyph, style = state_mark(mark_label("flagged"))
        parts += [line((f"{glyph}{title}", style)) for title in flagged]
        return Content(" · ").join(parts)
