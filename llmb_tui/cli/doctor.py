"""`doctor`: the preflight of a cluster, as a table or as JSON; and the same before a submission."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict

from llmb_tui.cli.arguments import selection_mapping
from llmb_tui.cli.output import print_json, print_line, say
from llmb_tui.cli.published import ask_for_selection, possible
from llmb_tui.cli.user import user_services
from llmb_tui.cluster.preflight.report import Check, Preflight
from llmb_tui.errors import Trouble
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import Procedure
from llmb_tui.services import Services

_TITLE = 20


def doctor_verb(arguments: argparse.Namespace) -> int:
    """What is found on a cluster, what is needed, and how to mend the difference; 2 when a check fails."""
    ask_for_selection(arguments)
    services = user_services()
    made = possible(services, arguments) if selection_mapping(arguments) else None
    if not arguments.json:
        report = services.preflight(arguments.cluster, made, teller(print_line), arguments.procedure)
        print_line(f"{arguments.cluster}: {summary(report)}")
        return 0 if report.passed else 2
    tell = teller(say) if sys.stderr.isatty() else None
    report = services.preflight(arguments.cluster, made, tell, arguments.procedure)
    checks = [asdict(check) for check in report.checks]
    print_json({"cluster": arguments.cluster, "passed": report.passed, "checks": checks})
    return 0 if report.passed else 2


def check(
    services: Services, cluster: str, made: Plan, tell: Callable[[str], None], procedure: Procedure = "direct"
) -> None:
    """Preflight: tell each check as soon as it is made. Raises `Trouble` when one fails."""
    report = services.preflight(cluster, made, teller(tell), procedure)
    failed = [one for one in report.checks if one.status == "failed"]
    if failed:
        raise Trouble(
            f"{cluster} is not ready for this run.",
            "\n".join(f"{one.title}: found {one.found}, needed {one.needed}." for one in failed),
            "\n".join(one.mend for one in failed if one.mend),
        )


def teller(tell: Callable[[str], None]) -> Callable[[Preflight], None]:
    """What tells each check of a growing report once."""
    told = 0

    def progress(report: Preflight) -> None:
        nonlocal told
        for one in report.checks[told:]:
            for line in check_lines(one):
                tell(line)
        told = len(report.checks)

    return progress


def check_lines(one: Check) -> Iterator[str]:
    """Status, name and what was found; where that is not enough, what is needed and how to mend it."""
    yield f"  {one.status:7}  {one.title:{_TITLE}}  {one.found}"
    if one.status != "ok":
        yield f"  {'':7}  {'needed':>{_TITLE}}  {one.needed}"
        yield f"  {'':7}  {'mend':>{_TITLE}}  {one.mend}"


def summary(report: Preflight) -> str:
    """How many checks came out how."""
    counts = {status: sum(one.status == status for one in report.checks) for status in ("ok", "warning", "failed")}
    words = f"{counts['ok']} ok, {counts['warning']} warnings, {counts['failed']} failed"
    return f"{words}: {'ready' if report.passed else 'not ready'}"
