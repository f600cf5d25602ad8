"""The run request of the command line's flags, and its problems."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import asdict

from llmb_tui.cli.flags import selection_mapping
from llmb_tui.cli.output import print_json, print_line, print_status
from llmb_tui.cli.planning import launchable_plan
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
    """Raise LlmbError if `--procedure` is given without a selection, on which its requirements depend."""
    if arguments.procedure != DEFAULT_PROCEDURE and not selection_mapping(arguments):
        raise LlmbError(
            "No recipe is named.",
            f"The requirements of {PROCEDURES[arguments.procedure].title} depend on the recipe and the GPU type.",
            "Add the selection: -w, -s, --gpu, -d and --scale.",
            exit_code=1,
        )


def request_from_flags(services: Services, arguments: argparse.Namespace) -> RunRequest:
    """Request of the flags. Raises LlmbError if the launch method cannot launch it.

    Prints the launch method's warnings, for example about settings that it ignores.
    """
    request = services.request(arguments.cluster, launchable_plan(services, arguments), arguments.procedure)
    problems = preview(request).problems
    errors = [problem.words for problem in problems if problem.severity == "error"]
    if errors:
        raise LlmbError(f"{PROCEDURES[request.procedure].title} cannot launch this.", "\n".join(errors), exit_code=1)
    print_warnings(problems)
    return request


def fill_from_run(run: Run, arguments: argparse.Namespace) -> None:
    """Fill the flags of `submit` that were not given from a run, and print the differences from it."""
    chosen, changed = run.plan.selection, selection_mapping(arguments)
    renamed: dict[str, Value] = {"workload": chosen.recipe_id}
    for name, field in FIELDS.items():
        if field.has_flag:
            value = renamed.get(name, chosen.value(name))
            if not getattr(arguments, name) and is_given(value):
                setattr(arguments, name, value if value is True else str(value))
    procedure = PROCEDURES[run.procedure]
    if arguments.procedure is None and not procedure.starts_runs:
        print_status(f"{procedure.title} started run {run.id}. The new run has another launch method and may differ.")
    elif arguments.procedure is None:
        arguments.procedure = run.procedure if procedure.flag_help else DEFAULT_PROCEDURE
    if arguments.cluster is None:
        arguments.cluster = run.cluster
    elif arguments.cluster != run.cluster:
        changed["cluster"] = arguments.cluster
    differences = ", ".join(
        name.replace("_", " ") + ("" if value is True else f" {value}") for name, value in changed.items()
    )
    print_status(f"Configuration of run {run.id}{differences and f', except for {differences}'}.")


def print_warnings(problems: Iterable[Problem]) -> None:
    """Print the warnings among the problems."""
    for problem in problems:
        if problem.severity == "warning":
            print_status(problem.words)


def print_command(request: RunRequest, launch: LaunchPreview, *, as_json: bool) -> None:
    """Print the exact command to stdout, and its differences and notes to stderr."""
    if as_json:
        document = asdict(launch)
        parts = {name: document[name] for name in ("command", "results", "problems", "differences", "notes")}
        print_json({"procedure": request.procedure, **parts})
        return
    for text in (*launch.differences, *launch.notes):
        print_status(f"note: {text}")
    print_line(launch.command)
