"""`LogView`: the visible lines of a log of any length. Only these are read, decoded and styled.

Lines come from a `LogLines` (the index of the local copy, or a filter). The cost depends on the screen, not on the
log: the first new lines are painted at once, then there are at most ten repaints a second, of the visible lines alone;
only two a second if each shows none of the lines of the repaint before.
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

# Words that programs use for their errors; `num_errors`, `error_rate` and the like do not match.
ERROR = re.compile(
    r"\b(?:[A-Z]\w*(?:Error|Exception)|ERROR|FATAL|CRITICAL|Traceback|Segmentation fault|Killed)\b"
    r"|\berror:|\b[Oo]ut of memory\b|\bDUE TO (?:TIME LIMIT|NODE FAILURE|PREEMPTION)\b"
)
_WARNING = re.compile(r"\[NeMo W\b|\b(?:W(?:ARN(?:ING)?|arning)\b|[A-Z]\w*Warning\b|warning:)")
_VALUE = re.compile(r"(?:train_step_timing in s|reduced_train_loss|iteration)[:=]? ?(\d[\d./e+-]*)")
_FRAME_S = 0.1
# If a frame shows no line of the frame before, ten frames a second are unreadable.
_FLOOD_FRAME_S = 0.5
_SHIFT_CELLS = 16
# `select all` covers the visible lines; a dragged selection at most this number of lines.
_SELECTION_LINES = 10_000


def highlight_spans(text: str) -> list[Span]:
    """Spans of the figures of a training's progress, and of error and warning words."""
    spans: list[Span] = [(*match.span(1), "value") for match in _VALUE.finditer(text)]
    spans += [(*match.span(), "warning") for match in _WARNING.finditer(text)]
    spans += [(*match.span(), "error") for match in ERROR.finditer(text)]
    return spans


def pieces(text: str, spans: Iterable[Span]) -> list[tuple[str, tuple[Mark, ...]]]:
    """The whole text in pieces, each with its marks in the order of `spans`."""
    spans = [(max(0, start), min(end, len(text)), mark) for start, end, mark in spans]
    cuts = sorted({0, len(text), *(cut for start, end, _ in spans if start < end for cut in (start, end))})
    return [
        (text[start:end], tuple(mark for first, last, mark in spans if first <= start and end <= last))
        for start, end in pairwise(cuts)
    ]


def _characters_in(text: str, cells: int) -> int:
    """Number of characters at the start of a text that fit into `cells`."""
    index, end = 0, 0
    while index < len(text) and (end := end + cell_len(text[index])) <= cells:
        index += 1
    return index


class LogLines(Protocol):
    """Numbered lines that may grow at the end."""

    @property
    def lines(self) -> int:
        """Number of lines."""

    def read(self, first: int, count: int) -> list[str]:
        """Up to `count` lines from `first`, without control characters."""

    def find(self, pattern: re.Pattern[str], start: int, direction: Literal[1, -1] = 1) -> int | None:
        """Number of the first matching line from `start`, or None. Slow: to be called in a thread."""


class LogView(ScrollView, can_focus=True):
    """Follows the end of the log; pauses when the user scrolls up or presses the pause key."""

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
        .log--value { color: $measured; text-style: bold; }
        .log--warning { color: $text-warning; text-style: italic; }
        .log--error { color: $text-error; text-style: bold underline; }
        .log--match { background: $warning-muted; text-style: bold; }
        .log--current { text-style: bold reverse; }
        .log--quiet { text-style: dim; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "shift(-1)", "Left", show=False, id="log.left", tooltip="Scroll left"),
        Binding("right", "shift(1)", "Right", show=False, id="log.right", tooltip="Scroll right"),
        Binding("k", "scroll_up", "Up", show=False, id="log.up", tooltip="Line up"),
        Binding("j", "scroll_down", "Down", show=False, id="log.down", tooltip="Line down"),
        Binding("g", "scroll_home", "Top", show=False, id="log.top", tooltip="First line"),
        Binding("G,end", "follow", "End", show=False, id="log.end", tooltip="Go to the last line and follow the log"),
    ]

    following: reactive[bool] = reactive(True)
    """Whether the end stays in view."""
    left_cell: reactive[int] = reactive(0)
    """First visible cell of the lines."""

    def __init__(self, source: LogLines, empty: str = "", notify_change: Callable[[], object] = lambda: None) -> None:
        """`notify_change` is called when lines were added and when `following` changed, within the same repaint."""
        super().__init__()
        self._notify_change = notify_change
        self.source = source
        self.empty = empty
        """Text shown without lines."""
        self.search_pattern: re.Pattern[str] | None = None
        self.current_line: int | None = None
        """Line that the last search found."""
        self._current_pattern: re.Pattern[str] | None = None
        self._paused_at = 0
        """Number of lines when the view was paused."""
        self._placing = False
        self._wants_top = False
        """Whether the user went to the first line: the view then also goes to lines that are inserted before it."""
        self._frame: Timer | None = None
        self.is_stale = False
        """Whether the next frame will show new lines."""
        self._window: tuple[tuple[int, int], list[str]] = ((0, 0), [])
        """The visible lines, with the number of the first one and the height for which they were read."""
        self._style_key: tuple[Size, int, Style, object] = (Size(0, 0), 0, Style(), None)
        self._strips: dict[int, tuple[str, Strip]] = {}
        """Text and drawing of lines, by line number."""

    @property
    def new_lines(self) -> int:
        """Number of lines added since the view was paused."""
        return 0 if self.following else max(self.source.lines - self._paused_at, 0)

    @property
    def line_width(self) -> int:
        """Cells of a line, without the scrollbar."""
        return self.scrollable_content_region.width

    @property
    def vertical_scrollbar(self) -> QuietScrollBar:
        """A `QuietScrollBar`, created in the same way as Textual's scrollbar."""
        if not isinstance(self._vertical_scrollbar, QuietScrollBar):
            self._vertical_scrollbar = QuietScrollBar(name="vertical", thickness=self.scrollbar_size_vertical)
            self._vertical_scrollbar.display = False
            self.app._start_widget(self, self._vertical_scrollbar)
        return self._vertical_scrollbar

    def show(self, source: LogLines, empty: str = "") -> None:
        """Show other lines, at their end, without a selection."""
        others = {widget: selection for widget, selection in self.screen.selections.items() if widget is not self}
        if len(others) < len(self.screen.selections):
            self.screen.selections = others
        self.source, self.empty, self.current_line, self.left_cell = source, empty, None, 0
        self.following, self._wants_top = True, False
        self._paint()

    def renumber(self, source: LogLines, added: int) -> None:
        """Take a source with `added` more lines before the known ones. The view keeps its lines."""
        y = 0 if self._wants_top and not self.scroll_target_y else self.scroll_target_y + added
        self.source, self._paused_at = source, self._paused_at + added
        if self.current_line is not None:
            self.current_line += added
        if (old := self.text_selection) is not None and old.start is not None and old.end is not None:
            down = Offset(0, added)
            self.screen.selections = {**self.screen.selections, self: Selection(old.start + down, old.end + down)}
        self._strips.clear()
        self._paint(y)

    def mark_stale(self) -> bool:
        """Note that lines were appended. False if the caller must call `show_appended`, since no frame is scheduled.

        Safe in any thread: this sets the mark and then checks for a frame, and a frame does both in reverse order.
        """
        self.is_stale = True
        return self._frame is not None

    def show_appended(self) -> None:
        """Paint appended lines now, or in the next frame if the last one was painted just before."""
        if self.mark_stale():
            return
        self.is_stale = False
        before = self.virtual_size.height
        self._paint()
        is_flood = before and self.virtual_size.height - before >= self.size.height
        self._frame = self.set_timer(_FLOOD_FRAME_S if is_flood else _FRAME_S, self._next_frame)

    def flush_pending(self) -> None:
        """Paint pending lines now, without waiting for the late frame after a flood of lines."""
        if self.is_stale and self._frame is not None:
            self._frame.stop()
            self._next_frame()

    def place(self, number: int, pattern: re.Pattern[str] | None = None) -> None:
        """Pause with a line in the middle of the view, and mark the match of the pattern."""
        self.pause()
        self.current_line, self._current_pattern = number, pattern
        self._placing = True
        self.scroll_to(y=max(number - self.size.height // 2, 0), animate=False, force=True)
        self._placing = False
        self.vertical_scrollbar.update_thumb()
        if pattern is not None:
            self._show_match(number, pattern)
        self.refresh()

    def pause(self) -> None:
        if self.following:
            self._paused_at = self.virtual_size.height  # newer lines are not painted yet
            self.following = False
            self._notify_change()

    def visible_lines(self) -> list[str]:
        return self.source.read(self.scroll_offset.y, self.size.height)

    def action_follow(self) -> None:
        self.following = True
        self._paint()

    def action_scroll_home(self) -> None:
        self._wants_top = True
        super().action_scroll_home()

    def action_toggle_pause(self) -> None:
        if self.following:
            self.pause()
        else:
            self.action_follow()

    def action_shift(self, direction: int) -> None:
        """Scroll sideways, at most to the end of the longest visible line."""
        longest = max((cell_len(line) for line in self.visible_lines()), default=0)
        furthest = max(longest - self.line_width + _SHIFT_CELLS // 2, 0)
        self.left_cell = min(max(self.left_cell + direction * _SHIFT_CELLS, 0), furthest)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Pause when the user scrolls up; follow again when the user scrolls to the end."""
        super().watch_scroll_y(old_value, new_value)
        if self._placing:
            return
        self.vertical_scrollbar.update_thumb()
        if round(new_value) < self.max_scroll_y:
            self.pause()
        elif new_value > old_value and not self.following:
            self.following = True
            self._notify_change()

    def on_resize(self, _event: Resize) -> None:
        """Keep the end in view when the height changes."""
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
        """Draw the lines directly: the view needs none of Textual's steps for frames, padding and opacity.

        Lines are drawn again only if they look different.
        """
        marks = (self.search_pattern, self.current_line, self._current_pattern, self.text_selection)
        style_key = (self.size, self.left_cell, self.rich_style, marks)
        if style_key != self._style_key:
            self._style_key = style_key
            self._strips.clear()
        strips = [self.render_line(y) for y in crop.line_range]
        if crop.column_span != (0, self.size.width):
            strips = [strip.crop(*crop.column_span) for strip in strips]
        for line_filter in self.get_line_filters():
            strips = [strip.apply_filter(line_filter, self.background_colors[1]) for strip in strips]
        return strips

    def render_line(self, y: int) -> Strip:
        """One visible line, cut to the width; an arrow marks a line that continues to the right."""
        size, _, base, _ = self._style_key
        top = self.scroll_offset.y
        lines = self._lines_from(top)
        if y >= len(lines):
            notice = self.empty if y == 0 and not self.source.lines else ""
            return Strip([Segment(notice, self._quiet(base))]).adjust_cell_length(size.width, base)
        number, text = top + y, lines[y]
        drawn = self._strips.get(number)
        if drawn is None or drawn[0] != text:
            drawn = self._strips[number] = text, self._draw(text, number, base)
        return drawn[1]

    def _lines_from(self, top: int) -> list[str]:
        window = top, self.size.height
        if self._window[0] != window or not self._window[1]:
            self._window = window, self.visible_lines()
        return self._window[1]

    def _draw(self, text: str, number: int, base: Style) -> Strip:
        """A line as wide as the view, with its last cell under the scrollbar. Segments have their place in the log."""
        width, room, left, cells = self.size.width, self.line_width, self.left_cell, cell_len(text)
        if not left and cells <= room:
            segments = self._styled(text, width - cells, number, base)
        else:
            is_cut = cells > left + room
            visible = Strip(self._styled(text, 0, number, base), cells).crop(left, left + room - is_cut)
            arrow = [Segment("→", self._quiet(base))] if is_cut else []
            segments = [*visible, *arrow, Segment(" " * (width - visible.cell_length - len(arrow)), base)]
        placed, column = [], _characters_in(text, left)
        for part, style, _ in segments:
            placed.append(Segment(part, (style or base) + Style.from_meta({"offset": (column, number)})))
            column += len(part)
        return Strip(placed, width)

    def _quiet(self, base: Style) -> Style:
        return base + self.get_component_rich_style("log--quiet", partial=True)

    def _styled(self, text: str, blanks: int, number: int, base: Style) -> list[Segment]:
        """The line with its marks, followed by `blanks` spaces."""
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
        """Update the number of lines, keep the end in view when following, else line `y`, and draw."""
        self._window = ((0, 0), [])
        if len(self._strips) > 4 * self.size.height:
            self._strips.clear()
        lines = self.source.lines
        # An assignment would lay out the whole screen, but only the scrollbar depends on this value.
        self.set_reactive(LogView.virtual_size, Size(self.line_width, lines))
        self.vertical_scrollbar.window_virtual_size = lines
        y = self.max_scroll_y if self.following else y
        if y is not None:
            self._placing = True
            self.scroll_to(y=y, animate=False, force=True)
            self._placing = False
        self.vertical_scrollbar.update_thumb()
        self.refresh()
        self._notify_change()

    def _next_frame(self) -> None:
        self._frame = None
        if self.is_stale:
            self.show_appended()

    def _show_match(self, number: int, pattern: re.Pattern[str]) -> None:
        """Scroll sideways if the match is outside the view."""
        text = "".join(self.source.read(number, 1))
        if (match := pattern.search(text)) is None:
            return
        start, end = cell_len(text[: match.start()]), cell_len(text[: match.end()])
        width = self.line_width
        if start < self.left_cell or end >= self.left_cell + width:
            self.left_cell = max(start - width // 3, 0) if end >= width else 0
