"""`CheckGroup`: the form of a preflight's checks, and functions that make them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from llmb_tui.cluster.batch import NO_ANSWER, TIMED_OUT, Answer, run_batch
from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.failures import DeadlineError
from llmb_tui.cluster.session import login_node
from llmb_tui.language.text import clean_line, short_line
from llmb_tui.preflight.report import Check, Preflight

Answers = Mapping[str, Answer]
"""Answers by the name of the command."""
CheckGroup = Callable[[Cluster, Preflight], Iterable[Check]]
"""Checks that run together, after the earlier groups in the report. It raises the errors of the cluster."""

ADMINISTRATORS = "Ask the cluster's administrators."
_NOT_LIMITED_S = 5.0
_LONGEST = 400
"""Most characters of `found` that are shown; some programs print megabytes."""


@dataclass(frozen=True, slots=True)
class CommandChecks:
    """A group that needs one remote call."""

    commands: Mapping[str, str]
    """sh snippets by name, for `run_batch`."""
    evaluate: Callable[[Answers], Iterable[Check]]

    @property
    def deadline_s(self) -> float:
        """Sum of the commands' time limits, seconds: a slow answer is still an answer."""
        return _NOT_LIMITED_S + sum(map(int, re.findall(r"\blimited (\d+) ", "\n".join(self.commands.values()))))

    def __call__(self, cluster: Cluster, report: Preflight) -> Iterable[Check]:  # noqa: ARG002 - part of `CheckGroup`
        """Run the commands, and evaluate their answers; all answers are missing if a file system hung."""
        try:
            return self.evaluate(run_batch(login_node(cluster), self.commands, self.deadline_s))
        except DeadlineError:
            return self.evaluate(dict.fromkeys(self.commands, NO_ANSWER))


def ok(name: str, title: str, found: str, needed: str) -> Check:
    """Make a check that passed."""
    return Check(name, title, "ok", found, needed, "")


def warning(name: str, title: str, found: str, needed: str, fix: str) -> Check:
    """Make a check that does not block the next step."""
    return Check(name, title, "warning", found, needed, fix)


def failed(name: str, title: str, found: str, needed: str, fix: str) -> Check:
    """Make a check that blocks the next step."""
    return Check(name, title, "failed", found, needed, fix)


def unserved(name: str, title: str, found: str, needed: str, fix: str) -> Check:
    """Make a check that blocks the next step because of the cluster, although the request may be right."""
    return replace(failed(name, title, found, needed, fix), unserved=True)


def clean_check(check: Check) -> Check:
    """Return the check with clean and shortened texts."""
    found = short_line(check.found[: 2 * _LONGEST], _LONGEST) or "no answer"
    # A value with control characters is not the name of an adapter.
    variables = tuple((name, value) for name, value in check.variables if clean_line(value) == value)
    return replace(
        check,
        found=found,
        needed=clean_line(check.needed),
        fix=clean_line(check.fix),
        bring=tuple(map(clean_line, check.bring)),
        variables=variables,
    )


def card_warning(gpu: str, names: Iterable[str]) -> str:
    """Text of the warning about PCIe and NVL cards of a GPU type."""
    cards = " and ".join(dict.fromkeys(names))
    return (
        f"The published step times were measured on {gpu.upper()} SXM, and {cards} is slower: "
        "the verdict of a run on it will be WARN."
    )


def first_line(answer: Answer) -> str:
    """First line of a command's answer."""
    if answer.exit_code in (TIMED_OUT, NO_ANSWER.exit_code):
        return "no answer in time"
    return answer.text.strip().partition("\n")[0]


def last_line(answer: Answer) -> str:
    """Last line of a command's answer."""
    if answer.exit_code in (TIMED_OUT, NO_ANSWER.exit_code):
        return "no answer in time"
    return answer.text.strip().rpartition("\n")[2]
