"""`TimeParts`: a picture of where a step's time goes. It is a model's answer, and says so."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import var

from llmb_tui.plan.plan import Breakdown
from llmb_tui.ui.text import MUTED, line
from llmb_tui.ui.widgets.folded import Folded

_BLOCKS: dict[str, tuple[str, str]] = {
    "compute": ("█", "$text-primary"),
    "communication": ("▓", "$text-warning"),
    "bubble": ("▒", "$text-error"),
    "optimizer": ("░", "$text-success"),
}
"""Block and style of each part: the blocks differ too, so that the picture needs no colour."""


class TimeParts(Folded):
    """One line of blocks under a title, then their meaning in words."""

    parts: var[Breakdown | None] = var[Breakdown | None](None)

    def watch_parts(self) -> None:
        """Show others."""
        self.changed()

    def rows(self, width: int) -> list[Content]:
        """The lines at this width; none where the model says nothing."""
        return time_parts(self.parts, width) if self.parts is not None else []


def time_parts(parts: Breakdown, width: int) -> list[Content]:
    """Title, blocks and legend. A part that is not nothing has a block at least."""
    seconds = {name: getattr(parts, f"{name}_s") for name in _BLOCKS}
    total = sum(seconds.values())
    cells = _cells([value / total for value in seconds.values()], width)
    bar = line(*((block * count, style) for (block, style), count in zip(_BLOCKS.values(), cells, strict=True)))
    rows = [line(("where the time goes", "bold"), (" (a model)", MUTED)), bar]
    words = [
        line((f"{block} ", style), f"{name} {_share(seconds[name] / total)}")
        for name, (block, style) in _BLOCKS.items()
    ]
    legend = words[0]
    for word in words[1:]:
        if legend.cell_length + 2 + word.cell_length <= width:
            legend = legend + line("  ") + word
        else:
            rows.append(legend)
            legend = word
    return [*rows, legend]


def _cells(shares: list[float], width: int) -> list[int]:
    """Whole cells for the shares, `width` together: the largest one gives what rounding the others took."""
    cells = [max(round(share * width), 1) if share > 0 else 0 for share in shares]
    cells[shares.index(max(shares))] += width - sum(cells)
    return cells


def _share(share: float) -> str:
    if 0 < share < 0.01:
        return "< 1 %"
    return "> 99 %" if 0.99 < share < 1 else f"{share * 100:.0f} %"
