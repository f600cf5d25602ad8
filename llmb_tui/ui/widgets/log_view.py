"""`LogView`: the visible lines of a log of any length. Nothing but these is read, decoded or styled.

Lines come from a `LogLines` (the index over the local copy, or a filter over it). Cost follows the screen, not the
log: however fast lines arrive, there is one repaint at once and then at most ten a second, of these lines alone, and
only two a second where each shows none of the lines of the one before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import ClassVar, Literal, Protocol

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.geometry import Offset, Region, Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.timer import Timer

from llmb_tui.ui.widgets.scroll_bar import QuietScrollBar

Mark = Literal["value", "warning", "error", "match", "current", "selected"]
Span = tuple[int, int, Mark]

# Words that a program uses for its own errors; `num_errors`, `error_rate` and the like are none.
ERROR = re.compile(
    r"\b(?:[A-Z]\w*(?:Error|Exception)|ERROR|FATAL|CRITICAL|Traceback|Segmentation fault|Killed)\b"
    r"|\berror:|\b[Oo]ut of memory\b|\bDUE TO (?:TIME LIMIT|NODE FAILURE|PREEMPTION)\b"
)
_WARNING = re.compile(r"\[NeMo W\b|\b(?:W(?:ARN(?:ING)?|arning)\b|[A-Z]\w*Warning\b|warning:)")
_VALUE = re.compile(r"(?:train_step_timing in s|reduced_train_loss|iteration)[:=]? ?(\d[\d./e+-]*)")
_FRAME_S = 0.1
# Where a frame leaves no line of the one before, nobody reads ten of them a second.
_FLOOD_FRAME_S = 0.5
_SHIFT_CELLS = 16
# A selection that goes from edge to edge (`select all`) covers what is seen; a dragged one at most this much.
_SELECTION_LINES = 10_000


def highlight_spans(text: str) -> list[Span]:
    """The figures of the training's progress, and error and warning words."""
    spans: list[Span] = [(*match.span(1), "value") for match in _VALUE.finditer(text)]
    spans += [(*match.span(), "warning") for match in _WARNING.finditer(text)]
    spans += [(*match.span(), "error") for match in ERROR.finditer(text)]
    return spans


def pieces(text: str, spans: Iterable[Span]) -> list[tuple[str, tuple[Mark, ...]]]:
    """The text in pieces, each with the marks that lie over it, in the order of `spans`. Nothing is lost."""
    spans = [(max(0, start), min(end, len(text)), mark) for start, end, mark in spans]
    cuts = sorted({0, len(text), *(cut for start, end, _ in spans if start < end for cut in (start, end))})
    return [
        (text[start:end], tuple(mark for first, last, mark in spans if first <= start and end <= last))
        for start, end in pairwise(cuts)
    ]


def _characters_in(text: str, cells: int) -> int:
    """How many characters at the begin of a text end within so many cells."""
    at, end = 0, 0
    while at < len(text) and (end := end + cell_len(text[at])) <= cells:
        at += 1
    return at


class LogLines(Protocol):
    """Numbered lines that may grow at the end."""

    @property
    def lines(self) -> int:
        """How many there are."""

    def read(self, first: int, count: int) -> list[str]:
        """Some of them, clean."""

    def find(self, pattern: re.Pattern[str], start: int, direction: Literal[1, -1] = 1) -> int | None:
        """The first match from `start` on; slow, for threads."""


class LogView(ScrollView, can_focus=True):
    """Follows the end of the log; holds still when it is scrolled up or told to."""

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "log--value",
        "log--warning",
        "log--error",
        "log--match",
        "log--current",
        "log--quiet",
    }
    DEFAULT_CSS = """
    LogView {
        height: 1fr;
        background: $surface;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        .log--value { color: $text-accent; text-style: bold; }
        .log--warning { color: $text-warning; text-style: italic; }
        .log--error { color: $text-error; text-style: bold underline; }
        .log--match { background: $warning-muted; text-style: bold; }
        .log--current { text-style: bold reverse; }
        .log--quiet { text-style: dim; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "shift(-1)", "Left", show=False, id="log.left", tooltip="See what is left of the cut"),
        Binding("right", "shift(1)", "Right", show=False, id="log.right", tooltip="See what is right of the cut"),
        Binding("k", "scroll_up", "Up", show=False, id="log.up", tooltip="A line up"),
        Binding("j", "scroll_down", "Down", show=False, id="log.down", tooltip="A line down"),
        Binding("g", "scroll_home", "Top", show=False, id="log.top", tooltip="The first line"),
        Binding("G,end", "follow", "End", show=False, id="log.end", tooltip="The last line, and follow the log"),
    ]

    following: reactive[bool] = reactive(True)
    """The end is in view and stays there."""
    left_cell: reactive[int] = reactive(0)
    """First visible cell of the lines."""

    def __init__(self, source: LogLines, empty: str = "", moved: Callable[[], object] = lambda: None) -> None:
        """`moved`: called when lines came, or the view began or ceased to follow, so that all is one repaint."""
        super().__init__()
        self._moved = moved
        self.source = source
        self.empty = empty
        """What is said while there is no line."""
        self.search_pattern: re.Pattern[str] | None = None
        self.current_line: int | None = None
        """The line that a search ended at."""
        self._current_pattern: re.Pattern[str] | None = None
        self._held_at = 0
        self._placing = False
        self._top_wanted = False
        """Somebody went to the first line: should lines come before it, to those."""
        self._frame: Timer | None = None
        self.is_stale = False
        """Lines came that the next frame will show."""
        self._window: tuple[tuple[int, int], list[str]] = ((0, 0), [])
        """The lines in view, with the number of the first and the height that they were read for."""
        self._look: tuple[Size, int, Style, object] = (Size(0, 0), 0, Style(), None)
        self._strips: dict[int, tuple[str, Strip]] = {}
        """Lines as they were drawn, with their text, by their number."""

    @property
    def behind(self) -> int:
        """How many lines came since the view holds."""
        return 0 if self.following else max(self.source.lines - self._held_at, 0)

    @property
    def line_width(self) -> int:
        """Cells for a line, beside the scrollbar."""
        return self.scrollable_content_region.width

    @property
    def vertical_scrollbar(self) -> QuietScrollBar:
        """Made as Textual makes its own."""
        if not isinstance(self._vertical_scrollbar, QuietScrollBar):
            self._vertical_scrollbar = QuietScrollBar(name="vertical", thickness=self.scrollbar_size_vertical)
            self._vertical_scrollbar.display = False
            self.app._start_widget(self, self._vertical_scrollbar)
        return self._vertical_scrollbar

    def show(self, source: LogLines, empty: str = "") -> None:
        """Show other lines, from their end; what was selected is none of them."""
        others = {widget: chosen for widget, chosen in self.screen.selections.items() if widget is not self}
        if len(others) < len(self.screen.selections):
            self.screen.selections = others
        self.source, self.empty, self.current_line, self.left_cell = source, empty, None, 0
        self.following, self._top_wanted = True, False
        self._paint()

    def renumber(self, source: LogLines, by: int) -> None:
        """Show the same lines by other numbers, and those before them: nothing moves."""
        y = 0 if self._top_wanted and not self.scroll_target_y else self.scroll_target_y + by
        self.source, self._held_at = source, self._held_at + by
        if self.current_line is not None:
            self.current_line += by
        if (chosen := self.text_selection) is not None and chosen.start is not None and chosen.end is not None:
            down = Offset(0, by)
            self.screen.selections = {**self.screen.selections, self: Selection(chosen.start + down, chosen.end + down)}
        self._strips.clear()
        self._paint(y)

    def will_look(self) -> bool:
        """From any thread, when lines were appended: whether the next frame comes by itself, or `grown` must be called.

        It is noted first and then looked whether a frame is to come; a frame does both the other way round.
        """
        self.is_stale = True
        return self._frame is not None

    def grown(self) -> None:
        """Lines were appended: paint now, or with the next frame when one was painted just now."""
        if self.will_look():
            return
        self.is_stale = False
        before = self.virtual_size.height
        self._paint()
        is_flood = before and self.virtual_size.height - before >= self.size.height
        self._frame = self.set_timer(_FLOOD_FRAME_S if is_flood else _FRAME_S, self._next_frame)

    def flush_pending(self) -> None:
        """No more came for a moment: what there is need not wait for the frame after a flood."""
        if self.is_stale and self._frame is not None:
            self._frame.stop()
            self._next_frame()

    def place(self, number: int, pattern: re.Pattern[str] | None = None) -> None:
        """Hold with a line in the middle of the view, and mark what the pattern finds in it."""
        self.hold()
        self.current_line, self._current_pattern = number, pattern
        self._placing = True
        self.scroll_to(y=max(number - self.size.height // 2, 0), animate=False, force=True)
        self._placing = False
        self.vertical_scrollbar.settle()
        if pattern is not None:
            self._show_match(number, pattern)
        self.refresh()

    def hold(self) -> None:
        if self.following:
            self._held_at = self.virtual_size.height  # what came since it was painted is not in view
            self.following = False
            self._moved()

    def visible_lines(self) -> list[str]:
        return self.source.read(self.scroll_offset.y, self.size.height)

    def action_follow(self) -> None:
        self.following = True
        self._paint()

    def action_scroll_home(self) -> None:
        self._top_wanted = True
        super().action_scroll_home()

    def action_hold(self) -> None:
        if self.following:
            self.hold()
        else:
            self.action_follow()

    def action_shift(self, direction: int) -> None:
        """Move the lines sideways, as far as the visible ones reach."""
        longest = max((cell_len(line) for line in self.visible_lines()), default=0)
        furthest = max(longest - self.line_width + _SHIFT_CELLS // 2, 0)
        self.left_cell = min(max(self.left_cell + direction * _SHIFT_CELLS, 0), furthest)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """A person who scrolls up holds the view, and who scrolls to the end follows again."""
        super().watch_scroll_y(old_value, new_value)
        if self._placing:
            return
        self.vertical_scrollbar.settle()
        if round(new_value) < self.max_scroll_y:
            self.hold()
        elif new_value > old_value and not self.following:
            self.following = True
            self._moved()

    def on_resize(self, _event: Resize) -> None:
        """The end stays in view when the view becomes lower."""
        if self.following:
            self._paint()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, read from the log again."""
        whole = selection.start is None or selection.end is None
        first = self.scroll_offset.y if selection.start is None else selection.start.y
        last = self.scroll_offset.y + self.size.height - 1 if selection.end is None else selection.end.y
        if last - first >= _SELECTION_LINES:
            return None
        text = "\n".join(self.source.read(first, last - first + 1))
        if whole or selection.start is None or selection.end is None:
            return text, "\n"
        shifted = Selection(Offset(selection.start.x, 0), Offset(selection.end.x, last - first))
        return shifted.extract(text), "\n"

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002 (Textual's signature)
        self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Without Textual's way through frames, padding and opacity, of which the view has none.

        Lines that are drawn already are drawn again only where they look otherwise.
        """
        marks = (self.search_pattern, self.current_line, self._current_pattern, self.text_selection)
        look = (self.size, self.left_cell, self.rich_style, marks)
        if look != self._look:
            self._look = look
            self._strips.clear()
        strips = [self.render_line(y) for y in crop.line_range]
        if crop.column_span != (0, self.size.width):
            strips = [strip.crop(*crop.column_span) for strip in strips]
        for line_filter in self.get_line_filters():
            strips = [strip.apply_filter(line_filter, self.background_colors[1]) for strip in strips]
        return strips

    def render_line(self, y: int) -> Strip:
        """One visible line, cut to the width; a mark shows where there is more to the right."""
        size, _, base, _ = self._look
        top = self.scroll_offset.y
        lines = self._lines_from(top)
        if y >= len(lines):
            notice = self.empty if y == 0 and not self.source.lines else ""
            return Strip([Segment(notice, self._quiet(base))]).adjust_cell_length(size.width, base)
        number, text = top + y, lines[y]
        drawn = self._strips.get(number)
        if drawn is None or drawn[0] != text:
            drawn = self._strips[number] = text, self._drawn(text, number, base)
        return drawn[1]

    def _lines_from(self, top: int) -> list[str]:
        window = top, self.size.height
        if self._window[0] != window or not self._window[1]:
            self._window = window, self.visible_lines()
        return self._window[1]

    def _drawn(self, text: str, number: int, base: Style) -> Strip:
        """As wide as the view; its last cell is below the scrollbar. Each segment knows its place in the log."""
        width, room, left, cells = self.size.width, self.line_width, self.left_cell, cell_len(text)
        if not left and cells <= room:
            segments = self._styled(text, width - cells, number, base)
        else:
            is_cut = cells > left + room
            part = Strip(self._styled(text, 0, number, base), cells).crop(left, left + room - is_cut)
            more = [Segment("→", self._quiet(base))] if is_cut else []
            segments = [*part, *more, Segment(" " * (width - part.cell_length - len(more)), base)]
        placed, at = [], _characters_in(text, left)
        for words, style, _ in segments:
            placed.append(Segment(words, (style or base) + Style.from_meta({"offset": (at, number)})))
            at += len(words)
        return Strip(placed, width)

    def _quiet(self, base: Style) -> Style:
        return base + self.get_component_rich_style("log--quiet", partial=True)

    def _styled(self, text: str, blanks: int, number: int, base: Style) -> list[Segment]:
        """The line, and so many blanks behind it."""
        spans: list[Span] = highlight_spans(text)
        if self.search_pattern is not None:
            spans += [(*match.span(), "match") for match in self.search_pattern.finditer(text)]
        current = self._current_pattern if number == self.current_line else None
        if current is not None and (match := current.search(text)):
            spans.append((*match.span(), "current"))
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(number)) is not None:
            spans.append((span[0], len(text) if span[1] == -1 else span[1], "selected"))
        return [Segment(part, self._style(marks, base)) for part, marks in pieces(text + " " * blanks, spans)]

    def _style(self, marks: tuple[Mark, ...], base: Style) -> Style:
        for mark in marks:
            if mark == "selected":
                base += self.screen.get_component_rich_style("screen--selection")
            else:
                base += self.get_component_rich_style(f"log--{mark}", partial=True)
        return base

    def _paint(self, y: float | None = None) -> None:
        """Take in the present number of lines, keep the end in view when following, else line `y`, and draw."""
        self._window = ((0, 0), [])
        if len(self._strips) > 4 * self.size.height:
            self._strips.clear()
        lines = self.source.lines
        # Assigned, it would have the whole screen laid out; the scrollbar is all that depends on it.
        self.set_reactive(LogView.virtual_size, Size(self.line_width, lines))
        self.vertical_scrollbar.window_virtual_size = lines
        y = self.max_scroll_y if self.following else y
        if y is not None:
            self._placing = True
            self.scroll_to(y=y, animate=False, force=True)
            self._placing = False
        self.vertical_scrollbar.settle()
        self.refresh()
        self._moved()

    def _next_frame(self) -> None:
        self._frame = None
        if self.is_stale:
            self.grown()

    def _show_match(self, number: int, pattern: re.Pattern[str]) -> None:
        """Move sideways when the match is outside of the view."""
        text = "".join(self.source.read(number, 1))
        if (match := pattern.search(text)) is None:
            return
        start, end = cell_len(text[: match.start()]), cell_len(text[: match.end()])
        width = self.line_width
        if start < self.left_cell or end >= self.left_cell + width:
            self.left_cell = max(start - width // 3, 0) if end >= width else 0
