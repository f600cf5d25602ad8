"""Confirmations before a suite is submitted, and the free nodes for its duration."""

from __future__ import annotations

from dataclasses import replace

from textual.content import Content
from textual.widgets import Static

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.language.quantities import gpu_hours, gpu_hours_digits
from llmb_tui.services import Services
from llmb_tui.suites.suite_plan import Nodes, SuitePlan, nodes_of
from llmb_tui.ui.dialogs import InputDialog
from llmb_tui.ui.text import MUTED, line, lines
from llmb_tui.ui.widgets.suite_texts import cost_parts, duration_parts


def submit_question(plan: SuitePlan, nodes: Nodes) -> Content:
    """Text of the confirmation before a suite is submitted."""
    suite = plan.suite
    return lines(
        line("Submit ", (suite.name, "bold"), f" on {suite.cluster}?"),
        Content(""),
        line(*cost_parts(plan)),
        line(*duration_parts(plan, replace(nodes, askable=False))),
        line(suite.submission_words),
        Content(""),
        line(("The cluster is checked before each run. Submitted runs continue after this program ends.", MUTED)),
    )


def capacity(services: Services, profile: ClusterProfile, prompter: Prompter | None = None) -> Nodes:
    """Query the nodes of a cluster; blocks. The result has no figures for a cluster without a login node.

    `prompter` answers the questions of a login; without it, a login that asks a question fails.

    Raises LlmbError.
    """
    if profile.no_login_node:
        return Nodes(askable=False)
    return nodes_of(services.clusters.inventory(profile, prompter).partitions, profile)


class ConfirmHours(InputDialog):
    """Confirmation above the user's limit of GPU-hours: the user types their number."""

    def __init__(self, question: Content, hours: float, limit: float) -> None:
        self._hours = gpu_hours_digits(hours)
        above = f"This exceeds your limit of {gpu_hours(limit)} (limits.suite_gpu_hours)."
        words = [
            question,
            line((above, "$text-warning")),
            line("To submit, type ", (self._hours, "bold"), " and press enter."),
        ]
        super().__init__("Submit", lines(*words))

    def submit(self, text: str) -> None:
        """Close the dialog if the text is the number of GPU-hours."""
        wanted = self._hours.replace(",", "")
        if text.replace(",", "").strip() in (wanted, wanted.removesuffix(".0")):
            self.dismiss(text)
        else:
            wrong = line((f"✗ Not submitted: type {self._hours} to confirm.", "$text-error"))
            self.query_one("#line-hint", Static).update(wrong)
