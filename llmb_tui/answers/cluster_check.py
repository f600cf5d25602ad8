"""`cluster_check`: the checks of a cluster, and whether a run can start there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Grid, Remark, Remarks, Text
from llmb_tui.answers.table import Column, State, Table
from llmb_tui.language.states import check_label
from llmb_tui.language.text import plural
from llmb_tui.preflight.report import Check, Preflight

_CHECK: tuple[Column, ...] = (
    Column("state", lambda check: State(check.status, check_label(check.status))),
    Column("check", "title"),
    Column("found", "found"),
)


def cluster_check(cluster: str, report: Preflight) -> Answer:
    return Answer(
        f"Check of {cluster}",
        lambda: tuple(_blocks(cluster, report)),
        lambda: {
            "cluster": cluster,
            "passed": report.passed,
            "bring": list(report.bring),
            "checks": [*map(_document, report.checks)],
        },
    )


def summary(report: Preflight) -> str:
    """The number of checks of each status, and whether a run can start."""
    counts = Counter(check.status for check in report.checks)
    words = f"{counts['ok']} ok, {plural(counts['warning'], 'warning')}, {counts['failed']} failed"
    if report.bring:
        return f"{words}: ready once you have copied these to the cluster: {', '.join(report.bring)}"
    return f"{words}: {'ready' if report.passed else 'not ready'}"


def _blocks(cluster: str, report: Preflight) -> Iterator[Block]:
    yield Grid("", Table.by(_CHECK, report.checks))
    warnings = [check for check in report.checks if check.status == "warning"]
    if problems := (*report.failed, *warnings):
        yield Remarks(tuple(Remark(check_label(check.status), _needed(check)) for check in problems))
    yield Text(f"{cluster}: {summary(report)}")


def _needed(check: Check) -> str:
    return ": ".join(filter(None, (f"{check.title} (needed: {check.needed})", check.fix)))


def _document(check: Check) -> dict[str, object]:
    """A check as a JSON object, in which the fix keeps its older key `mend`."""
    document = asdict(check)
    del document["bring"], document["unserved"]  # in the outer object, and in the exit code
    return {("mend" if name == "fix" else name): value for name, value in document.items()}
