"""Widgets for text that is wrapped to their width or scrolled.

A key must take effect within a frame, and most keys change only a few lines of the screen: only those are repainted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar, get_args

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Region, Size
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.visual import Visual
from textual.widget import Widget
from textual.widgets import Static

from llmb_tui.language.states import Severity, severity_label
from llmb_tui.ui.text import MUTED, STYLES, Part, hanging_paragraph, line, lines, state_mark

if TYPE_CHECKING:
    from llmb_tui.plan.plan import Problem

_LABEL = 13
Paragraph = tuple[Content, Content]
"""Head and body; the body is wrapped to the right of the head."""
Rows = Callable[[int], list[Content]]
"""Function that returns the lines of a text for a width in cells."""


def label(text: str, hint: str = "", *, first: bool = False, id: str | None = None) -> Static:  # noqa: A002 - Textual's
    """Label of a field, with a hint; the `first` one has no blank line above it. Literals only: the text is markup.

    `first` sets a class, since Textual styles all labels again at each mount if the style sheet has `:first-child`.
    """
    markup = f"[b]{text}[/b]  [dim]{hint}[/]" if hint else f"[b]{text}[/b]"
    return Static(markup, classes="label first" if first else "label", id=id)


class WrappedLines(Widget):
    """Lines wrapped to the width. Subclasses return them from `rows` and call `changed` after each change."""

    DEFAULT_CSS = "WrappedLines { height: auto; }"
    _wrapped: tuple[object, list[Content]] | None = None

    def rows(self, width: int) -> list[Content]:
        raise NotImplementedError

    def wrapped(self, width: int) -> list[Content]:
        """The result of `rows`, computed once for the layout and the repaint after a change."""
        key = (width, self.size.height, self.styles.auto_dimensions)
        if self._wrapped is None or self._wrapped[0] != key:
            self._wrapped = (key, self.rows(width))
        return self._wrapped[1]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        return len(self.wrapped(width))

    def render(self) -> Content:
        """All lines, for a selection by the user."""
        width = self.size.width
        return lines(*(row.truncate(width, ellipsis=True) for row in self.wrapped(width)))

    def render_line(self, y: int) -> Strip:
        if self.text_selection is not None:
            return super().render_line(y)
        width = self.size.width
        rows = self.wrapped(width)
        if y >= len(rows):
            return Strip.blank(width, self.visual_style.rich_style)
        return Visual.to_strips(self, rows[y].truncate(width, ellipsis=True), width, 1, self.visual_style)[0]

    def changed(self) -> None:
        """Repaint changed lines; lay out again only if the number of lines changed."""
        before = self._wrapped[1] if self._wrapped is not None else []
        self._wrapped = None
        rows = self.wrapped(self.size.width)
        if len(rows) != len(before):
            self.refresh(layout=self.styles.auto_dimensions)
            return
        pairs = enumerate(zip(rows, before, strict=True))
        regions = [Region(0, y, self.size.width, 1) for y, (new, old) in pairs if not new.is_same(old)]
        if regions:
            self.refresh(*regions)


class Paragraphs(WrappedLines):
    """Paragraphs with heads on the left and wrapped bodies; no text is cut."""

    parts: var[tuple[Paragraph, ...]] = var[tuple[Paragraph, ...]](())

    watch_parts = WrappedLines.changed

    def rows(self, width: int) -> list[Content]:
        return folded(self.parts, width)


class FixedLines(WrappedLines):
    """Lines from a function that is given once."""

    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self._rows = rows

    def rows(self, width: int) -> list[Content]:
        return self._rows(width)


def folded(paragraphs: Iterable[Paragraph], width: int) -> list[Content]:
    """Lines of paragraphs, wrapped to the width."""
    return [row for head, body in paragraphs for row in hanging_paragraph(head, body, width)]


def fact(name: str, *parts: Part) -> Paragraph:
    """A fact with its name; the names of several facts are in one column."""
    return line((f"{name:<{_LABEL}}", MUTED)), line(*parts)


def text(*parts: Part) -> Paragraph:
    """A paragraph without a head."""
    return Content(""), line(*parts)


def remarks(problems: Iterable[Problem]) -> tuple[Paragraph, ...]:
    """All problems as paragraphs, the worst first."""
    worst_first = sorted(problems, key=lambda problem: get_args(Severity).index(problem.severity))
    return tuple(remark(problem, problem.severity) for problem in worst_first)


def remark(problem: Problem, word: str) -> Paragraph:
    """A problem as a paragraph that starts with `word`."""
    label = severity_label(problem.severity)
    fix = f" {problem.fix}" if problem.fix else ""
    return line(state_mark(label)), line((f"{word}: ", STYLES[label.tone]), problem.reason, (fix, MUTED))


_SCROLL_KEYS: list[BindingType] = [
    Binding("down,j", "scroll_down", "Down", show=False, id="text.down", tooltip="Line down"),
    Binding("up,k", "scroll_up", "Up", show=False, id="text.up", tooltip="Line up"),
    Binding("pagedown", "page_down", "Page down", show=False, id="text.page-down", tooltip="Page down"),
    Binding("pageup", "page_up", "Page up", show=False, id="text.page-up", tooltip="Page up"),
    Binding("home,g", "scroll_home", "Start", show=False, id="text.start", tooltip="To the start"),
    Binding("end,G", "scroll_end", "End", show=False, id="text.end", tooltip="To the end"),
]


class Scroller(VerticalScroll, inherit_bindings=False):
    """A vertical scroll that also has the keys j and k."""

    ALLOW_MAXIMIZE = True
    BINDINGS: ClassVar[list[BindingType]] = _SCROLL_KEYS


class ScrolledRemarks(ScrollView, inherit_bindings=False):
    """All problems in a place of fixed size, so that a change of their number lays out nothing."""

    ALLOW_MAXIMIZE = True
    ALLOW_SELECT = True
    BINDINGS: ClassVar[list[BindingType]] = _SCROLL_KEYS
    DEFAULT_CSS = """
    ScrolledRemarks {
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
    }
    """

    problems: var[tuple[Problem, ...]] = var["tuple[Problem, ...]"](())
    _wrapped: tuple[object, list[Content]] | None = None
    _strips: list[Strip] | None = None

    def wrapped(self, width: int) -> list[Content]:
        """Lines for this width."""
        key = (width, self.problems)
        if self._wrapped is None or self._wrapped[0] != key:
            self._wrapped = key, folded(remarks(self.problems), width)
        return self._wrapped[1]

    def watch_problems(self) -> None:
        self._strips = None
        rows = len(self.wrapped(self._width))
        # An assignment would lay out the whole screen, but only the scrollbar depends on this value.
        self.set_reactive(ScrolledRemarks.virtual_size, Size(self._width, rows))
        self.vertical_scrollbar.window_virtual_size = rows
        self.scroll_to(y=min(self.scroll_y, self.max_scroll_y), animate=False, force=True)
        self.refresh()

    on_resize = watch_problems

    def render(self) -> Content:
        return lines(*self.wrapped(self._width))

    def render_line(self, y: int) -> Strip:
        if self._strips is None:
            self._strips = Visual.to_strips(self, self.render(), self._width, None, self.visual_style, pad=True)
        number = y + self.scroll_offset.y
        blank = Strip.blank(self._width, self.rich_style)
        return self._strips[number] if number < len(self._strips) and self.problems else blank

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002 (Textual's signature)
        self._strips = None
        self.refresh()

    def notify_style_update(self) -> None:
        self._strips = None
        super().notify_style_update()

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width
