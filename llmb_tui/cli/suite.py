"""`suite plan|submit|watch|cancel|list`: many runs as one."""

from __future__ import annotations

import argparse
import os
import threading
from pathlib import Path
from typing import Any

from llmb_tui.answers.suite import planned_suite, submitted_suite, suites
from llmb_tui.catalog.rows import rows
from llmb_tui.cli.flags import selection_mapping
from llmb_tui.cli.output import answer, print_json, print_line, print_status, write
from llmb_tui.cli.user import confirm, has_terminal, read_line, require_changes, terminal_prompter, user_services
from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import given, gpu_hours, gpu_hours_digits
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
"""GPU-hours are typed with one decimal, as they are shown."""


def suite_verb(arguments: argparse.Namespace) -> int:
    """One of the actions."""
    if arguments.action != "list" and arguments.suite is None:
        what = f"`suite {arguments.action}` of which suite?"
        fix = f"Name a file, the id of a suite, or one of {', '.join(READY_MADE)}."
        raise LlmbError(what, "", fix, exit_code=1)
    services = user_services(arguments)
    services.interactive = True  # several scripts are written: the process that writes them stays
    try:
        return _ACTIONS[arguments.action](services, arguments)
    finally:
        services.close()


def _plan(services: Services, arguments: argparse.Namespace) -> int:
    """What a suite will be."""
    suite, nodes = _wanted(services, arguments)
    plan = services.suites.plan(suite, nodes.free)
    write(planned_suite(plan), arguments)
    return 1 if plan.blockers else 0


def _submit(services: Services, arguments: argparse.Namespace) -> int:
    """Submit a suite, or go on with one."""
    suite, _ = _wanted(services, arguments)
    suite = suite.anew if arguments.new else suite
    require_changes(services, suite.cluster)
    going = suite if suite.id else services.suites.unfinished(suite, new=arguments.new)
    plan = services.suites.plan(going or suite)
    sent: set[str] = set()
    if going is not None:
        progress = services.suites.progress(going)
        if not (progress.unfinished and progress.count("not sent", "refused", "unknown") > progress.unreadable):
            if not progress.stopped:
                print_status(f"Suite {going.id} {'is over' if progress.over else 'goes on'}: {progress.words}")
            return _write_submitted(progress, arguments)
        sent = {row.planned.row.key for row in progress.rows if row.standing not in ("not sent", "refused")}
    against = [(row.row if row else None, problem) for row, problem in plan.blockers]
    if against := [(row, problem) for row, problem in against if row is None or row.key not in sent]:
        raise SuiteNotReadyError(plan.suite, against)
    if going is not None:
        print_status(f"Suite {going.id} goes on: {progress.words}")
    _agree(services, plan, going, arguments)
    kept = going or services.suites.keep(suite, new=arguments.new)
    print_status(f"suite {kept.id}, {kept.name} on {kept.cluster}")
    try:
        progress = services.suite_runner.submit(kept, _tell, threading.Event(), terminal_prompter())
    except KeyboardInterrupt as interrupt:
        fix = f"`llmb-tui suite submit {kept.id}` goes on, `llmb-tui suite cancel {kept.id}` ends it."
        raise LlmbError(f"Interrupted: suite {kept.id} is not submitted to its end.", "", fix, 130) from interrupt
    return _write_submitted(progress, arguments)


def _write_submitted(progress: SuiteProgress, arguments: argparse.Namespace) -> int:
    """How a suite stands of which nothing is sent now; 1 where runs of it have no job, 2 where one is unreadable."""
    suite = progress.plan.suite
    if progress.stopped:
        print_status(f"Nothing more is sent: {progress.words}")
    elif refused := progress.count("refused"):
        word = row_label("refused").word
        print_status(f"{plural(refused, 'run')} {word}: `llmb-tui suite submit {suite.id}` sends them again.")
    write(submitted_suite(progress), arguments)
    return 1 if progress.count("not sent", "refused") else 2 if progress.unreadable else 0


def _watch(services: Services, arguments: argparse.Namespace) -> int:
    """Follow a suite to its end, or say how it stands."""
    suite = _kept(services, arguments)
    runner, changed = services.suite_runner, threading.Event()
    lost, last, over = "", None, False
    ended = _is_over(services, runner.progress(suite.id))
    if not ended:
        try:
            services.clusters.cluster(suite.cluster).connect(terminal_prompter())
        except TRANSIENT_ERRORS as error:
            lost = _say_lost(suite, error.what)
    if arguments.once:
        if not ended:
            services.feed.poll()
            lost = _say_lost(suite, runner.read_logs(suite.id, going_too=True).note, lost) or lost
        progress = runner.progress(suite.id)
        write(submitted_suite(progress), arguments)
        return _exit_code(progress, lost, strict=arguments.strict)
    following = services.feed.follow(lambda _: changed.set())
    try:
        while True:
            changed.clear()
            lost = "" if ended else _say_lost(suite, runner.read_logs(suite.id, going_too=True).note, lost)
            progress = runner.progress(suite.id)
            line = progress_document(progress) if arguments.json else progress.words
            if line != last:
                last = line
                print_json(line) if arguments.json else print_line(progress.words)
            was_over, over = over, progress.over or not _goes_on(services, progress)
            if over and (was_over or lost or not progress.unread):
                break
            if not over:  # else a job has ended since its log was read
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


def _say_lost(suite: Suite, why: str, said: str = "") -> str:
    """What cannot be learned of its cluster at the moment, which is told unless that was `said`."""
    if why and why != said:
        print_status(f"{suite.cluster}: {why}")
    return why


def _is_over(services: Services, progress: SuiteProgress) -> bool:
    """Nothing of it goes on, and the logs of its runs were read: its cluster can say nothing more."""
    return (progress.over or not _goes_on(services, progress)) and log_to_read(progress, "", set()) is None


def _cancel(services: Services, arguments: argparse.Namespace) -> int:
    """Cancel what goes on, and send nothing more."""
    suite = _kept(services, arguments)
    progress = services.suites.progress(suite)
    if progress.unfinished:
        services.clusters.require_withdrawing(suite.cluster)
    going, rest = progress.count("unknown", "waiting", "running"), progress.count("not sent", "refused")
    word = row_label("not sent").word
    question = f"Cancel suite {suite.id}, {plural(going, 'job')} and {plural(rest, 'run')} {word}?"
    if progress.unfinished and not arguments.yes and has_terminal() and not confirm(question):
        raise LlmbError("Nothing was cancelled.", exit_code=1)
    cancelled: tuple[str, ...] = ()
    if progress.unfinished:
        progress, cancelled = services.suite_runner.cancel(suite, _tell, terminal_prompter())
    answer(arguments, {"id": suite.id, "cancelled": list(cancelled)}, progress.words)
    return 0


def _list(services: Services, arguments: argparse.Namespace) -> int:
    """All suites, newest first."""
    found = [services.suites.progress(suite) for suite in services.suites.all()]
    if found or arguments.json:
        write(suites(found), arguments)
    else:
        ready = "`llmb-tui suite --help` names those that are ready-made"
        print_status(f"There is no suite yet. `llmb-tui suite submit FILE` submits one; {ready}.")
    return 0


_ACTIONS = {"plan": _plan, "submit": _submit, "watch": _watch, "cancel": _cancel, "list": _list}


def _wanted(services: Services, arguments: argparse.Namespace) -> tuple[Suite, Nodes]:
    """The suite that is meant, and the nodes of its cluster, as far as that was asked for them."""
    name = arguments.suite
    conduct: dict[str, Any] = {one: getattr(arguments, one) for one in ("at_most", "stop_after", "shuffle")}
    if name in READY_MADE and not services.suites.has(name):
        return _ready_made(services, arguments, conduct)
    if services.suites.has(name):
        suite = _of_id(services, arguments)
    else:
        given = selection_mapping(arguments).keys() - {"gpu"}
        if given or arguments.count is not None or arguments.max_scale is not None:
            what = "What a file runs stands in the file."
            fix = f"Leave the selection out, or name one of {', '.join(READY_MADE)} instead of a file."
            raise LlmbError(what, "", fix, exit_code=1)
        gpu = arguments.gpu and arguments.gpu.lower()
        by = {"cluster": arguments.cluster, "gpu": gpu, "procedure": arguments.procedure}
        suite = read_suite(_file(name), services.catalog, **by, **conduct)
    return suite, _nodes(services, suite.cluster, arguments) if arguments.action == "plan" else Nodes()


def _of_id(services: Services, arguments: argparse.Namespace) -> Suite:
    """A suite that was submitted, which no flag changes any more. Raises LlmbError (exit code 1) where one is given."""
    names = ("cluster", "procedure", "at_most", "stop_after", "shuffle", "count", "max_scale")
    given = [*selection_mapping(arguments), *(name for name in names if getattr(arguments, name) is not None)]
    if given:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        what = f"Suite {arguments.suite} was submitted already, and stays as it was agreed to: {flags} changes nothing."
        fix = "Leave that out; the file or the kind of the suite, with --new, begins another one."
        raise LlmbError(what, "", fix, exit_code=1)
    return services.suites.load(arguments.suite)


_OF_ACCEPTANCE = ("size", "dtype", "scale", "strong_scaling", *(field.name for field in LAYOUT))
"""What it has of its own."""


def _ready_made(services: Services, arguments: argparse.Namespace, conduct: dict[str, Any]) -> tuple[Suite, Nodes]:
    kind, cluster, most = arguments.suite, arguments.cluster, arguments.max_scale
    if not cluster:
        raise LlmbError(f"`{kind}` on which cluster?", fix="Add `--cluster NAME`.", exit_code=1)
    if kind == "acceptance" and (given := [name for name in _OF_ACCEPTANCE if name in selection_mapping(arguments)]):
        what = f"An acceptance runs what is published, whatever --{given[0].replace('_', '-')} says."
        fix = f"Leave it out, or name another kind: {', '.join(one for one in READY_MADE if one != kind)}."
        raise LlmbError(what, "", fix, exit_code=1)
    selection = _selection(services, arguments)
    asked = most is None or arguments.action == "plan"
    nodes = _nodes(services, cluster, arguments) if asked else Nodes()
    most = most_gpus(services.catalog, selection, nodes) if most is None else most
    name, wanted = ready_made(kind, services.catalog, selection, most, arguments.count)
    runs = [(one, arguments.procedure or DEFAULT_PROCEDURE) for one in wanted]
    return make_suite(name, cluster, runs, kind=kind, **conduct), nodes


def _selection(services: Services, arguments: argparse.Namespace) -> Selection:
    """What the flags say; what the suite varies need not be said."""
    values = dict(selection_mapping(arguments))
    workload = values.get("workload")
    if isinstance(workload, str):
        releases = services.catalog.releases(workload.lower())
        recipe = next((one for one in releases if values.get("size") in one.models), releases[0])
        if len(recipe.gpus) == 1:
            values.setdefault("gpu", next(iter(recipe.gpus)))
        values |= {name: value.lower() for name in ("gpu", "size") if isinstance(value := values.get(name), str)}
        like = [row for row in rows(recipe) if row.gpu == values.get("gpu") and values.get("size") in (None, row.size)]
        varied = {
            "scaling": ("scale",), "precision": ("dtype",), "acceptance": ("size", "dtype", "scale")
        }.get(arguments.suite, ())  # fmt: skip
        for name in varied if like else ():
            values.setdefault(name, like[0].gpus if name == "scale" else getattr(like[0], name))
    return read_request(services.catalog, values)


def _nodes(services: Services, cluster: str, arguments: argparse.Namespace) -> Nodes:
    """Of the cluster's partition; nothing where it is not asked, has none or does not answer."""
    profile = services.clusters.profile(cluster)
    if arguments.offline or profile.no_login_node:
        return Nodes()
    try:
        return nodes_of(services.clusters.inventory(profile, terminal_prompter()).partitions, profile)
    except LlmbError as error:
        if arguments.suite in READY_MADE and arguments.max_scale is None:
            raise
        print_status(f"{cluster} could not be asked for its free nodes. {error.what}")
        return Nodes()


def _file(name: str) -> Path:
    if not os.path.exists(name):  # False too for what can be no name
        fix = f"Name a file, the id of a suite (`llmb-tui suite list`), or one of {', '.join(READY_MADE)}."
        raise LlmbError(f"There is no file and no suite {name[:80]!r}.", "", fix, exit_code=1)
    return Path(name)


def _kept(services: Services, arguments: argparse.Namespace) -> Suite:
    """A suite that was submitted: by its id, or that of the content or at least the name that is meant."""
    if services.suites.has(arguments.suite):
        return _of_id(services, arguments)
    wanted, _ = _wanted(services, arguments)
    found = services.suites.submitted(wanted)
    if found.digest != wanted.digest:
        print_status(f"Suite {found.id} ({found.name}) is meant, which was submitted otherwise: {found.conduct}.")
    return found


def _agree(services: Services, plan: SuitePlan, going: Suite | None, arguments: argparse.Namespace) -> None:
    """Say what it costs, and ask. Raises LlmbError (exit code 1) where the answer is no."""
    hours = (going and going.agreed_gpu_hours) or plan.gpu_hours
    limit, typed = services.policy.suite_gpu_hours, arguments.gpu_hours
    no = "Nothing was submitted."
    if typed is not None and not _is_shown(typed, hours):
        why = f"`--gpu-hours {given(typed)}` was given, and the suite takes {gpu_hours(hours)}."
        raise LlmbError(no, why, "Look at it again with `llmb-tui suite plan`, and give that number.", exit_code=1)
    above = hours > limit
    if arguments.yes and (not above or typed is not None):
        return
    if not has_terminal() or arguments.yes:
        over = f"It takes {gpu_hours(hours)}, above `limits.suite_gpu_hours`, which is {given(limit)}."
        fix = f"Add --yes{f' --gpu-hours {hours:.1f}' if above else ''} to submit it without asking."
        raise LlmbError(no, over if above else "There is no terminal to ask at.", fix, exit_code=1)
    rest = services.suites.progress(going).count("not sent", "refused") if going else len(plan.rows)
    most = f"{gpu_hours(hours)} and start-up, at most {gpu_hours_digits(plan.most_gpu_hours)} by their time limits"
    what = f"Submit {plural(rest, 'run')} of {len(plan.rows)} to {plan.suite.cluster}: {most}"
    if not above:
        if not confirm(f"{what}?"):
            raise LlmbError(no, exit_code=1)
        return
    print_status(
        f"{what}. That is above the limit of {given(limit)}: type the number of GPU-hours to submit it: ", end=""
    )
    if not _is_shown(read_line(), hours):
        raise LlmbError(no, f"The typed number is not {gpu_hours_digits(hours)}.", exit_code=1)


def _is_shown(said: float | str, hours: float) -> bool:
    """Whether GPU-hours were typed as they are shown: with one decimal, perhaps with commas."""
    try:
        return abs(float(str(said).replace(",", "")) - hours) < _TYPED_WITHIN
    except ValueError:
        return False


def _goes_on(services: Services, progress: SuiteProgress) -> bool:
    """Something of it is on the cluster, or a program submits it."""
    if progress.count("unknown", "waiting", "running") > progress.unreadable:
        return True
    with services.suites.lock(progress.plan.suite.id) as idle:
        return not idle


def _exit_code(progress: SuiteProgress, lost: str, *, strict: bool) -> int:
    """Of all runs the first that applies: 2 for what could not be read of one, 4 for a bad end, 3 for a FAIL.

    `strict`: 3 unless every run of the suite has passed.
    """
    if lost or progress.unread or progress.unreadable:
        return 2
    if progress.count("refused", "failed", "cancelled"):
        return 4
    return 3 if progress.results("FAIL") or (strict and progress.results("PASS") < len(progress.rows)) else 0


def _tell(words: str) -> None:
    print_status(f"  {words}")
