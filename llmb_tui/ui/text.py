"""How text that is not a literal of ours enters a widget: cleaned, and never read as markup.

Textual's widgets parse square brackets as markup, so a path or a log line could lose words or end the program.
`Content` is shown as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from textual.app import App
from textual.content import Content
from textual.widgets import Static

from llmb_tui.errors import LlmbError
from llmb_tui.language.states import Label, Tone, severity_label
from llmb_tui.language.text import clean, clean_line

if TYPE_CHECKING:
    from llmb_tui.answers.writers.plot import CellKind
    from llmb_tui.answers.writers.plot import Part as ChartPart

MUTED = "dim"
"""Style of secondary text. (`$text-muted` is a CSS colour with an automatic part, which `Content` paints white.)"""

STYLES: dict[Tone, str] = {
    "plain": "",
    "quiet": MUTED,
    "active": "$text-accent",
    "good": "$text-success",
    "warning": "$text-warning",
    "bad": "$text-error",
}

CELL_STYLES: dict[CellKind, str] = {
    "axis": MUTED,
    "band": "dim $text-success",
    "line": "bold $text",
    "outside": "bold $text-warning",
    "now": "bold $text-accent",
    "blank": "",
}
"""Styles of the parts of a chart."""

Part = str | tuple[str, str] | Content


def plain(text: str) -> Content:
    """Text of any origin, lines kept."""
    return Content(clean(text))


def line(*parts: Part) -> Content:
    """One line from texts, (text, style) pairs and what was made of such, each shown as it is."""
    return Content.assemble(*map(_clean_part, parts))


def state_part(label: Label) -> tuple[str, str]:
    """Glyph and word of a state, in the style of its tone."""
    return label.text, STYLES[label.tone]


def state_mark(label: Label) -> tuple[str, str]:
    """Glyph of a state, in the style of its tone, with a blank after it."""
    return f"{label.glyph} ", STYLES[label.tone]


ERROR_MARK = state_mark(severity_label("error"))
"""Before what failed or is not possible."""


def _clean_part(part: Part) -> Part:
    if isinstance(part, Content):
        return part
    return clean_line(part) if isinstance(part, str) else (clean_line(part[0]), part[1])


def lines(*rows: Content) -> Content:
    """Rows under each other."""
    return Content("\n").join(rows)


def heading(left: Content, notice: str, width: int, state: Content | None = None) -> Content:
    """The line at the top; what a cluster wants said, such as `simulated`, is never cut, nor is a `state` behind."""
    right = line((f" {notice} ", "reverse"), " ") if notice else Content("")
    room = max(width - right.cell_length - bool(notice), 0)
    state = state or Content("")
    left = left.truncate(max(room - state.cell_length, 0), ellipsis=True) + state
    if not notice:
        return left
    return left + " " * (room - left.cell_length + 1) + right


def notices_words(notices: Iterable[tuple[str, str]]) -> str:
    """What has to be said of clusters, (name, notice), as a heading says it; empty for nothing."""
    return " · ".join(f"{cluster}: {notice}" for cluster, notice in notices if notice)


def painted(rows: Iterable[Iterable[ChartPart]]) -> Content:
    """The rows of a chart with their styles."""
    return lines(*(Content.assemble(*((text, CELL_STYLES[kind]) for text, kind in row)) for row in rows))


def hanging(prefix: Content, body: Content, width: int) -> list[Content]:
    """A paragraph whose lines after the first stand under the first word of its body."""
    indent = Content(" " * prefix.cell_length)
    wrapped = body.wrap(max(width - prefix.cell_length, 10))
    return [(indent if at else prefix) + part.rstrip() for at, part in enumerate(wrapped)]


def error_content(error: LlmbError) -> Content:
    """An error as its three parts: what happened, why, what to do."""
    parts = [Content.styled(clean(error.what), "bold")]
    parts += [plain(part) for part in (error.why, error.fix) if part]
    return lines(*parts)


def error_line(error: LlmbError) -> str:
    """The same three parts on one line."""
    return " ".join(filter(None, (error.what, error.why, error.fix)))


def set_text(static: Static, text: Content | str) -> None:
    """Show a text, unless it is what is shown: each update lays out the screen."""
    if static.content != text:
        static.update(text)


def notify(app: App[Any], text: str, severity: Literal["information", "warning", "error"] = "information") -> None:
    """A toast."""
    app.notify(clean(text), severity=severity, markup=False)
