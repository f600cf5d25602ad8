"""The request that the flags make: what, where and how; and what stands against it, for the verbs."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import asdict

from llmb_tui.cli.flags import selection_mapping
from llmb_tui.cli.output import print_json, print_line, print_status
from llmb_tui.cli.planning import launchable
from llmb_tui.errors import LlmbError
from llmb_tui.launch.prepared import LaunchPreview
from llmb_tui.launch.procedure_loader import preview
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.launch.run import Run
from llmb_tui.plan.plan import Problem
from llmb_tui.plan.selection import DEFAULT_PROCEDURE, FIELDS, Value, is_given
from llmb_tui.request import RunRequest
from llmb_tui.services import Services


def ask_for_selection(arguments: argparse.Namespace) -> None:
    """Raise LlmbError where a procedure is asked about without a recipe, on which it depends."""
    if arguments.procedure != DEFAULT_PROCEDURE and not selection_mapping(arguments):
        raise LlmbError(
            f"{PROCEDURES[arguments.procedure].title} of which recipe?",
            "What they need depends on the recipe and the GPU type.",
            "Add the selection: -w, -s, --gpu, -d and --scale.",
            exit_code=1,
        )


def request_of(services: Services, arguments: argparse.Namespace) -> RunRequest:
    """What the flags ask for. Raises LlmbError where it cannot be launched by the procedure that was asked for.

    What that does otherwise than asked for, and is no error, is said.
    """
    request = services.request(arguments.cluster, launchable(services, arguments), arguments.procedure)
    problems = preview(request).problems
    errors = [one.words for one in problems if one.severity == "error"]
    if errors:
        raise LlmbError(f"{PROCEDURES[request.procedure].title} cannot do this.", "\n".join(errors), exit_code=1)
    say_problems(problems)
    return request


def fill_from(run: Run, arguments: argparse.Namespace) -> None:
    """Take what a run was for every flag of `submit` that is not given, and say what is otherwise."""
    chosen, changed = run.plan.selection, selection_mapping(arguments)
    then: dict[str, Value] = {"workload": chosen.recipe_id}
    for name, field in FIELDS.items():
        if field.has_flag:
            value = then.get(name, chosen.value(name))
            if not getattr(arguments, name) and is_given(value):
                setattr(arguments, name, value if value is True else str(value))
    procedure = PROCEDURES[run.procedure]
    if arguments.procedure is None and not procedure.starts_runs:
        print_status(f"Run {run.id} was started by {procedure.title}; this one is not, and need not be like it.")
    elif arguments.procedure is None:
        arguments.procedure = run.procedure if procedure.flag_help else DEFAULT_PROCEDURE
    if arguments.cluster is None:
        arguments.cluster = run.cluster
    elif arguments.cluster != run.cluster:
        changed["cluster"] = arguments.cluster
    otherwise = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in changed.items())
    print_status(f"As run {run.id}{otherwise and f', but for {otherwise}'}.")


def say_problems(problems: Iterable[Problem]) -> None:
    """What a person should know before GPUs are spent."""
    for one in problems:
        if one.severity == "warning":
            print_status(one.words)


def print_command(request: RunRequest, launch: LaunchPreview, *, as_json: bool) -> None:
    """The command to the letter; what is to be known of it is said beside."""
    if as_json:
        document = asdict(launch)
        known = {name: document[name] for name in ("command", "results", "problems", "differences", "notes")}
        print_json({"procedure": request.procedure, **known})
        return
    for words in (*launch.differences, *launch.notes):
        print_status(f"note: {words}")
    print_line(launch.command)
