"""`clusters`, `install` and `submit`: saved clusters, and making a plan run on one."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from dataclasses import asdict

from llmb_tui.cli.doctor import check
from llmb_tui.cli.output import print_json, print_table, say
from llmb_tui.cli.published import possible, print_command
from llmb_tui.cli.secrets import ask_for_key
from llmb_tui.cli.user import confirm, has_terminal, user_services
from llmb_tui.cluster.profiles import profile_document
from llmb_tui.errors import Trouble
from llmb_tui.launch.install import StepState
from llmb_tui.launch.run import Run
from llmb_tui.launch.secret import SecretId
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
    except KeyWouldHelp as refused:
        if not has_terminal():
            raise
        ask_for_key(services, arguments.cluster, made, refused.key, arguments.procedure)
        states = install(services, arguments.cluster, made, say, arguments.procedure)
    if arguments.json:
        print_json([asdict(state) for state in states])
    return 0


def submit_verb(arguments: argparse.Namespace) -> int:
    """Render a run and submit it, once, after a yes."""
    services = user_services()
    if arguments.procedure == "recipe" and arguments.dry_run:
        print_command(services, arguments)
        return 0
    made = possible(services, arguments)
    for problem in made.problems:
        if problem.severity == "warning":
            say(f"{problem.field}: {problem.reason} {problem.fix}".rstrip())
    if not arguments.dry_run:
        _agree(arguments, made)
    draft = services.draft(arguments.cluster, made, arguments.procedure)
    if arguments.dry_run:
        if arguments.json:
            print_json({"id": draft.run.id, "script": draft.script})
        else:
            print(draft.script, end="")
        return 0
    check(services, arguments.cluster, made, say, arguments.procedure)
    run = submit(services, draft, say, arguments.procedure)
    if arguments.json:
        print_json(document(run, RunState(run.id)))
    else:
        print(run.id)
    return 0


class KeyWouldHelp(Trouble):
    """An install step failed that may work with a key."""

    def __init__(self, cluster: str, stopped: StepState, key: SecretId) -> None:
        ask = f"`llmb-tui secrets {cluster} --give {key}` asks for it, or reads it from stdin."
        super().__init__(*_stopped_at(cluster, stopped), f"{stopped.fix}\n{ask}")
        self.key = key


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
        if stopped.key_would_help:
            raise KeyWouldHelp(cluster, stopped, stopped.key_would_help)
        fix = stopped.fix or "Install again: steps that are done are not repeated."
        raise Trouble(*_stopped_at(cluster, stopped), fix)
    return states


def _stopped_at(cluster: str, stopped: StepState) -> tuple[str, str]:
    why = "\n".join(part for part in (stopped.reason, stopped.detail) if part)
    return f"Installing on {cluster} stopped at: {stopped.title}.", why


def submit(services: Services, draft: Draft, tell: Callable[[str], None], procedure: Procedure = "direct") -> Run:
    """Submit a draft whose install is whole, telling what a launch says.

    Raises `Trouble` when it is not, or when Slurm refuses.
    """
    missing = [s for s in services.installer(draft.run.cluster, draft.run.plan, procedure).look() if s.status != "done"]
    if missing:
        raise Trouble(
            f"{draft.run.cluster} is not installed for this run: {missing[0].title} is missing.",
            fix=f"Run `llmb-tui install {draft.run.cluster}` with the same selection first.",
            exit_code=1,
        )
    run = services.submit(draft, lambda said: tell(f"  {said}"))
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
