"""`CheckGroup`: what the checks of a preflight have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from llmb_tui.cluster.batch import NO_ANSWER, TIMED_OUT, Answer, run_batch
from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.failures import DeadlinePassed
from llmb_tui.cluster.session import login_node
from llmb_tui.language.text import clean_line, short_line
from llmb_tui.preflight.report import Check, Preflight

Answers = Mapping[str, Answer]
"""By the name of the command."""
CheckGroup = Callable[[Cluster, Preflight], Iterable[Check]]
"""Checks that are made together, of a cluster, when those before them are known. Raises what its questions raise."""

ADMINISTRATORS = "Ask the cluster's administrators."
_NOT_LIMITED_S = 5.0
_LONGEST = 400
"""Characters of what was found that are shown; some programs answer with megabytes."""


@dataclass(frozen=True, slots=True)
class CommandChecks:
    """A group whose facts come with one remote call."""

    commands: Mapping[str, str]
    """sh snippets by name, for `run_batch`."""
    evaluate: Callable[[Answers], Iterable[Check]]

    @property
    def deadline_s(self) -> float:
        """As long as they may take one after the other: what answers slowly answers all the same."""
        return _NOT_LIMITED_S + sum(map(int, re.findall(r"\blimited (\d+) ", "\n".join(self.commands.values()))))

    def __call__(self, cluster: Cluster, report: Preflight) -> Iterable[Check]:  # noqa: ARG002 - a `CheckGroup`'s
        """Its checks, by the answers to its commands; by none where a file system hung until the deadline."""
        try:
            return self.evaluate(run_batch(login_node(cluster), self.commands, self.deadline_s))
        except DeadlinePassed:
            return self.evaluate(dict.fromkeys(self.commands, NO_ANSWER))


def ok(name: str, title: str, found: str, needed: str) -> Check:
    """A check that passed."""
    return Check(name, title, "ok", found, needed, "")


def warning(name: str, title: str, found: str, needed: str, fix: str) -> Check:
    """A check that does not gate."""
    return Check(name, title, "warning", found, needed, fix)


def failed(name: str, title: str, found: str, needed: str, fix: str) -> Check:
    """A check that gates the next step."""
    return Check(name, title, "failed", found, needed, fix)


def unserved(name: str, title: str, found: str, needed: str, fix: str) -> Check:
    """A check that gates although what is asked for may be right: it is the cluster that fails."""
    return replace(failed(name, title, found, needed, fix), unserved=True)


def clean_check(check: Check) -> Check:
    """The check with its texts made harmless."""
    found = short_line(check.found[: 2 * _LONGEST], _LONGEST) or "no answer"
    # A value that is not plain is no name of an adapter.
    variables = tuple((name, value) for name, value in check.variables if clean_line(value) == value)
    return replace(
        check,
        found=found,
        needed=clean_line(check.needed),
        fix=clean_line(check.fix),
        bring=tuple(map(clean_line, check.bring)),
        variables=variables,
    )


def of_cards(gpu: str, names: Iterable[str]) -> str:
    """A warning's words on PCIe and NVL cards of a GPU type."""
    cards = " and ".join(dict.fromkeys(names))
    return (
        f"The published step times are of {gpu.upper()} SXM, and {cards} is slower: "
        "the verdict of a run on it will be WARN."
    )


def first_line(answer: Answer) -> str:
    """The first line of what a command said."""
    if answer.exit_code in (TIMED_OUT, NO_ANSWER.exit_code):
        return "no answer in time"
    return answer.text.strip().partition("\n")[0]
