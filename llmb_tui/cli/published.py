"""The published procedure for the verbs: what stands against it, and the command that starts it."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from llmb_tui.cli.arguments import selection_mapping
from llmb_tui.cli.output import print_json, say
from llmb_tui.cli.planning import launchable
from llmb_tui.errors import Trouble
from llmb_tui.launch.published.command import PublishedCommand, differences
from llmb_tui.launch.published.paths import procedure_of
from llmb_tui.plan.plan import Plan
from llmb_tui.services import Services


def ask_for_selection(arguments: argparse.Namespace) -> None:
    """Raise Trouble where the published procedure is asked about without a recipe, on which it depends."""
    if arguments.procedure == "recipe" and not selection_mapping(arguments):
        raise Trouble(
            "The published procedure of which recipe?",
            "What it needs depends on the recipe and the GPU type.",
            "Add the selection: -w, -s, --gpu, -d and --scale.",
            exit_code=1,
        )


def possible(services: Services, arguments: argparse.Namespace) -> Plan:
    """The plan of the selection flags. Raises Trouble when it cannot be launched by the procedure that was asked for.

    What the published procedure does otherwise than asked for, and is no error, is said.
    """
    made = launchable(services, arguments)
    if arguments.procedure == "recipe":
        _command(services, arguments.cluster, made)
    return made


def print_command(services: Services, arguments: argparse.Namespace) -> None:
    """The command to the letter; what is to be known of it is said beside."""
    made = launchable(services, arguments)
    command = _command(services, arguments.cluster, made)
    recipe = services.catalog().recipe(made.selection.workload, made.selection.release)
    others, notes = differences(recipe), procedure_of(recipe).notes
    if arguments.json:
        problems = [asdict(problem) for problem in command.problems]
        known = {"problems": problems, "differences": others, "notes": notes}
        print_json({"procedure": "recipe", "command": command.text, "results": command.results, **known})
        return
    for words in (*others, *notes):
        say(f"note: {words}")
    print(command.text)


def _command(services: Services, cluster: str, made: Plan) -> PublishedCommand:
    command = services.published(cluster, made)
    lines = [(one.severity, f"{one.field}: {one.reason} {one.fix}".rstrip()) for one in command.problems]
    errors = [line for severity, line in lines if severity == "error"]
    if errors:
        raise Trouble("The published procedure cannot do this.", "\n".join(errors), exit_code=1)
    for _, line in lines:
        say(line)
    return command
