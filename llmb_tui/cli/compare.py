"""`compare`: runs side by side, or with `--nodes` the nodes on which runs were slow."""

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
        what = "`compare` takes --cluster only with --nodes."
        raise LlmbError(what, "Each named run has its own cluster.", "Leave --cluster out.", exit_code=1)
    if not arguments.runs:
        fix = "Name runs or suites (`llmb-tui jobs` lists the runs), or add --nodes, which takes all runs."
        raise LlmbError("No run to compare is named.", fix=fix, exit_code=1)
    runs, against = (_results(services, names) for names in (arguments.runs, arguments.against))
    if shared := {run.id for run in runs} & {run.id for run in against}:
        raise LlmbError(f"Run {min(shared)} is on both sides.", fix="Name it on one side only.", exit_code=1)
    result = compare(runs, against, arguments.purpose)
    before, after = (scaling_curves(side, result.measure) for side in (against, runs))
    curves = [*after, *(replace(curve, label=f"{curve.label}, against") for curve in before)]
    changed = _changed(services, result, two_sides=bool(against))
    write(comparison(result, curves, changed, with_texts=arguments.diff), arguments)
    _print_notices(services, result.runs)
    if refusal := _refusal(result, two_sides=bool(against)):
        print_status(refusal)
    return 1 if refusal else 0


def _refusal(result: Comparison, *, two_sides: bool) -> str:
    """Short reason and fix if nothing is compared; empty for a comparison. The answer has each reason in full."""
    if not result.groups:
        return "Nothing to compare: none of these runs is valid. Name runs that are done and have their log."
    if not result.comparability.comparable:
        aspects = ", ".join(remark.aspect for remark in result.comparability.refusals)
        fix = f"Name other runs, or state with --for what may differ: {', '.join(PURPOSES)}."
        return f"These runs are not compared, because of their {aspects}. {fix}"
    if two_sides and not result.contrasts:
        return "No run has a counterpart on the other side. Name runs of the same configuration on both sides."
    return ""


def _nodes(services: Services, arguments: argparse.Namespace) -> int:
    if arguments.against or arguments.diff or arguments.purpose:
        raise LlmbError(
            "`compare --nodes` takes no --against, --diff or --for.",
            "It compares nodes, not runs.",
            "Leave those flags out.",
            exit_code=1,
        )
    runs = _results(services, arguments.runs) if arguments.runs else services.history.all()
    runs = tuple(run for run in runs if arguments.cluster in (None, run.cluster))
    answer = nodes(slow_nodes(runs), sorted({run.cluster for run in runs}))
    write(answer, arguments)
    if answer.copy and not arguments.json:
        (print_line if arguments.format == "table" else print_status)(answer.copy)
    _print_notices(services, runs)
    return 0


def _results(services: Services, names: Iterable[str]) -> tuple[RunResult, ...]:
    """Results of runs and of suites' runs, each once. Raises LlmbError (exit code 1) for an unknown or empty name."""
    ids: dict[str, None] = {}
    for name in names:
        run_ids = services.suites.run_ids(name)
        if not run_ids:
            fix = f"`llmb-tui suite submit {name}` submits them."
            raise LlmbError(f"Suite {name} has no runs yet.", fix=fix, exit_code=1)
        ids.update(dict.fromkeys(run_ids))
    return services.history.of(services.feed.records.record(services.runs.load(run_id)) for run_id in ids)


def _changed(services: Services, result: Comparison, *, two_sides: bool) -> RunDifference | None:
    """Further differences between two runs, or between the newest runs of two sides; None for more runs."""
    pair = result.runs
    if two_sides and result.contrasts:
        pair = (result.contrasts[0].base.runs[-1], result.contrasts[0].other.runs[-1])
    if len(pair) != 2:
        return None
    before, after = (services.history.sources(services.history.result(run.id)) for run in pair)
    return difference(before, after)


def _print_notices(services: Services, runs: Iterable[RunResult]) -> None:
    """Print the notice of each cluster, such as `simulated`, to stderr."""
    clusters = {run.cluster for run in runs}
    with contextlib.suppress(LlmbError):  # `clusters` reports a file that cannot be read
        for profile in services.clusters.profiles():
            if profile.notice and profile.name in clusters:
                print_status(f"{profile.name}: {profile.notice}")
