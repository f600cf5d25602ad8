"""`Remarks`: what is to be said about a plan, worst first, each with glyph, word, reason and mend."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import var

from llmb_tui.plan.plan import Problem
from llmb_tui.ui import units
from llmb_tui.ui.text import MUTED, hanging, line
from llmb_tui.ui.widgets.folded import Folded


class Remarks(Folded):
    """Every problem, none cut."""

    problems: var[tuple[Problem, ...]] = var[tuple[Problem, ...]](())

    def watch_problems(self) -> None:
        """Show them."""
        self.changed()

    def rows(self, width: int) -> list[Content]:
        """Worst first."""
        return remarks(self.problems, width)


def remarks(problems: tuple[Problem, ...], width: int) -> list[Content]:
    """Problems as lines of this width."""
    rows = []
    for severity in units.SEVERITIES:
        for problem in problems:
            if problem.severity == severity:
                rows += remark(problem, severity, width)
    return rows


def remark(problem: Problem, word: str, width: int) -> list[Content]:
    """One problem under a word of its own."""
    glyph, style = units.SEVERITIES[problem.severity]
    fix = f" {problem.fix}" if problem.fix else ""
    return hanging(line((f"{glyph} ", style)), line((f"{word}: ", style), problem.reason, (fix, MUTED)), width)
