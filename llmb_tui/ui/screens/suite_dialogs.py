"""The dialogs before a suite is submitted: the one yes, with the nodes that it counts on."""

from __future__ import annotations

from dataclasses import replace

from textual.content import Content
from textual.widgets import Static

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.language.quantities import gpu_hours, gpu_hours_digits
from llmb_tui.services import Services
from llmb_tui.suites.suite_plan import Nodes, SuitePlan, nodes_of
from llmb_tui.ui.dialogs import AskLine
from llmb_tui.ui.text import MUTED, line, lines
from llmb_tui.ui.widgets.suite_texts import cost, takes


def submit_question(plan: SuitePlan, nodes: Nodes) -> Content:
    """What one says yes to."""
    suite = plan.suite
    return lines(
        line("Submit ", (suite.name, "bold"), f" on {suite.cluster}?"),
        Content(""),
        line(*cost(plan)),
        line(*takes(plan, replace(nodes, askable=False))),
        line(suite.conduct),
        Content(""),
        line(("The cluster is checked for every run first. What is sent goes on when this program ends.", MUTED)),
    )


def capacity(services: Services, profile: ClusterProfile, prompter: Prompter | None = None) -> Nodes:
    """In a thread. Nothing is known where it has no partitions. `prompter` answers what connecting asks.

    Raises LlmbError.
    """
    if profile.no_login_node:
        return Nodes(askable=False)
    return nodes_of(services.clusters.inventory(profile, prompter).partitions, profile)


class TypeHours(AskLine):
    """A yes for more GPU-hours than the operator's own limit: their number is typed."""

    def __init__(self, question: Content, hours: float, limit: float) -> None:
        self._hours = gpu_hours_digits(hours)
        above = f"This is above your limit of {gpu_hours(limit)} (limits.suite_gpu_hours)."
        words = [
            question,
            line((above, "$text-warning")),
            line("Type the number ", (self._hours, "bold"), " and enter to submit it."),
        ]
        super().__init__("Submit", lines(*words))

    def take(self, text: str) -> None:
        """Another number is no yes."""
        wanted = self._hours.replace(",", "")
        if text.replace(",", "").strip() in (wanted, wanted.removesuffix(".0")):
            self.dismiss(text)
        else:
            wrong = line((f"✗ That is not {self._hours}: nothing was sent.", "$text-error"))
            self.query_one("#line-hint", Static).update(wrong)
