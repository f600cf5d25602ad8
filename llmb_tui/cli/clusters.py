"""`clusters`, `install` and `submit`: saved clusters, and making a plan run on one."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from dataclasses import asdict

from llmb_tui.cli.doctor import check
from llmb_tui.cli.output import print_json, print_table, say
from llmb_tui.cli.planning import launchable
from llmb_tui.cli.published import not_submitted, possible, print_command
from llmb_tui.cli.secrets import ask_for_key
from llmb_tui.cli.user import confirm, has_terminal, user_services
from llmb_tui.cluster.profiles import profile_document
from llmb_tui.errors import Trouble
from llmb_tui.launch.install import StepState
from llmb_tui.launch.run import Run
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import Procedure
from llmb_tui.services import Draft, Services
from llmb_tui.watch.report import document
from llmb_tui.watch.state import RunState

_PROGRESS_EVERY_S = 15.0


def clusters_verb(arguments: argparse.Namespace) -> int:
    """The saved clusters."""
    profiles = user_services().profiles()
    if arguments.json:
        print_json([profile_document(profile) for profile in profiles])
    elif profiles:
        rows = [(p.name, p.host, p.account, p.partition, p.install_dir, p.notice or "") for p in profiles]
        print_table(("cluster", "login node", "account", "partition", "install directory", ""), rows)
    return 0


def install_verb(arguments: argparse.Namespace) -> int:
    """Install what a run needs, or go on where an earlier install stopped; ask for a key where one would help."""
    services = user_services()
    made = possible(services, arguments)
    try:
        states = install(services, arguments.cluster, made, say, arguments.procedure)
    except KeyWouldHelp:
        if not has_terminal():
            raise
        ask_for_key(services, arguments.cluster, made)
        states = install(services, arguments.cluster, made, say, arguments.procedure)
    if arguments.json:
        print_json([asdict(state) for state in states])
    return 0


def submit_verb(arguments: argparse.Namespace) -> int:
    """Render a run and submit it, once, after a yes; the published procedure is only printed."""
    if arguments.procedure == "recipe" and not arguments.dry_run:
        raise not_submitted()
    services = user_services()
    if arguments.procedure == "recipe":
        print_command(services, arguments)
        return 0
    made = launchable(services, arguments)
    for problem in made.problems:
        if problem.severity == "warning":
            say(f"{problem.field}: {problem.reason} {problem.fix}".rstrip())
    draft = services.draft(arguments.cluster, made)
    if arguments.dry_run:
        if arguments.json:
            print_json({"id": draft.run.id, "script": draft.script})
        else:
            print(draft.script, end="")
        return 0
    _agree(arguments, made)
    check(services, arguments.cluster, made, say)
    run = submit(services, draft, say)
    if arguments.json:
        print_json(document(run, RunState(run.id)))
    else:
        print(run.id)
    return 0


class KeyWouldHelp(Trouble):
    """The registry refused the image; with an NGC API key it may not."""


def install(
    services: Services, cluster: str, made: Plan, tell: Callable[[str], None], procedure: Procedure = "direct"
) -> tuple[StepState, ...]:
    """Run the install steps, telling what changes. Raises `Trouble` when one fails, `KeyWouldHelp` where a key may."""
    told: dict[str, tuple[str, float]] = {}

    def on_change(states: tuple[StepState, ...]) -> None:
        for state in states:
            line, said_at = told.get(state.id, ("", 0.0))
            now = time.monotonic()
            news = f"  {state.status:7}  {state.title}" + (f": {state.detail}" if state.detail else "")
            if news != line or (state.status == "running" and now > said_at + _PROGRESS_EVERY_S):
                told[state.id] = (news, now)
                tell(news + (f" ({state.size})" if state.size else ""))

    states = services.installer(cluster, made, procedure).run(on_change, threading.Event())
    failed = [state for state in states if state.status != "done"]
    if failed:
        stopped = failed[0]
        kind = KeyWouldHelp if stopped.key_would_help else Trouble
        why = "\n".join(part for part in (stopped.reason, stopped.detail) if part)
        raise kind(f"Installing on {cluster} stopped at: {stopped.title}.", why, _mend(cluster, stopped))
    return states


def _mend(cluster: str, stopped: StepState) -> str:
    if stopped.key_would_help:
        return f"{stopped.fix}\n`llmb-tui secrets {cluster} --give ngc` asks for it, or reads it from stdin."
    return stopped.fix or "Install again: steps that are done are not repeated."


def submit(services: Services, draft: Draft, tell: Callable[[str], None]) -> Run:
    """Submit a draft whose install is whole. Raises `Trouble` when it is not, or when Slurm refuses."""
    missing = [s for s in services.installer(draft.run.cluster, draft.run.plan).look() if s.status != "done"]
    if missing:
        raise Trouble(
            f"{draft.run.cluster} is not installed for this run: {missing[0].title} is missing.",
            fix=f"Run `llmb-tui install {draft.run.cluster}` with the same selection first.",
            exit_code=1,
        )
    run = services.submit(draft)
    if run.submission == "unknown":
        raise Trouble(
            f"It is not known whether run {run.id} was submitted.",
            run.note,
            f"`llmb-tui watch {run.id}` asks the cluster until it is known; nothing is submitted again by itself.",
        )
    tell(f"  run {run.id}, job {', '.join(run.job_ids)}")
    return run


def _agree(arguments: argparse.Namespace, made: Plan) -> None:
    if arguments.yes:
        return
    if not has_terminal():
        raise Trouble(
            "Nothing was submitted.",
            "There is no terminal to ask at.",
            "Add --yes to submit without asking.",
            exit_code=1,
        )
    cost = "unknown GPU-hours" if made.gpu_hours is None else f"{made.gpu_hours:.1f} GPU-hours and start-up"
    if not confirm(f"Submit {made.selection.scale} GPUs on {arguments.cluster}, {cost}?"):
        raise Trouble("Nothing was submitted.", exit_code=1)
