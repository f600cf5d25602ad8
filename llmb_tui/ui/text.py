"""Content for widgets from text of any origin: cleaned, and never parsed as markup.

Textual's widgets parse square brackets in a string as markup, so a path or a log line could lose words or crash the
program. They show `Content` unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from textual.app import App
from textual.content import Content
from textual.widgets import Static

from llmb_tui.errors import LlmbError
from llmb_tui.language.states import Label, Method, Tone, severity_label
from llmb_tui.language.text import clean, clean_line

if TYPE_CHECKING:
    from llmb_tui.answers.writers.plot import CellKind
    from llmb_tui.answers.writers.plot import Part as ChartPart

MUTED = "$muted"
"""Style of secondary text. (`$text-muted` is a CSS colour with an automatic part, which `Content` paints white.)"""

STYLES: dict[Tone, str] = {
    "plain": "",
    "quiet": MUTED,
    "active": "$text-accent",
    "good": "$text-success",
    "warning": "$text-warning",
    "bad": "$text-error",
}

BADGES: dict[Tone, str] = {
    "good": "bold $ink on $good-fill",
    "warning": "bold $ink on $warning-fill",
    "bad": "bold $ink on $danger-fill",
}
"""Styles of a final verdict, the most prominent part of its screen."""

TINTED_BADGES: dict[Tone, str] = {
    "good": "bold $text-success on $good-tint",
    "warning": "bold $text-warning on $warning-tint",
    "bad": "bold $text-error on $danger-tint",
}
"""Styles of a verdict that may still change."""

CELL_STYLES: dict[CellKind, str] = {
    "axis": MUTED,
    "band": "dim $expected",
    "published": "bold $source",
    "expected": "$expected",
    "measured": "bold $measured",
    "outside": "bold $text-warning",
    "now": "bold $text-accent",
    "blank": "",
}
"""Styles of the parts of a chart."""


def origin_style(method: Method) -> str:
    """Style of an expected step time's origin: published or estimated."""
    return "$source" if method in ("published", "other_release") else "$expected"


Part = str | tuple[str, str] | Content


def plain(text: str) -> Content:
    """Text of any origin, with its line breaks."""
    return Content(clean(text))


def line(*parts: Part) -> Content:
    """One line from texts, (text, style) pairs and contents; no text is parsed as markup."""
    return Content.assemble(*map(_clean_part, parts))


def state_part(label: Label) -> tuple[str, str]:
    """Glyph and word of a state, with the style of its tone."""
    return label.text, STYLES[label.tone]


def state_mark(label: Label) -> tuple[str, str]:
    """Glyph of a state and a space, with the style of its tone."""
    return f"{label.glyph} ", STYLES[label.tone]


def badge(label: Label, *, final: bool) -> Content:
    """Glyph and word of a verdict on a surface of its own."""
    return Content.styled(f" {label.text} ", (BADGES if final else TINTED_BADGES)[label.tone])


ERROR_MARK = state_mark(severity_label("error"))
"""Mark of an error or an impossible choice."""


def _clean_part(part: Part) -> Part:
    if isinstance(part, Content):
        return part
    return clean_line(part) if isinstance(part, str) else (clean_line(part[0]), part[1])


def lines(*rows: Content) -> Content:
    """Join lines."""
    return Content("\n").join(rows)


def heading(left: Content, notice: str, width: int, state: Content | None = None) -> Content:
    """The top line of a screen. Only `left` is cut to the width, not the notice (`simulated`) or the `state`."""
    right = line((f" {notice} ", "reverse"), " ") if notice else Content("")
    room = max(width - right.cell_length - bool(notice), 0)
    state = state or Content("")
    left = left.truncate(max(room - state.cell_length, 0), ellipsis=True) + state
    if not notice:
        return left
    return left + " " * (room - left.cell_length + 1) + right


def notices_text(notices: Iterable[tuple[str, str]]) -> str:
    """Notices of clusters, given as (name, notice), for a heading; empty if there are none."""
    return " · ".join(f"{cluster}: {notice}" for cluster, notice in notices if notice)


def chart_content(rows: Iterable[Iterable[ChartPart]]) -> Content:
    """The rows of a chart as content with styles."""
    return lines(*(Content.assemble(*((text, CELL_STYLES[kind]) for text, kind in row)) for row in rows))


def hanging_paragraph(prefix: Content, body: Content, width: int) -> list[Content]:
    """Wrap a paragraph, and indent its further lines to the start of the body."""
    indent = Content(" " * prefix.cell_length)
    wrapped = body.wrap(max(width - prefix.cell_length, 10))
    return [(indent if index else prefix) + part.rstrip() for index, part in enumerate(wrapped)]


def error_content(error: LlmbError) -> Content:
    """An error as lines: what failed, why, what to do."""
    parts = [Content.styled(clean(error.what), "bold")]
    parts += [plain(part) for part in (error.why, error.fix) if part]
    return lines(*parts)


def error_line(error: LlmbError) -> str:
    """An error on one line: what failed, why, what to do."""
    return " ".join(filter(None, (error.what, error.why, error.fix)))


def set_text(static: Static, text: Content | str) -> None:
    """Set the text of a widget if it differs: each update causes a layout of the screen."""
    if static.content != text:
        static.update(text)


def notify(app: App[Any], text: str, severity: Literal["information", "warning", "error"] = "information") -> None:
    """Show a toast."""
    app.notify(clean(text), severity=severity, markup=False)
