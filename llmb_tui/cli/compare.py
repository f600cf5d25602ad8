"""`compare`: runs side by side, and with `--nodes` what they say of the nodes they ran on."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from llmb_tui.analysis.compare import MEASURE_WORDS, Comparison, compare
from llmb_tui.analysis.difference import RunDifference, difference
from llmb_tui.analysis.document import comparison_document, nodes_document
from llmb_tui.analysis.likeness import PURPOSES
from llmb_tui.analysis.result import RunResult
from llmb_tui.analysis.scaling import ScalingCurve, scaling_curves
from llmb_tui.analysis.slow_nodes import RULE, slow_nodes
from llmb_tui.answers.comparison_tables import (
    CHANGE,
    NODE,
    POINT,
    RUN,
    comparison_table,
    contrasts_table,
    groups_table,
)
from llmb_tui.answers.table import Table
from llmb_tui.cli.output import print_as, print_json, print_line, say
from llmb_tui.cli.user import user_services
from llmb_tui.errors import Trouble
from llmb_tui.services import Services


def compare_verb(arguments: argparse.Namespace) -> int:
    """Hold runs against each other; 1 where they may not be compared."""
    services = user_services(arguments)
    if arguments.nodes:
        return _nodes(services, arguments)
    if arguments.cluster:
        raise Trouble("--cluster goes with --nodes.", "Runs that are named have their cluster.", exit_code=1)
    if not arguments.runs:
        fix = "Name runs or suites; `llmb-tui jobs` lists runs. `--nodes` takes all where none is named."
        raise Trouble("Nothing to compare was named.", fix=fix, exit_code=1)
    runs, against = (_results(services, names) for names in (arguments.runs, arguments.against))
    if twice := {run.id for run in runs} & {run.id for run in against}:
        raise Trouble(f"Run {min(twice)} stands on both sides.", fix="Name it on one of them.", exit_code=1)
    comparison = compare(runs, against, arguments.purpose)
    before, after = (scaling_curves(side, comparison.measure) for side in (against, runs))
    curves = [*after, *(replace(curve, label=f"{curve.label}, against") for curve in before)]
    changed = _changed(services, comparison, two_sides=bool(against))
    if arguments.json:
        print_json(comparison_document(comparison, curves, changed))
    elif arguments.format == "csv":
        print_as("csv", Table.by(RUN, comparison.runs))
    else:
        for title, table in _tables(comparison, curves, changed):
            print_line(f"### {title}\n" if arguments.format == "markdown" else title)
            print_as(arguments.format, table)
            print_line("")
    if arguments.diff and not arguments.json:
        _print_texts(changed)
    _say_notices(services, comparison.runs)
    _say_remarks(comparison)
    answered = comparison.contrasts if against else comparison.groups
    return 0 if comparison.likeness.comparable and answered else 1


def _nodes(services: Services, arguments: argparse.Namespace) -> int:
    if arguments.against or arguments.diff or arguments.purpose:
        raise Trouble(
            "--nodes goes with no other flag of comparisons.", "It looks at runs by their nodes.", exit_code=1
        )
    runs = _results(services, arguments.runs) if arguments.runs else services.history.all()
    runs = tuple(run for run in runs if arguments.cluster in (None, run.cluster))
    answer = slow_nodes(runs)
    if arguments.json:
        print_json(nodes_document(answer))
        return 0
    if answer.findings:
        print_as(arguments.format, Table.by(NODE, answer.findings))
    if answer.exclude:
        (print_line if arguments.format == "table" else say)(answer.exclude)
    _say_notices(services, runs)
    say(answer.words)
    say(RULE)
    return 0


def _results(services: Services, names: Iterable[str]) -> tuple[RunResult, ...]:
    """Of runs, and of the runs of suites, each once. Raises Trouble (exit code 1) for what is none, or has none."""
    ids: dict[str, None] = {}
    for name in names:
        found = services.suites.run_ids(name)
        if not found:
            raise Trouble(f"Suite {name} has no run yet.", fix=f"`llmb-tui suite submit {name}` begins.", exit_code=1)
        ids.update(dict.fromkeys(found))
    return services.history.of(services.feed.records.record(services.runs.load(run_id)) for run_id in ids)


def _changed(services: Services, comparison: Comparison, *, two_sides: bool) -> RunDifference | None:
    """What else differs, where two runs or two sides are held against each other: of the newest on either side."""
    pair = comparison.runs
    if two_sides and comparison.contrasts:
        pair = (comparison.contrasts[0].base.runs[-1], comparison.contrasts[0].other.runs[-1])
    if len(pair) != 2:
        return None
    before, after = (services.history.sources(services.history.result(run.id)) for run in pair)
    return difference(before, after)


def _tables(
    comparison: Comparison, curves: Sequence[ScalingCurve], changed: RunDifference | None
) -> Iterator[tuple[str, Table]]:
    """What is shown, each with its title."""
    yield f"Runs: {PURPOSES[comparison.likeness.purpose]}", comparison_table(comparison)
    if any(len(group.runs) > 1 for group in comparison.groups):
        yield f"Repeats: {MEASURE_WORDS[comparison.measure]}", groups_table(comparison)
    if comparison.contrasts:
        yield "Differences in the time that a GPU takes for a token", contrasts_table(comparison)
    for curve in curves if comparison.likeness.comparable else ():
        yield f"Scaling of {curve.label}, {curve.scaling}", Table.by(POINT, curve.points)
    if changed and changed.changes:
        yield f"Changed from run {changed.before} to run {changed.after}", Table.by(CHANGE, changed.changes)


def _print_texts(changed: RunDifference | None) -> None:
    if changed is None:
        say("--diff shows what differs between two runs, or two sides: name two, or use --against.")
        return
    for text in changed.texts:
        print_line("\n".join((text.name, *text.lines)))
        if text.cut:
            print_line(f"… {text.cut} more lines")
    if not changed.texts:
        say("Their scripts and files differ in nothing.")
    for words in changed.unknown:
        say(words)


def _say_notices(services: Services, runs: Iterable[RunResult]) -> None:
    """What has to be said wherever something of a cluster is shown: that it is simulated."""
    clusters = {run.cluster for run in runs}
    with contextlib.suppress(Trouble):  # `clusters` names a file that cannot be read
        for profile in services.clusters.profiles():
            if profile.notice and profile.name in clusters:
                say(f"{profile.name}: {profile.notice}")


def _say_remarks(comparison: Comparison) -> None:
    """What stands against the comparison, and what has to be known of it."""
    for remark in comparison.likeness.refusals:
        say(f"Not comparable: {remark.words}")
    for remark in comparison.likeness.warnings:
        say(f"Not alike: {remark.words}")
    for run_id, why in comparison.left_out:
        say(f"Run {run_id} is left out: {why}.")
    for label in comparison.unpaired:
        say(f"Nothing on the other side is like {label}.")
    if not comparison.groups:
        say("None of these runs can be compared.")
    elif not comparison.likeness.comparable:
        say(f"Leave runs out, or say with --for what is compared: {', '.join(PURPOSES)}.")
