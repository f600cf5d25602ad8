"""`clusters`, `doctor`, `install` and `submit`: saved clusters, and making a plan run on one."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict

from llmb_tui.cli.arguments import selection_mapping
from llmb_tui.cli.output import print_json, print_line, print_table, say
from llmb_tui.cli.user import confirm, has_terminal, user_services
from llmb_tui.cluster.preflight_report import Preflight
from llmb_tui.errors import Trouble
from llmb_tui.launch.install import StepState
from llmb_tui.launch.run import Run
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.request import read_request
from llmb_tui.services import Draft, Services
from llmb_tui.watch.report import document
from llmb_tui.watch.state import RunState


def clusters_verb(arguments: argparse.Namespace) -> int:
    """The saved clusters."""
    profiles = user_services().profiles()
    if arguments.json:
        print_json([asdict(profile) for profile in profiles])
    elif profiles:
        rows = [(p.name, p.host, p.account, p.partition, p.install_dir, p.notice or "") for p in profiles]
        print_table(("cluster", "login node", "account", "partition", "install directory", ""), rows)
    return 0


def doctor_verb(arguments: argparse.Namespace) -> int:
    """What is found on a cluster, what is needed, and how to mend the difference; 2 when a check fails."""
    services = user_services()
    made = launchable(services, arguments) if selection_mapping(arguments) else None
    report = services.preflight(arguments.cluster, made)
    if arguments.json:
        checks = [asdict(check) for check in report.checks]
        print_json({"cluster": arguments.cluster, "passed": report.passed, "checks": checks})
    else:
        for line in check_lines(report):
            print_line(line)
    return 0 if report.passed else 2


def install_verb(arguments: argparse.Namespace) -> int:
    """Install what a run needs, or go on where an earlier install stopped."""
    services = user_services()
    states = install(services, arguments.cluster, launchable(services, arguments), say)
    if arguments.json:
        print_json([{"id": s.id, "title": s.title, "status": s.status, "detail": s.detail} for s in states])
    return 0


def submit_verb(arguments: argparse.Namespace) -> int:
    """Render a run and submit it, once, after a yes."""
    if arguments.procedure == "recipe":
        raise Trouble(
            "The published procedure cannot be launched yet.",
            "Only the direct procedure is built so far.",
            "Leave --procedure out.",
            exit_code=1,
        )
    services = user_services()
    made = launchable(services, arguments)
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


def launchable(services: Services, arguments: argparse.Namespace) -> Plan:
    """The plan of the selection flags. Raises `Trouble` when it cannot be launched."""
    made = plan(services.catalog(), read_request(services.catalog(), selection_mapping(arguments)))
    errors = [problem for problem in made.problems if problem.severity == "error"]
    if errors:
        reasons = "\n".join(f"{e.field}: {e.reason} {e.fix}".rstrip() for e in errors)
        raise Trouble("This selection cannot be launched.", reasons, exit_code=1)
    return made


def check(services: Services, cluster: str, made: Plan, tell: Callable[[str], None]) -> None:
    """Preflight: tell each check. Raises `Trouble` when one fails."""
    report = services.preflight(cluster, made)
    for line in check_lines(report):
        tell(line)
    if not report.passed:
        failed = [one for one in report.checks if one.status == "failed"]
        raise Trouble(
            f"{cluster} is not ready for this run.",
            "\n".join(f"{one.title}: found {one.found}, needed {one.needed}." for one in failed),
            "\n".join(one.mend for one in failed if one.mend),
        )


def check_lines(report: Preflight) -> Iterator[str]:
    """One line for each check."""
    for one in report.checks:
        mend = f" {one.mend}" if one.mend and one.status != "ok" else ""
        yield f"  {one.status:7}  {one.title}: {one.found} (needed: {one.needed}){mend}"


def install(services: Services, cluster: str, made: Plan, tell: Callable[[str], None]) -> tuple[StepState, ...]:
    """Run the install steps, telling each change. Raises `Trouble` when one fails."""
    told: dict[str, str] = {}

    def on_change(states: tuple[StepState, ...]) -> None:
        for state in states:
            line = f"  {state.status:7}  {state.title}" + (f": {state.detail}" if state.detail else "")
            if told.get(state.id) != line:
                told[state.id] = line
                tell(line)

    states = services.installer(cluster, made).run(on_change, threading.Event())
    failed = [state for state in states if state.status != "done"]
    if failed:
        raise Trouble(
            f"Installing on {cluster} stopped at: {failed[0].title}.",
            failed[0].detail,
            "Mend what it names and install again: steps that are done are not repeated.",
        )
    return states


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
            f"Nothing is submitted again by itself. Look with `llmb-tui watch {run.id} --once`.",
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
