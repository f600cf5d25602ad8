"""Figures as the screens write them: the same digits and units everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llmb_tui.plan.plan import Severity
from llmb_tui.ui.text import MUTED

if TYPE_CHECKING:
    from llmb_tui.launch.run import RunProcedure

SEVERITIES: dict[Severity, tuple[str, str]] = {
    "error": ("✗", "$text-error"),
    "warning": ("!", "$text-warning"),
    "note": ("·", MUTED),
}
"""Glyph and style of a problem; the word itself stands beside them."""

PROCEDURES: dict[RunProcedure, str] = {"direct": "direct", "recipe": "published", "llmb-run": "llmb-run"}
"""How a run was started."""


def seconds(value: float) -> str:
    """A step time: `1.98 s`."""
    return f"{value:.3f} s" if value < 1 else f"{value:,.2f} s"


def band(low: float, high: float) -> str:
    """A range of step times: `1.90 – 2.06 s`."""
    return f"{seconds(low).removesuffix(' s')} – {seconds(high)}"


def tokens_per_s(value: float) -> str:
    """Tokens per second, whole: `529,584`."""
    return f"{value:,.0f}"


def percent(value: float, digits: int = 1) -> str:
    """A percentage: `39.3 %`."""
    return f"{value:.{digits}f} %"


def days(value: float | None) -> str:
    """Days for 1T tokens; proxies have none."""
    if value is None:
        return "none for a proxy"
    return f"{value:,.2f} days" if value < 10 else f"{value:,.1f} days"


def gpu_hours(value: float | None) -> str:
    """GPU-hours of the training steps."""
    return "not known" if value is None else f"{value:,.1f} GPU-hours"


def gigabytes(value: float) -> str:
    """Decimal GB."""
    return f"{value:,.1f} GB" if value < 100 else f"{value:,.0f} GB"


def nodes(count: int) -> str:
    """`1 node`, `8 nodes`."""
    return f"{count:,} node{'' if count == 1 else 's'}"


def optional(value: int | None) -> str:
    """A number of the table, or a dash where there is none."""
    return "–" if value is None else str(value)


def track(value: float, low: float, high: float, width: int) -> str:
    """The place of a value in its band, drawn: `├──────●───┤`."""
    inside = max(width - 2, 1)
    place = round((value - low) / (high - low) * (inside - 1)) if high > low else inside // 2
    return "├" + "".join("●" if cell == place else "─" for cell in range(inside)) + "┤"
