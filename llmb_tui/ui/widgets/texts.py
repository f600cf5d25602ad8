"""Text that is folded to the width it is given, or scrolled through.

A key must be answered within a frame, and most keys change a few lines of what is on the screen: only those are
painted again.
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
from llmb_tui.ui.text import MUTED, STYLES, Part, hanging, line, lines, state_mark

if TYPE_CHECKING:
    from llmb_tui.plan.plan import Problem

_LABEL = 13
Paragraph = tuple[Content, Content]
"""Its head, and the body that is folded beside it."""
Rows = Callable[[int], list[Content]]
"""The lines of a text at a width."""


def label(text: str, hint: str = "", *, first: bool = False, id: str | None = None) -> Static:  # noqa: A002 - Textual's
    """The name of a field, with a hint; the `first` one has no blank line above it. Literals only.

    A class says so and not `:first-child`, by which Textual styles every label again whenever something is mounted.
    """
    words = f"[b]{text}[/b]  [dim]{hint}[/]" if hint else f"[b]{text}[/b]"
    return Static(words, classes="label first" if first else "label", id=id)


class WrappedLines(Widget):
    """Subclasses say what the lines are, and call `changed` when they are others."""

    DEFAULT_CSS = "WrappedLines { height: auto; }"
    _wrapped: tuple[object, list[Content]] | None = None

    def rows(self, width: int) -> list[Content]:
        """The lines at this width."""
        raise NotImplementedError

    def wrapped(self, width: int) -> list[Content]:
        """`rows`, made once for the layout and the paint that follow a change."""
        key = (width, self.size.height, self.styles.auto_dimensions)
        if self._wrapped is None or self._wrapped[0] != key:
            self._wrapped = (key, self.rows(width))
        return self._wrapped[1]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        return len(self.wrapped(width))

    def render(self) -> Content:
        """All of it, as a person selects it."""
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
        """Paint what is another now, and lay out again only where the number of lines is."""
        before = self._wrapped[1] if self._wrapped is not None else []
        self._wrapped = None
        rows = self.wrapped(self.size.width)
        if len(rows) != len(before):
            self.refresh(layout=self.styles.auto_dimensions)
            return
        pairs = enumerate(zip(rows, before, strict=True))
        others = [Region(0, y, self.size.width, 1) for y, (new, old) in pairs if not new.is_same(old)]
        if others:
            self.refresh(*others)


class Paragraphs(WrappedLines):
    """Heads left, bodies folded beside them; none is cut."""

    parts: var[tuple[Paragraph, ...]] = var[tuple[Paragraph, ...]](())

    watch_parts = WrappedLines.changed

    def rows(self, width: int) -> list[Content]:
        return folded(self.parts, width)


class FixedLines(WrappedLines):
    """Lines that are given once, for any width."""

    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self._rows = rows

    def rows(self, width: int) -> list[Content]:
        return self._rows(width)


def folded(paragraphs: Iterable[Paragraph], width: int) -> list[Content]:
    """Paragraphs as lines of this width."""
    return [row for head, body in paragraphs for row in hanging(head, body, width)]


def fact(name: str, *parts: Part) -> Paragraph:
    """A named fact: the names of several stand in one column."""
    return line((f"{name:<{_LABEL}}", MUTED)), line(*parts)


def text(*parts: Part) -> Paragraph:
    """A paragraph without a head."""
    return Content(""), line(*parts)


def remarks(problems: Iterable[Problem]) -> tuple[Paragraph, ...]:
    """Every problem, the worst first."""
    worst_first = sorted(problems, key=lambda problem: get_args(Severity).index(problem.severity))
    return tuple(remark(problem, problem.severity) for problem in worst_first)


def remark(problem: Problem, word: str) -> Paragraph:
    """One problem under a word of its own."""
    label = severity_label(problem.severity)
    fix = f" {problem.fix}" if problem.fix else ""
    return line(state_mark(label)), line((f"{word}: ", STYLES[label.tone]), problem.reason, (fix, MUTED))


_SCROLL_KEYS: list[BindingType] = [
    Binding("down,j", "scroll_down", "Down", show=False, id="text.down", tooltip="A line down"),
    Binding("up,k", "scroll_up", "Up", show=False, id="text.up", tooltip="A line up"),
    Binding("pagedown", "page_down", "Page down", show=False, id="text.page-down", tooltip="A page down"),
    Binding("pageup", "page_up", "Page up", show=False, id="text.page-up", tooltip="A page up"),
    Binding("home,g", "scroll_home", "Start", show=False, id="text.start", tooltip="To the start"),
    Binding("end,G", "scroll_end", "End", show=False, id="text.end", tooltip="To the end"),
]


class Scroller(VerticalScroll, inherit_bindings=False):
    """A vertical scroll with j and k beside the arrows."""

    ALLOW_MAXIMIZE = True
    BINDINGS: ClassVar[list[BindingType]] = _SCROLL_KEYS


class ScrolledRemarks(ScrollView, inherit_bindings=False):
    """Every problem, in a place of fixed size: however many there are, nothing is laid out."""

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
        """The lines at this width."""
        key = (width, self.problems)
        if self._wrapped is None or self._wrapped[0] != key:
            self._wrapped = key, folded(remarks(self.problems), width)
        return self._wrapped[1]

    def watch_problems(self) -> None:
        self._strips = None
        rows = len(self.wrapped(self._width))
        # Assigned, it would have the whole screen laid out; the scrollbar is all that depends on it.
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
