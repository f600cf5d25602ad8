"""`LogPane`: a run's logs with follow and pause, search, filter, errors and copy. `LogView` draws the lines."""

from __future__ import annotations

import asyncio
import re
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Self

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.widgets import Input, Static

from llmb_tui.diagnosis.rule import PATTERN_ERRORS
from llmb_tui.language.quantities import count, share
from llmb_tui.language.text import clean_line, plural
from llmb_tui.ui.background import background, run_in_thread
from llmb_tui.ui.clipboard import copy
from llmb_tui.ui.text import MUTED, notify
from llmb_tui.ui.widgets.log_filter import LogFilter
from llmb_tui.ui.widgets.log_view import ERROR, LogView
from llmb_tui.watch.logindex import LogIndex

LogFile = tuple[str, Path]
"""A log's short name, such as `out`, and its local file."""

# Interval of polls; the longer one if a caller announces growth, since other files may still appear unannounced.
_POLL_S, _ANNOUNCED_POLL_S = 0.5, 2.0
# Time without a new line after which growth has paused; longer than the pauses between announcements of a growing log.
_PAUSE_S = 0.2
_COUNT_POLL_S = 0.05
_COUNT_BYTES = 8 << 20
"""Bytes of a long log that are counted in one step."""
Purpose = Literal["search", "filter"]
Direction = Literal[1, -1]


class LogPane(Vertical):
    """Shows one of several local files at a time; a missing file appears once it exists."""

    DEFAULT_CSS = """
    LogPane {
        border: blank;
        background: $surface;
        border-title-color: $text;
        border-title-style: bold;
        border-subtitle-color: $text-muted;
        height: 1fr;
        &:focus-within {
            border-left: outer $primary;
            border-title-color: $text-accent;
        }
        #log-bar { height: 1; display: none; }
        #log-purpose { width: auto; color: $text-accent; }
        #log-pattern { width: 1fr; }
        #log-refusal { width: auto; color: $text-error; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "toggle_pause", "Pause", id="log.hold", tooltip="Pause the log, or follow it again"),
        # With priority, so that the letters of a quickly typed `/word` go to the pattern.
        Binding(
            "slash", "ask('search')", "Search", priority=True, id="log.search", tooltip="Search the log for a pattern"
        ),
        Binding("n", "match(1)", "Next", show=False, id="log.next", tooltip="Next match"),
        Binding("N", "match(-1)", "Previous", show=False, id="log.previous", tooltip="Previous match"),
        Binding("f", "ask('filter')", "Filter", priority=True, id="log.filter", tooltip="Show only matching lines"),
        Binding("e", "error(1)", "Error", id="log.error", tooltip="First error, then the next one"),
        Binding("E", "error(-1)", "Previous error", show=False, id="log.error_before", tooltip="Previous error"),
        Binding("o", "next_log", "Log", id="log.other", tooltip="Show the run's next log"),
        Binding("y", "copy", "Copy", show=False, id="log.copy", tooltip="Copy the selected text, or the lines in view"),
        Binding("escape", "close", "Close", id="log.close", tooltip="Close the search line"),
    ]

    bar = getters.query_one("#log-bar", Horizontal)
    pattern_input = getters.query_one("#log-pattern", Input)
    refusal = getters.query_one("#log-refusal", Static)

    class LinesAppended(Message):
        """The reader found new lines."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, LogPane.LinesAppended)

    class GrowthPaused(Message):
        """The reader found no new lines for a moment."""

    @dataclass
    class LinesCounted(Message):
        """All lines of a long file are counted."""

        index: LogIndex
        """Index of the whole file."""
        tail: LogIndex
        """Index of its end, which was shown until then."""

    def __init__(self, files: Sequence[LogFile], empty: str = "No log yet.") -> None:
        super().__init__()
        self._files = list(files)
        self._empty = empty
        self._indexes = {path: LogIndex(path) for _, path in files}
        self._tails: dict[Path, LogIndex] = {}
        """Ends of long files, which are shown until all lines are counted."""
        self._chosen = 0
        self.view = LogView(self._index, empty, self.update_title)
        self._filter: LogFilter | None = None
        self._present: frozenset[Path] = frozenset()
        self._log_count = 0
        """Number of logs at the last refresh of the key bindings."""
        self._purpose: Purpose = "search"
        self._searching = False
        self._titles = (Content(""), Content(""))
        self._entitling = False
        self._unreadable = ""
        self._is_announced = False
        """Whether a caller announces that the newest file has grown."""
        self._stop = threading.Event()
        self._wake = threading.Event()

    def compose(self) -> ComposeResult:
        yield self.view
        with Horizontal(id="log-bar"):
            yield Static(id="log-purpose", markup=False)
            yield Input(id="log-pattern", compact=True)
            yield Static(id="log-refusal", markup=False)

    def on_mount(self) -> None:
        self.update_title()
        self.run_worker(run_in_thread(self._read_files), group="log-reader", exit_on_error=False)

    def on_unmount(self) -> None:
        self._stop.set()
        self._wake.set()

    def show_newest(self, file: LogFile) -> None:
        """Announce that the newest file has grown. A new file replaces the newest one in the view, but no older one."""
        if file not in self._files:
            self._indexes[file[1]] = LogIndex(file[1])
            self._files.insert(0, file)
            if self._chosen:
                self._chosen += 1
            else:
                self._open()
        self._is_announced = True
        self._wake.set()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 (Textual's)
        if action == "next_log":
            return len(self._present) > 1
        if action == "match":
            return self.view.search_pattern is not None
        if action in ("close", "ask"):
            return self.bar.display == (action == "close")
        return True

    def action_toggle_pause(self) -> None:
        self.view.action_toggle_pause()

    def action_ask(self, purpose: Purpose) -> None:
        self._purpose = purpose
        self.query_one("#log-purpose", Static).update(f"{purpose} ")
        self.refusal.update("")
        pattern = self._filter.pattern if purpose == "filter" and self._filter else None
        self.pattern_input.value = pattern.pattern if pattern else ""
        self.bar.display = True
        self.screen.set_focus(self.pattern_input)  # at once: the next key already belongs to the pattern
        self.refresh_bindings()

    def action_close(self) -> None:
        self.bar.display = False
        self.screen.set_focus(self.view)
        self.refresh_bindings()

    def action_match(self, direction: Direction) -> None:
        if self.view.search_pattern is not None:
            self._go_to(self.view.search_pattern, lambda: self._after_current(direction), direction, "matches")

    def action_error(self, direction: Direction) -> None:
        """Go to the first error, which is most often the cause, then to the next ones."""

        def start() -> int:
            return 0 if self.view.following and direction == 1 else self._after_current(direction)

        self._go_to(ERROR, start, direction, "errors")

    def action_next_log(self) -> None:
        count = len(self._files)
        others = ((self._chosen + offset) % count for offset in range(1, count + 1))
        self._chosen = next((index for index in others if self._files[index][1] in self._present), self._chosen)
        self._open()

    def action_copy(self) -> None:
        selected = self.screen.get_selected_text()
        text = selected or "\n".join(self.view.visible_lines())
        if text:
            copy(self.app, text, plural(text.count("\n") + 1, "line"))

    @on(Input.Submitted, "#log-pattern")
    def apply_pattern(self, event: Input.Submitted) -> None:
        event.stop()
        # As in less and vim, a pattern without capital letters ignores case.
        flags = re.IGNORECASE if event.value.islower() else 0
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", FutureWarning)
                pattern = re.compile(event.value, flags) if event.value else None
        except FutureWarning as warning:
            self.refusal.update(Content(f" ambiguous pattern: {warning}; \\[ is a bracket"))
            return
        except PATTERN_ERRORS as error:
            self.refusal.update(Content(f" invalid pattern: {error}"))
            return
        self.action_close()
        if self._purpose == "filter":
            self._apply_filter(pattern)
            return
        self.view.search_pattern = pattern
        self.view.refresh()
        self.refresh_bindings()
        if pattern is not None:
            self._go_to(pattern, lambda: self.view.scroll_offset.y, 1, "matches", wrap=True)

    @on(LinesAppended)
    def show_new_lines(self) -> None:
        if self.view.source is self._index and self._lines is not self._index:
            self.view.show(self._lines, self._empty)
        self.view.show_appended()
        if len(self._present) != self._log_count:  # `o` is shown only if there are several logs
            self._log_count = len(self._present)
            self.refresh_bindings()

    @on(GrowthPaused)
    def show_last_lines(self) -> None:
        self.view.flush_pending()

    @on(LinesCounted)
    def show_line_numbers(self, event: LinesCounted) -> None:
        if self.view.source is event.tail:
            self.view.renumber(event.index, event.index.lines_before(event.tail))
        event.tail.close()

    def update_title(self) -> None:
        """Show the names of the logs in the title, and the length and state of the shown one in the subtitle."""
        names = [
            Content.styled(name, "bold" if number == self._chosen else MUTED)
            for number, (name, path) in enumerate(self._files)
            if path in self._present or number == self._chosen
        ]
        title, subtitle = Content("  ").join(names), Content(" · ").join(self._status())
        if title.is_same(self._titles[0]) and subtitle.is_same(self._titles[1]):
            return
        self._titles = title, subtitle
        self._entitling = True
        self.border_title, self.border_subtitle = title, subtitle
        self._entitling = False

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """As in Textual, but a new title repaints only the lines of the frame and not the content."""
        if self._entitling and self.size:
            width, height = self.size  # without the frame
            regions = (Region(-1, -1, width + 2, 1), Region(-1, height, width + 2, 1))
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _status(self) -> list[Content]:
        view, total, tail = self.view, self._index.lines, self._tail
        parts = [Content.styled(self._unreadable, "bold $text-error")] if self._unreadable else []
        if self._filter is not None:
            of_all = f" of {count(total)}" if tail is None else ""
            matches = f"{count(self._filter.lines)}{of_all} lines match {clean_line(self._filter.pattern.pattern)}"
            is_searching = not self._filter.complete and tail is None
            searched = f", {share(self._filter.searched / total)} searched" if is_searching else ""
            parts.append(Content.styled(matches + searched, "$text-accent"))
        elif total and tail is None:
            parts.append(Content(plural(total, "line")))
        if tail is not None:
            parts.append(Content(f"counting lines, {share(self._index.size / (tail.begin + tail.size))}"))
        if self._searching:
            parts.append(Content("searching"))
        if not view.following:
            parts.append(Content.styled(f"paused · {plural(view.new_lines, 'new line')}", "bold $text-warning"))
        elif total or tail is not None:
            parts.append(Content("following"))
        return parts

    @background(group="log-search", exclusive=True)
    async def _go_to(
        self,
        pattern: re.Pattern[str],
        start: Callable[[], int],
        direction: Direction,
        plural_noun: str,
        wrap: bool = False,
    ) -> None:
        """Search for a line in a thread and go there; with `wrap` also above `start` if there is none below.

        `plural_noun`: what the pattern finds, such as `errors`.
        """
        self._searching = True
        self.update_title()
        # Uncounted lines may contain the first match.
        while self._tail is not None or self.view.source is not self._lines:
            await asyncio.sleep(_COUNT_POLL_S)
        source, begin = self.view.source, start()
        number = await run_in_thread(source.find, pattern, begin, direction)
        if number is None and wrap:
            number = await run_in_thread(source.find, pattern, begin, -1)
            if number is not None:
                notify(self.app, f"No {plural_noun} below. Showing the last one above.")
        self._searching = False
        if number is not None and source is self.view.source:
            self.view.place(number, pattern)
        elif number is None:
            more = "more " if self.view.current_line is not None else ""
            notify(self.app, f"No {more}{plural_noun} {'below' if direction == 1 else 'above'}.")
        self.update_title()

    def _after_current(self, direction: Direction) -> int:
        current = self.view.current_line
        return self.view.scroll_offset.y if current is None else max(current + direction, 0)

    def _apply_filter(self, pattern: re.Pattern[str] | None) -> None:
        index, before, view = self._index, self._filter, self.view
        top = view.scroll_offset.y
        top_line = before.number(top) if before and not view.following and top < before.lines else None
        self._filter = LogFilter(index, pattern) if pattern else None
        self.view.show(self._lines, "No matching lines yet." if pattern else self._empty)
        if top_line is not None and view.source is index:
            view.place(top_line)  # keep the line in view when the filter is removed
        self._wake.set()

    def _open(self) -> None:
        """Show the chosen file, at its end."""
        self._filter = None
        self.view.show(self._lines, self._empty)
        self.update_title()
        self.refresh_bindings()

    @property
    def _path(self) -> Path:
        return self._files[self._chosen][1]

    @property
    def _index(self) -> LogIndex:
        return self._indexes[self._path]

    @property
    def _tail(self) -> LogIndex | None:
        """End of the chosen file, as long as its lines are not counted."""
        return self._tails.get(self._path)

    @property
    def _lines(self) -> LogIndex | LogFilter:
        """Lines to show: the matching lines, the last lines, or the whole file."""
        return self._filter or self._tail or self._index

    def _read_files(self) -> None:
        """Read appended lines until the pane is removed. Runs in a thread."""
        known: object = None
        read: object = None
        woken = True
        while not self._stop.is_set():
            files, path, chosen = tuple(self._files), self._path, self._filter
            index, more = self._indexes[path], False
            try:
                self._present = frozenset(path for _, path in files if path.exists())
                more = self._count(path, index)
                if chosen is not None:
                    chosen.refresh()
                self._unreadable = ""
            except OSError as error:
                self._unreadable = f"cannot read the log: {error.strerror}"
            now = (index, chosen, self._present, more, self._unreadable)
            amount = (index.size, chosen and chosen.searched)
            if now != known or (amount != read and not self.view.mark_stale()):
                self.post_message(self.LinesAppended())
            elif amount == read and not woken and self.view.is_stale:
                self.post_message(self.GrowthPaused())
            known, read = now, amount
            if self._unreadable or not (more or (chosen is not None and not chosen.complete)):
                poll_s = _ANNOUNCED_POLL_S if self._is_announced and not self._unreadable else _POLL_S
                woken = self._wake.wait(_PAUSE_S if self.view.is_stale else poll_s)
                self._wake.clear()
        for index in (*self._indexes.values(), *self._tails.values()):
            index.close()

    def _count(self, path: Path, index: LogIndex) -> bool:
        """Read appended lines; of a long file the end first, then the rest in parts. True if there is more to read.

        Only this thread uses a tail until it posts `LinesCounted`.
        """
        tail = self._tails.get(path)
        if tail is None:
            tail = index.tail() if not index.size else None
            if tail is None:
                index.refresh()
                return False
            tail.refresh()
            self._tails[path] = tail
        elif index.refresh(_COUNT_BYTES):
            tail.refresh()
        else:
            del self._tails[path]
            self.post_message(self.LinesCounted(index, tail))
            return False
        return True
