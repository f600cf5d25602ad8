"""`suite plan|submit|watch|cancel|list`: suites of many runs."""

from __future__ import annotations

import argparse
import os
import threading
from pathlib import Path
from typing import Any

from llmb_tui.answers.suite import planned_suite, submitted_suite, suites
from llmb_tui.catalog.rows import rows
from llmb_tui.cli.flags import selection_mapping
from llmb_tui.cli.output import print_json, print_line, print_outcome, print_status, write
from llmb_tui.cli.user import (
    NO_TERMINAL,
    confirm,
    has_terminal,
    read_line,
    require_changes,
    terminal_prompter,
    user_services,
)
from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import gpu_hours, gpu_hours_digits, plain_number
from llmb_tui.language.states import row_label
from llmb_tui.language.text import plural
from llmb_tui.plan.request import read_request
from llmb_tui.plan.selection import DEFAULT_PROCEDURE, LAYOUT, Selection
from llmb_tui.services import Services
from llmb_tui.suites.document import progress_document
from llmb_tui.suites.ready_made import most_gpus, ready_made
from llmb_tui.suites.suite import SUITE_KINDS, Suite, SuiteKind, make_suite
from llmb_tui.suites.suite_file import read_suite
from llmb_tui.suites.suite_plan import Nodes, SuiteNotReadyError, SuitePlan, nodes_of
from llmb_tui.suites.suite_progress import SuiteProgress, log_to_read
from llmb_tui.watch.runs_feed import TRANSIENT_ERRORS

READY_MADE: tuple[SuiteKind, ...] = tuple(kind for kind in SUITE_KINDS if kind != "custom")
_TYPED_WITHIN = 0.051
"""Largest difference between typed and exact GPU-hours: they are shown with one decimal."""


def suite_verb(arguments: argparse.Namespace) -> int:
    """Run one of the actions."""
    if arguments.action != "list" and arguments.suite is None:
        what = "No suite is named."
        fix = f"Name a file, the id of a suite, or one of {', '.join(READY_MADE)}."
        raise LlmbError(what, "", fix, exit_code=1)
    services = user_services(arguments)
    services.interactive = True  # keeps the process that renders scripts for the next one
    try:
        return _ACTIONS[arguments.action](services, arguments)
    finally:
        services.close()


def _plan(services: Services, arguments: argparse.Namespace) -> int:
    """Print the plan of a suite."""
    suite, nodes = _requested_suite(services, arguments)
    plan = services.suites.plan(suite, nodes.free)
    write(planned_suite(plan), arguments)
    return 1 if plan.blockers else 0


def _submit(services: Services, arguments: argparse.Namespace) -> int:
    """Submit a suite, or continue an unfinished one."""
    suite, _ = _requested_suite(services, arguments)
    suite = suite.as_new if arguments.new else suite
    require_changes(services, suite.cluster)
    unfinished = suite if suite.id else services.suites.unfinished(suite, new=arguments.new)
    plan = services.suites.plan(unfinished or suite)
    submitted: set[str] = set()
    if unfinished is not None:
        progress = services.suites.progress(unfinished)
        if not (progress.unfinished and progress.count("not sent", "refused", "unknown") > progress.unreadable):
            if not progress.stopped:
                state = "finished" if progress.over else "active"
                print_status(f"Suite {unfinished.id} is {state}: {progress.words}")
            return _write_submitted(progress, arguments)
        submitted = {row.planned.row.key for row in progress.rows if row.standing not in ("not sent", "refused")}
    blockers = [(row.row if row else None, problem) for row, problem in plan.blockers]
    if blockers := [(row, problem) for row, problem in blockers if row is None or row.key not in submitted]:
        raise SuiteNotReadyError(plan.suite, blockers)
    if unfinished is not None:
        print_status(f"Continuing suite {unfinished.id}: {progress.words}")
    _confirm(services, plan, unfinished, arguments)
    stored = unfinished or services.suites.keep(suite, new=arguments.new)
    print_status(f"suite {stored.id}, {stored.name} on {stored.cluster}")
    try:
        progress = services.suite_runner.submit(stored, _print_progress, threading.Event(), terminal_prompter())
    except KeyboardInterrupt as interrupt:
        fix = f"`llmb-tui suite submit {stored.id}` continues it, `llmb-tui suite cancel {stored.id}` cancels it."
        raise LlmbError(f"Interrupted: suite {stored.id} is only partly submitted.", "", fix, 130) from interrupt
    return _write_submitted(progress, arguments)


def _write_submitted(progress: SuiteProgress, arguments: argparse.Namespace) -> int:
    """Print the state of a suite after its submission. Returns 1 if runs have no job, 2 if one is unreadable."""
    suite = progress.plan.suite
    if progress.stopped:
        print_status(f"No more runs are submitted: {progress.words}")
    elif refused := progress.count("refused"):
        word = row_label("refused").word
        print_status(f"{plural(refused, 'run')} {word}: `llmb-tui suite submit {suite.id}` submits them again.")
    write(submitted_suite(progress), arguments)
    return 1 if progress.count("not sent", "refused") else 2 if progress.unreadable else 0


def _watch(services: Services, arguments: argparse.Namespace) -> int:
    """Follow a suite until it ends, or print its current state."""
    suite = _find_suite(services, arguments)
    runner, changed = services.suite_runner, threading.Event()
    lost, last, over = "", None, False
    ended = _is_finished(services, runner.progress(suite.id))
    if not ended:
        try:
            services.clusters.cluster(suite.cluster).connect(terminal_prompter())
        except TRANSIENT_ERRORS as error:
            lost = _print_lost(suite, error.what)
    if arguments.once:
        if not ended:
            services.feed.poll()
            lost = _print_lost(suite, runner.read_logs(suite.id, include_active=True).note, lost) or lost
        progress = runner.progress(suite.id)
        write(submitted_suite(progress), arguments)
        return _exit_code(progress, lost, strict=arguments.strict)
    following = services.feed.follow(lambda _: changed.set())
    try:
        while True:
            changed.clear()
            lost = "" if ended else _print_lost(suite, runner.read_logs(suite.id, include_active=True).note, lost)
            progress = runner.progress(suite.id)
            line = progress_document(progress) if arguments.json else progress.words
            if line != last:
                last = line
                print_json(line) if arguments.json else print_line(progress.words)
            was_over, over = over, progress.over or not _is_active(services, progress)
            if over and (was_over or lost or not progress.unread):
                break
            if not over:  # otherwise a job has ended since its log was read, which is read at once
                changed.wait(services.timing.look_every_s)
    finally:
        following.end()
    if not arguments.json:
        write(submitted_suite(progress), arguments)
    if not progress.stopped and (unsent := progress.count("not sent")):
        print_status(
            f"{plural(unsent, 'run')} {row_label('not sent').word}. Continue with `llmb-tui suite submit {suite.id}`."
        )
    return _exit_code(progress, lost, strict=arguments.strict)


def _print_lost(suite: Suite, why: str, printed: str = "") -> str:
    """Print why the cluster does not answer, unless that was `printed` before, and return it."""
    if why and why != printed:
        print_status(f"{suite.cluster}: {why}")
    return why


def _is_finished(services: Services, progress: SuiteProgress) -> bool:
    """Whether no run is active and all logs were read, so that the cluster has nothing new."""
    return (progress.over or not _is_active(services, progress)) and log_to_read(progress, "", set()) is None


def _cancel(services: Services, arguments: argparse.Namespace) -> int:
    """Cancel the active runs of a suite, and submit no more of them."""
    suite = _find_suite(services, arguments)
    progress = services.suites.progress(suite)
    if progress.unfinished:
        services.clusters.require_withdrawing(suite.cluster)
    active, rest = progress.count("unknown", "waiting", "running"), progress.count("not sent", "refused")
    word = row_label("not sent").word
    question = f"Cancel suite {suite.id}, {plural(active, 'job')} and {plural(rest, 'run')} {word}?"
    if progress.unfinished and not arguments.yes and has_terminal() and not confirm(question):
        raise LlmbError("Nothing was cancelled.", exit_code=1)
    cancelled: tuple[str, ...] = ()
    if progress.unfinished:
        progress, cancelled = services.suite_runner.cancel(suite, _print_progress, terminal_prompter())
    print_outcome(arguments, {"id": suite.id, "cancelled": list(cancelled)}, progress.words)
    return 0


def _list(services: Services, arguments: argparse.Namespace) -> int:
    """List all suites, newest first."""
    progresses = [services.suites.progress(suite) for suite in services.suites.all()]
    if progresses or arguments.json:
        write(suites(progresses), arguments)
    else:
        ready = "`llmb-tui suite --help` names the ready-made suites"
        print_status(f"No suites yet. `llmb-tui suite submit FILE` submits one; {ready}.")
    return 0


_ACTIONS = {"plan": _plan, "submit": _submit, "watch": _watch, "cancel": _cancel, "list": _list}


def _requested_suite(services: Services, arguments: argparse.Namespace) -> tuple[Suite, Nodes]:
    """Suite of the flags, and the nodes of its cluster if they were asked for."""
    name = arguments.suite
    conduct: dict[str, Any] = {flag: getattr(arguments, flag) for flag in ("at_most", "stop_after", "shuffle")}
    if name in READY_MADE and not services.suites.has(name):
        return _ready_made(services, arguments, conduct)
    if services.suites.has(name):
        suite = _submitted_suite(services, arguments)
    else:
        given = selection_mapping(arguments).keys() - {"gpu"}
        if given or arguments.count is not None or arguments.max_scale is not None:
            what = "A suite's file takes no selection, --count or --max-scale: it defines its own runs."
            fix = f"Leave them out, or name one of {', '.join(READY_MADE)} instead of a file."
            raise LlmbError(what, "", fix, exit_code=1)
        gpu = arguments.gpu and arguments.gpu.lower()
        replaced = {"cluster": arguments.cluster, "gpu": gpu, "procedure": arguments.procedure}
        suite = read_suite(_file(name), services.catalog, **replaced, **conduct)
    return suite, _nodes(services, suite.cluster, arguments) if arguments.action == "plan" else Nodes()


def _submitted_suite(services: Services, arguments: argparse.Namespace) -> Suite:
    """Submitted suite, which flags can no longer change. Raises LlmbError (exit code 1) if one is given."""
    names = ("cluster", "procedure", "at_most", "stop_after", "shuffle", "count", "max_scale")
    given = [*selection_mapping(arguments), *(name for name in names if getattr(arguments, name) is not None)]
    if given:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        what = f"Suite {arguments.suite} takes no {flags}."
        why = "It is already submitted, and its runs stay as they were confirmed."
        fix = "Leave the flags out, or start another suite with --new and its file or kind."
        raise LlmbError(what, why, fix, exit_code=1)
    return services.suites.load(arguments.suite)


_ACCEPTANCE_FLAGS = ("size", "dtype", "scale", "strong_scaling", *(field.name for field in LAYOUT))
"""Flags of the selection that an acceptance suite sets itself."""


def _ready_made(services: Services, arguments: argparse.Namespace, conduct: dict[str, Any]) -> tuple[Suite, Nodes]:
    kind, cluster, most = arguments.suite, arguments.cluster, arguments.max_scale
    if not cluster:
        fix = "Add --cluster NAME: `llmb-tui clusters` lists them."
        raise LlmbError("No cluster is named.", fix=fix, exit_code=1)
    if kind == "acceptance" and (given := [name for name in _ACCEPTANCE_FLAGS if name in selection_mapping(arguments)]):
        what = f"`acceptance` takes no --{given[0].replace('_', '-')}."
        fix = f"Leave it out, or name another kind: {', '.join(other for other in READY_MADE if other != kind)}."
        raise LlmbError(what, "It runs the published configurations.", fix, exit_code=1)
    selection = _selection(services, arguments)
    needs_nodes = most is None or arguments.action == "plan"
    nodes = _nodes(services, cluster, arguments) if needs_nodes else Nodes()
    most = most_gpus(services.catalog, selection, nodes) if most is None else most
    name, selections = ready_made(kind, services.catalog, selection, most, arguments.count)
    runs = [(each, arguments.procedure or DEFAULT_PROCEDURE) for each in selections]
    return make_suite(name, cluster, runs, kind=kind, **conduct), nodes


def _selection(services: Services, arguments: argparse.Namespace) -> Selection:
    """Selection of the flags; those that the suite varies may be missing."""
    values = dict(selection_mapping(arguments))
    workload = values.get("workload")
    if isinstance(workload, str):
        releases = services.catalog.releases(workload.lower())
        recipe = next((release for release in releases if values.get("size") in release.models), releases[0])
        if len(recipe.gpus) == 1:
            values.setdefault("gpu", next(iter(recipe.gpus)))
        values |= {name: value.lower() for name in ("gpu", "size") if isinstance(value := values.get(name), str)}
        listed = [
            row for row in rows(recipe) if row.gpu == values.get("gpu") and values.get("size") in (None, row.size)
        ]
        varied = {
            "scaling": ("scale",), "precision": ("dtype",), "acceptance": ("size", "dtype", "scale")
        }.get(arguments.suite, ())  # fmt: skip
        for name in varied if listed else ():
            values.setdefault(name, listed[0].gpus if name == "scale" else getattr(listed[0], name))
    return read_request(services.catalog, values)


def _nodes(services: Services, cluster: str, arguments: argparse.Namespace) -> Nodes:
    """Nodes of the cluster's partition; empty if the cluster is not asked, has none or does not answer."""
    profile = services.clusters.profile(cluster)
    if arguments.offline or profile.no_login_node:
        return Nodes()
    try:
        return nodes_of(services.clusters.inventory(profile, terminal_prompter()).partitions, profile)
    except LlmbError as error:
        if arguments.suite in READY_MADE and arguments.max_scale is None:
            raise
        print_status(f"The free nodes of {cluster} are unknown. {error.what}")
        return Nodes()


def _file(name: str) -> Path:
    if not os.path.exists(name):  # False also for text that cannot be a path
        fix = f"Name a file, the id of a suite (`llmb-tui suite list`), or one of {', '.join(READY_MADE)}."
        raise LlmbError(f"{name[:80]!r} is neither a file nor a suite.", "", fix, exit_code=1)
    return Path(name)


def _find_suite(services: Services, arguments: argparse.Namespace) -> Suite:
    """Submitted suite with this id, or else with the content or at least the name of this file or kind."""
    if services.suites.has(arguments.suite):
        return _submitted_suite(services, arguments)
    requested, _ = _requested_suite(services, arguments)
    suite = services.suites.submitted(requested)
    if suite.digest != requested.digest:
        options = f"was submitted with other content or options ({suite.submission_words})"
        print_status(f"Only the name matches: suite {suite.id}, {suite.name}, {options}.")
    return suite


def _confirm(services: Services, plan: SuitePlan, unfinished: Suite | None, arguments: argparse.Namespace) -> None:
    """Print the cost, and ask for a confirmation. Raises LlmbError (exit code 1) without it."""
    hours = (unfinished and unfinished.agreed_gpu_hours) or plan.gpu_hours
    limit, typed = services.policy.suite_gpu_hours, arguments.gpu_hours
    refusal = "Nothing was submitted."
    if typed is not None and not _is_shown(typed, hours):
        why = f"The suite takes {gpu_hours(hours)}, not the {plain_number(typed)} of --gpu-hours."
        raise LlmbError(refusal, why, "Check the suite with `llmb-tui suite plan`, and give its number.", exit_code=1)
    above = hours > limit
    if arguments.yes and (not above or typed is not None):
        return
    if not has_terminal() or arguments.yes:
        over = f"It takes {gpu_hours(hours)}, above the limit of {plain_number(limit)} (`limits.suite_gpu_hours`)."
        fix = f"Add --yes{f' --gpu-hours {hours:.1f}' if above else ''} to submit without a confirmation."
        raise LlmbError(refusal, over if above else NO_TERMINAL, fix, exit_code=1)
    rest = services.suites.progress(unfinished).count("not sent", "refused") if unfinished else len(plan.rows)
    most = f"{gpu_hours(hours)} plus start-up, at most {gpu_hours_digits(plan.most_gpu_hours)} by their time limits"
    what = f"Submit {plural(rest, 'run')} of {len(plan.rows)} to {plan.suite.cluster}: {most}"
    if not above:
        if not confirm(f"{what}?"):
            raise LlmbError(refusal, exit_code=1)
        return
    over = f"This exceeds the limit of {plain_number(limit)}. Type the number of GPU-hours to submit: "
    print_status(f"{what}. {over}", end="")
    if not _is_shown(read_line(), hours):
        raise LlmbError(refusal, f"The typed number is not {gpu_hours_digits(hours)}.", exit_code=1)


def _is_shown(typed: float | str, hours: float) -> bool:
    """Whether typed GPU-hours equal the shown ones: with one decimal, possibly with commas."""
    try:
        return abs(float(str(typed).replace(",", "")) - hours) < _TYPED_WITHIN
    except ValueError:
        return False


def _is_active(services: Services, progress: SuiteProgress) -> bool:
    """Whether runs of the suite are on the cluster, or a process is submitting it."""
    if progress.count("unknown", "waiting", "running") > progress.unreadable:
        return True
    with services.suites.lock(progress.plan.suite.id) as idle:
        return not idle


def _exit_code(progress: SuiteProgress, lost: str, *, strict: bool) -> int:
    """First exit code that applies to a run: 2 if data could not be read, 4 if it failed, 3 for a FAIL, else 0.

    `strict`: 3 unless every run of the suite has passed.
    """
    if lost or progress.unread or progress.unreadable:
        return 2
    if progress.count("refused", "failed", "cancelled"):
        return 4
    return 3 if progress.results("FAIL") or (strict and progress.results("PASS") < len(progress.rows)) else 0


def _print_progress(text: str) -> None:
    print_status(f"  {text}")
