"""`LayoutsDialog`: choose one of the valid layouts of a selection; the fastest by the estimate are first."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from llmb_tui.answers.layouts import BANDS, layout_facts, layouts_summary
from llmb_tui.catalog.catalog import Catalog
from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import duration, gigabytes, percent
from llmb_tui.language.states import memory_label
from llmb_tui.language.text import capital, short_line
from llmb_tui.plan.selection import Selection
from llmb_tui.ui import units
from llmb_tui.ui.background import background, run_in_thread
from llmb_tui.ui.dialogs import ListDialog
from llmb_tui.ui.text import MUTED, STYLES, error_content, line, lines
from llmb_tui.ui.widgets.texts import Paragraph, Paragraphs, fact, text
from llmb_tui.wizard.answers import layout_text
from llmb_tui.wizard.choices import Choice

if TYPE_CHECKING:
    from llmb_tui.plan.layouts import Layout, Layouts

PATIENCE_S = 1.0
"""A comparison that takes longer, seconds, shows the elapsed time."""
_TICK_S = 0.25
_COLUMNS = (("tp", 3), ("pp", 4), ("cp", 4), ("ep", 4), ("vp", 4), ("mbs", 4), ("ga", 5))
_HEAD = "  " + "".join(f"{name.upper():>{width}}" for name, width in _COLUMNS) + "    step time    MFU    memory"


class LayoutsDialog(ListDialog):
    """Dismisses with the layout as `layout_text` writes it. The selection cannot change while the dialog is open."""

    def __init__(self, catalog: Catalog, selection: Selection) -> None:
        super().__init__("Valid layouts", "Use layout", "comparing layouts")
        self._catalog = catalog
        self._selection = selection
        self._layouts: dict[str, Layout] = {}
        self._since = time.monotonic()

    def on_mount(self) -> None:
        """Compare the layouts in a thread: there may be thousands."""
        self._ticks = self.set_interval(_TICK_S, self._tick)
        self._compare()

    @background(exclusive=True)
    async def _compare(self) -> None:
        from llmb_tui.plan.layouts import layouts

        try:
            self._show(await run_in_thread(layouts, self._catalog, self._selection))
        except LlmbError as error:
            self.show_status(error_content(error))
        finally:
            self._ticks.stop()

    def _tick(self) -> None:
        waited = time.monotonic() - self._since
        if waited >= PATIENCE_S:
            self.show_status(line((f"◐ comparing layouts for {duration(waited)} …", MUTED)))

    def _show(self, valid: Layouts) -> None:
        self._layouts = {layout_text(layout.overrides): layout for layout in valid.best}
        if not self._layouts:
            self.show_status(line(f"{capital(layouts_summary(valid))}."))
            return
        legend = ("   ● published  ! unusual", MUTED)
        self.show_status(lines(line((layouts_summary(valid), "bold"), legend), line((_HEAD, MUTED))))
        current = layout_text(self._selection.overrides)
        published = (value for value, layout in self._layouts.items() if layout.published)
        chosen = current if current in self._layouts else next(published, next(iter(self._layouts)))
        choices = (
            Choice(value, _cells(layout), _figures(layout), published=True if layout.published else None)
            for value, layout in self._layouts.items()
        )
        self.offer(tuple(choices), chosen)
        self.choose(chosen)
        self.call_after_refresh(self.choices.scroll_to_highlight)

    def choose(self, value: str) -> None:
        super().choose(value)
        self.query_one("#about-choice", Paragraphs).parts = about(self._layouts[value])


def about(layout: Layout) -> tuple[Paragraph, ...]:
    """Facts of the highlighted layout."""
    facts = (fact(entry.label, (entry.value, STYLES[entry.tone])) for entry in layout_facts(layout))
    return (*facts, text((BANDS, MUTED)))


def _cells(layout: Layout) -> str:
    return "".join(f"{units.number_or_dash(getattr(layout.parallelism, name)):>{width}}" for name, width in _COLUMNS)


def _figures(layout: Layout) -> str:
    estimate, memory = layout.estimate, layout.memory
    speed = f"{'no estimate':>16}"
    if estimate is not None:
        speed = f"{estimate.step_time_text:>9}{percent(estimate.mfu_pct):>8}"
    memory_text = (
        f"{gigabytes(memory.peak_gb):>10} {short_line(memory_label(memory.verdict).word, 6):<6}"
        if memory is not None
        else ""
    )
    # The mark of a published layout takes two cells.
    return ("" if layout.published else "  ") + f"{speed:<17}{memory_text:<17}" + ("!" if layout.unusual else "")
