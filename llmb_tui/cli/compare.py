"""`compare`: runs side by side, and with `--nodes` which nodes they were slow with."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterable
from dataclasses import replace

from llmb_tui.analysis.comparability import PURPOSES
from llmb_tui.analysis.compare import Comparison, compare
from llmb_tui.analysis.difference import RunDifference, difference
from llmb_tui.analysis.result import RunResult
from llmb_tui.analysis.scaling import scaling_curves
from llmb_tui.analysis.slow_nodes import slow_nodes
from llmb_tui.answers.comparison import comparison
from llmb_tui.answers.nodes import nodes
from llmb_tui.cli.output import print_line, print_status, write
from llmb_tui.cli.user import user_services
from llmb_tui.errors import LlmbError
from llmb_tui.services import Services


def compare_verb(arguments: argparse.Namespace) -> int:
    """Compare runs; exit code 1 if they are not comparable."""
    services = user_services(arguments)
    if arguments.nodes:
        return _nodes(services, arguments)
    if arguments.cluster:
        raise LlmbError("--cluster goes with --nodes.", "Runs that are named have their cluster.", exit_code=1)
    if not arguments.runs:
        fix = "Name runs or suites; `llmb-tui jobs` lists runs. `--nodes` takes all where none is named."
        raise LlmbError("Nothing to compare was named.", fix=fix, exit_code=1)
    runs, against = (_results(services, names) for names in (arguments.runs, arguments.against))
    if twice := {run.id for run in runs} & {run.id for run in against}:
        raise LlmbError(f"Run {min(twice)} stands on both sides.", fix="Name it on one of them.", exit_code=1)
    compared = compare(runs, against, arguments.purpose)
    before, after = (scaling_curves(side, compared.measure) for side in (against, runs))
    curves = [*after, *(replace(curve, label=f"{curve.label}, against") for curve in before)]
    changed = _changed(services, compared, two_sides=bool(against))
    write(comparison(compared, curves, changed, with_texts=arguments.diff), arguments)
    _say_notices(services, compared.runs)
    if refusal := _refusal(compared, two_sides=bool(against)):
        print_status(refusal)
    return 1 if refusal else 0


def _refusal(compared: Comparison, *, two_sides: bool) -> str:
    """Why nothing is compared, and what to do; empty for a comparison. The answer has each reason in full."""
    if not compared.groups:
        return "None of these runs counts. Name runs that are done and have their log."
    if not compared.comparability.comparable:
        aspects = ", ".join(remark.aspect for remark in compared.comparability.refusals)
        fix = f"Name other runs, or with --for what is compared: {', '.join(PURPOSES)}."
        return f"These runs are not compared, because of their {aspects}. {fix}"
    if two_sides and not compared.contrasts:
        return "No run has a counterpart on the other side. Name runs of one configuration on both sides."
    return ""


def _nodes(services: Services, arguments: argparse.Namespace) -> int:
    if arguments.against or arguments.diff or arguments.purpose:
        raise LlmbError(
            "--nodes goes with no other flag of comparisons.", "It looks at runs by their nodes.", exit_code=1
        )
    runs = _results(services, arguments.runs) if arguments.runs else services.history.all()
    runs = tuple(run for run in runs if arguments.cluster in (None, run.cluster))
    answer = nodes(slow_nodes(runs), sorted({run.cluster for run in runs}))
    write(answer, arguments)
    if answer.copy and not arguments.json:
        (print_line if arguments.format == "table" else print_status)(answer.copy)
    _say_notices(services, runs)
    return 0


def _results(services: Services, names: Iterable[str]) -> tuple[RunResult, ...]:
    """Of runs, and of the runs of suites, each once. Raises LlmbError (exit code 1) for what is none, or has none."""
    ids: dict[str, None] = {}
    for name in names:
        found = services.suites.run_ids(name)
        if not found:
            raise LlmbError(f"Suite {name} has no run yet.", fix=f"`llmb-tui suite submit {name}` begins.", exit_code=1)
        ids.update(dict.fromkeys(found))
    return services.history.of(services.feed.records.record(services.runs.load(run_id)) for run_id in ids)


def _changed(services: Services, compared: Comparison, *, two_sides: bool) -> RunDifference | None:
    """Further differences between two runs, or between the newest runs of two sides; None for more runs."""
    pair = compared.runs
    if two_sides and compared.contrasts:
        pair = (compared.contrasts[0].base.runs[-1], compared.contrasts[0].other.runs[-1])
    if len(pair) != 2:
        return None
    before, after = (services.history.sources(services.history.result(run.id)) for run in pair)
    return difference(before, after)


def _say_notices(services: Services, runs: Iterable[RunResult]) -> None:
    """Print the notice of each cluster, such as `simulated`, to stderr."""
    clusters = {run.cluster for run in runs}
    with contextlib.suppress(LlmbError):  # `clusters` names a file that cannot be read
        for profile in services.clusters.profiles():
            if profile.notice and profile.name in clusters:
                print_status(f"{profile.name}: {profile.notice}")
