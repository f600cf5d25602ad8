"""`clusters`, `doctor`, `install` and `submit`: save a cluster, check it, install on it and submit a run to it."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Grid
from llmb_tui.answers.cluster_check import cluster_check
from llmb_tui.answers.install import install_answer
from llmb_tui.answers.table import Column, Table
from llmb_tui.cli.flags import profile_flags, selection_mapping
from llmb_tui.cli.output import print_json, print_line, print_outcome, print_status, write
from llmb_tui.cli.request import ask_for_selection, fill_from_run, print_command, print_warnings, request_from_flags
from llmb_tui.cli.run_lines import RepeatLimiter
from llmb_tui.cli.runs import print_run, settle
from llmb_tui.cli.secrets import ask_for_key
from llmb_tui.cli.user import (
    has_terminal,
    is_terminal,
    require_changes,
    require_confirmation,
    terminal_prompter,
    user_services,
)
from llmb_tui.cluster.failures import DisconnectedError, LoginNeededError, NoAnswerError, UnreachableError
from llmb_tui.cluster.kinds import KINDS, UNNAMED
from llmb_tui.cluster.profile_fields import ProfileField, text_of
from llmb_tui.cluster.profiles import profile_document
from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import count, gpu_hours
from llmb_tui.language.states import check_label, install_label
from llmb_tui.language.text import plural
from llmb_tui.launch.prepared import PreparedRun
from llmb_tui.launch.procedure_loader import preview
from llmb_tui.launch.readiness import ClusterEvidence, failures, read_only_problems, refuse, request_problems
from llmb_tui.launch.refusal import withdrawal
from llmb_tui.launch.run import Run
from llmb_tui.launch.step_state import StepState
from llmb_tui.launch.submit import INTERRUPTED, NotSubmittedError, interrupted
from llmb_tui.plan.selection import DEFAULT_PROCEDURE
from llmb_tui.preflight.report import Check, Preflight
from llmb_tui.preflight.secret import SecretId
from llmb_tui.request import RunRequest
from llmb_tui.services import Services

_CONNECTION_ERRORS = (DisconnectedError, LoginNeededError, NoAnswerError, UnreachableError)
"""Lost connections before a submission, when nothing was sent yet. `submit_once` itself reports those during one."""
_PROGRESS_EVERY_S = 15.0
_TITLE = 20
_PROFILE = (
    Column("cluster", "name"),
    Column("reached at", "place"),
    Column("runs in", "share"),
    Column("directory", "directory"),
    Column("", lambda profile: profile.notice or ""),
)


def clusters_verb(arguments: argparse.Namespace) -> int:
    """List the saved clusters; with `add`, save another."""
    services = user_services(arguments)
    if arguments.action == "add":
        return _add_cluster(services, arguments)
    add = _example(UNNAMED)
    given = [field.flag for field in _all_flags() if getattr(arguments, field.name)]
    if arguments.name is not None or given:
        what = f"`clusters` takes {', '.join(given) or 'a name'} only with `add`."
        raise LlmbError(what, fix=f"`{add}`", exit_code=1)
    profiles = services.clusters.profiles()
    if arguments.json or profiles:
        table = Table.by(_PROFILE, profiles)
        document = [profile_document(profile) for profile in profiles]
        write(Answer("Saved clusters", lambda: (Grid("", table),), lambda: document), arguments)
    else:
        print_status(
            f"No clusters yet. `{add}` saves one; the wizard (`llmb-tui`) also offers its accounts and partitions."
        )
    return 0


def _add_cluster(services: Services, arguments: argparse.Namespace) -> int:
    """Save a cluster, without questions and without a connection."""
    kind, add = KINDS[arguments.kind], _example(arguments.kind)
    flags, every = profile_flags(kind), _all_flags()
    usual = kind.usual(os.environ)
    names = {field.name: usual.get(field.name, "") for field in every}
    texts = {name: getattr(arguments, name) or text for name, text in names.items()}
    missing = [field.flag for field in flags if field.needed and not texts[field.name]]
    if arguments.name is None or missing:
        what = " and ".join(filter(None, ("a name" * (arguments.name is None), ", ".join(missing))))
        raise LlmbError(f"A cluster needs {what}.", fix=f"`{add}`", exit_code=1)
    of_kind = {field.flag for field in flags}
    other = [field.flag for field in every if texts[field.name] and field.flag not in of_kind]
    if other:
        raise LlmbError(f"A cluster of kind {arguments.kind} has no {', '.join(other)}.", fix=f"`{add}`", exit_code=1)
    profile = kind.profile_of({**texts, "name": arguments.name, "read_only": text_of(services.policy.read_only)})
    services.clusters.add(profile)
    print_outcome(
        arguments, profile_document(profile), f"Saved {profile.name}. `llmb-tui doctor {profile.name}` checks it."
    )
    return 0


def _all_flags() -> list[ProfileField]:
    return [field for kind in KINDS.values() for field in profile_flags(kind)]


def _example(kind: str) -> str:
    """Command that adds a cluster of a kind."""
    named = "" if kind == UNNAMED else f"--kind {kind} "
    return f"llmb-tui clusters add NAME {named}{KINDS[kind].example}"


def doctor_verb(arguments: argparse.Namespace) -> int:
    """Check a cluster, and print the finding, the requirement and the fix of each check."""
    ask_for_selection(arguments)
    services = user_services(arguments)
    mapping = selection_mapping(arguments)
    target = request_from_flags(services, arguments) if mapping else services.clusters.profile(arguments.cluster)
    services.clusters.cluster(arguments.cluster).connect(terminal_prompter())
    report = services.launcher.preflight(target, _count_checks if is_terminal(sys.stderr) else None)
    write(cluster_check(arguments.cluster, report), arguments)
    return report.exit_code


def _count_checks(report: Preflight) -> None:
    print_status(f"  {plural(len(report.checks), 'check')} done …")


def run_preflight(services: Services, request: RunRequest, emit: Callable[[str], None]) -> Preflight:
    """Run the preflight, and print each check when it is done. Raises `NotReadyError` if a check fails."""
    report = services.launcher.preflight(request, check_printer(emit))
    refuse(request, failures(report))
    return report


def check_printer(emit: Callable[[str], None]) -> Callable[[Preflight], None]:
    """Callback that prints each check of a growing report once."""
    count = 0

    def progress(report: Preflight) -> None:
        nonlocal count
        for check in report.checks[count:]:
            for line in check_lines(check):
                emit(line)
        count = len(report.checks)

    return progress


def check_lines(check: Check) -> Iterator[str]:
    """Status, name and finding of a check; if it is not ok, also the requirement and the fix."""
    yield f"  {check_label(check.status).word:7}  {check.title:{_TITLE}}  {check.found}"
    if check.status != "ok":
        yield f"  {'':7}  {'needed':>{_TITLE}}  {check.needed}"
        yield f"  {'':7}  {'fix':>{_TITLE}}  {check.fix}"


def install_verb(arguments: argparse.Namespace) -> int:
    """Install the software of a run, or continue an install; ask for an API key if it may help."""
    services = user_services(arguments)
    request = request_from_flags(services, arguments)
    refuse(request, read_only_problems(request.profile, services.policy))
    services.clusters.cluster(arguments.cluster).connect(terminal_prompter())
    try:
        states = _installed(services, request)
    except ApiKeyNeededError as error:
        if not has_terminal():
            raise
        ask_for_key(services, request, error.key)
        states = _installed(services, request)
    write(install_answer(arguments.cluster, states), arguments)
    return 0


def _installed(services: Services, request: RunRequest) -> tuple[StepState, ...]:
    with _if_interrupted("Interrupted: a started step continues on the cluster.", "Install again to follow it."):
        return install(services, request, print_status)


@contextmanager
def _if_interrupted(what: str, fix: str = "") -> Iterator[None]:
    """Raise LlmbError with this message if the user interrupts the block."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise LlmbError(what, "", fix, exit_code=INTERRUPTED) from interrupt


def submit_verb(arguments: argparse.Namespace) -> int:
    """Render a run and submit it once, after a confirmation; or submit a run that is not submitted yet."""
    services = user_services(arguments)
    if arguments.run is not None:
        return _resume(services, arguments)
    if arguments.again is not None:
        fill_from_run(services.runs.load(arguments.again), arguments)
    arguments.procedure = arguments.procedure or DEFAULT_PROCEDURE
    if arguments.cluster is None:
        raise LlmbError("No cluster is named.", fix="Add --cluster NAME: `llmb-tui clusters` lists them.", exit_code=1)
    request = request_from_flags(services, arguments)
    if arguments.dry_run:
        return _dry_run(services, request, as_json=arguments.json)
    _confirm(services, request, yes=arguments.yes)
    try:
        with _if_interrupted("Interrupted: nothing was submitted."):
            prepared = services.launcher.prepare(request, terminal_prompter())
            services.clusters.cluster(arguments.cluster).connect(terminal_prompter())
            report = run_preflight(services, request, print_status)
        run = submit(services, prepared, report, print_status)
    except _CONNECTION_ERRORS as error:
        raise NotSubmittedError(error) from error
    return print_run(services, run.id, as_json=arguments.json)


def _resume(services: Services, arguments: argparse.Namespace) -> int:
    """Submit a run that is not submitted yet. A run that already has a job is only printed."""
    if arguments.cluster or arguments.procedure or arguments.again or selection_mapping(arguments):
        raise LlmbError(
            "--resume takes no cluster, launch method or selection.",
            "It submits the run as it was confirmed.",
            "Leave those flags out, or withdraw the run with `llmb-tui cancel RUN` and submit a new one.",
            exit_code=1,
        )
    run = services.runs.load(arguments.run)
    if arguments.dry_run:
        return _print_script(run.id, services.runs.script(run.id), as_json=arguments.json)
    if not run.job_ids:
        require_changes(services, run.cluster)
        run = settle(services, run.id)
    if run.submission == "intended":
        request = services.request(run.cluster, run.plan, run.procedure)
        _confirm(services, request, yes=arguments.yes)
        try:
            run = _require_known(
                services.launcher.resume(
                    request,
                    run,
                    terminal_prompter(),
                    check_printer(print_status),
                    lambda text: print_status(f"  {text}"),
                )
            )
        except _CONNECTION_ERRORS as error:
            raise NotSubmittedError(error, run) from error
        except KeyboardInterrupt as interrupt:
            raise interrupted(services.runs, run) from interrupt
        print_status(f"  run {run.id}, job {', '.join(run.job_ids)}")
    elif run.job_ids:
        print_status(f"Run {run.id} was submitted before, as job {', '.join(run.job_ids)}. It is not submitted again.")
    if run.submission in ("refused", "withdrawn"):
        refusal = withdrawal(run)
        raise LlmbError(refusal.what, refusal.why, refusal.fix, exit_code=1)
    return print_run(services, _require_known(run).id, as_json=arguments.json)


def _dry_run(services: Services, request: RunRequest, *, as_json: bool) -> int:
    """Print the script or command of a run, and submit nothing. A command needs no connection."""
    launch = preview(request)
    if launch.command:
        print_command(request, launch, as_json=as_json)
        return 0
    print_warnings(request.plan.problems)
    prepared = services.launcher.prepare(request, terminal_prompter())
    return _print_script(prepared.run.id, prepared.script, as_json=as_json)


def _print_script(run_id: str, script: str, *, as_json: bool) -> int:
    if as_json:
        print_json({"id": run_id, "script": script})
    else:
        print_line(script, end="")
    return 0


class ApiKeyNeededError(LlmbError):
    """An install step failed that may succeed with an API key."""

    def __init__(self, cluster: str, stopped: StepState, key: SecretId) -> None:
        ask = f"`llmb-tui secrets {cluster} --give {key}` asks for it, or reads it from stdin."
        super().__init__(*_stopped_at(cluster, stopped), f"{stopped.fix}\n{ask}")
        self.key = key


def install(services: Services, request: RunRequest, emit: Callable[[str], None]) -> tuple[StepState, ...]:
    """Run the install steps and print changes.

    Raises `LlmbError` if one fails, and `ApiKeyNeededError` if an API key may help.
    """
    printed: dict[str, tuple[str, float]] = {}

    def on_change(states: tuple[StepState, ...]) -> None:
        for state in states:
            line, printed_at = printed.get(state.id, ("", 0.0))
            now = time.monotonic()
            new_line = f"  {install_label(state.status).word:7}  {state.title}" + (
                f": {state.detail}" if state.detail else ""
            )
            if new_line != line or (state.status == "running" and now > printed_at + _PROGRESS_EVERY_S):
                printed[state.id] = (new_line, now)
                emit(new_line + (f" ({state.size})" if state.size else ""))

    repeats = RepeatLimiter()

    def on_silence(error: LlmbError) -> None:
        duration = repeats.due(error.what)
        if duration is not None:
            emit(" · ".join(filter(None, (f"  {error.what} The program asks again.", duration))))

    states = services.launcher.installer(request).run(on_change, threading.Event(), on_silence)
    failed = [state for state in states if state.status != "done"]
    if failed:
        stopped = failed[0]
        if stopped.key_would_help:
            raise ApiKeyNeededError(request.profile.name, stopped, stopped.key_would_help)
        fix = stopped.fix or "Install again: completed steps are not repeated."
        raise LlmbError(*_stopped_at(request.profile.name, stopped), fix)
    return states


def _stopped_at(cluster: str, stopped: StepState) -> tuple[str, str]:
    why = "\n".join(part for part in (stopped.reason, stopped.detail) if part)
    return f"The install on {cluster} stopped at: {stopped.title}.", why


def submit(services: Services, prepared: PreparedRun, report: Preflight, emit: Callable[[str], None]) -> Run:
    """Submit a prepared run to a checked cluster, and print the launch's messages.

    Raises `NotReadyError` if its install is incomplete, and `LlmbError` if Slurm rejects the job.
    """
    evidence = ClusterEvidence(report, services.launcher.installer(prepared.request).probe())
    run = _require_known(services.launcher.submit(prepared, evidence, lambda text: emit(f"  {text}")))
    emit(f"  run {run.id}, job {', '.join(run.job_ids)}")
    return run


def _require_known(run: Run) -> Run:
    """The given run. Raises LlmbError if it is unknown whether it was submitted."""
    if run.submission == "unknown":
        error = LlmbError(
            f"It is unknown whether run {run.id} was submitted.",
            run.note,
            f"`llmb-tui watch {run.id}` asks the cluster until it is known. The run is not submitted again.",
        )
        error.run_id = run.id
        raise error
    return run


def _confirm(services: Services, request: RunRequest, *, yes: bool) -> None:
    """Print the warnings and ask for a confirmation. Raises NotReadyError if no cluster can run the request."""
    refuse(request, request_problems(request, services.policy))
    print_warnings(request.plan.problems)
    if not yes:
        plan = request.plan
        cost = "unknown GPU-hours" if plan.gpu_hours is None else f"{gpu_hours(plan.gpu_hours)} plus start-up"
        question = f"Submit a run on {count(plan.selection.scale)} GPUs to {request.profile.name}, {cost}?"
        require_confirmation(question, "Nothing was submitted.", "Add --yes to submit without a confirmation.")
