"""`jobs`, `note`, `watch`, `cancel`, `suspend`, `resume`: the runs stored on this machine."""

from __future__ import annotations

import argparse
import contextlib
import threading
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Literal

from llmb_tui.cli.output import print_json, print_line, print_outcome, print_status, write
from llmb_tui.cli.run_lines import RepeatLimiter, line_printer
from llmb_tui.cli.user import confirm, has_terminal, require_changes, terminal_prompter, user_services
from llmb_tui.errors import LlmbError
from llmb_tui.language.states import method_phrase, state_label
from llmb_tui.launch.note import NO_NOTE, Note
from llmb_tui.launch.refusal import NEXT_STEPS
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import ACCOUNTING, Runs
from llmb_tui.launch.submit import withdraw
from llmb_tui.services import Services
from llmb_tui.watch.report import cancel_words, document, state_word
from llmb_tui.watch.run_cache import RunCache
from llmb_tui.watch.runs_feed import TRANSIENT_ERRORS
from llmb_tui.watch.state import BAD_ENDS, ENDED, RunRecord, RunState

_BAD_ENDS = {"refused", "withdrawn", *BAD_ENDS}
_Listed = tuple[float, dict[str, Any], RunRecord | None, Note]
"""Time of creation, JSON object and note of a run, with its record unless it was read from `RunCache`."""


def jobs_verb(arguments: argparse.Namespace) -> int:
    """List all runs, newest first. Runs on a cluster that does not answer have their last known state."""
    services = user_services(arguments)
    if arguments.prune:
        from llmb_tui.cli.prune import prune

        return prune(services, arguments)
    if arguments.yes or arguments.older_than:
        what = "`jobs` takes --yes and --older-than only with --prune."
        raise LlmbError(what, "Without --prune it removes nothing.", exit_code=1)
    cache = RunCache(services.places.runs_done, services.places.runs, services.settings.verdict.threshold)
    feed, services.runs.skipped_ids = services.feed, frozenset(cache.done)
    for run, why in feed.settle_all(terminal_prompter()):
        print_unknown_submission(run, why)
    for cluster, error in feed.poll(terminal_prompter()).items():
        print_status(f"{cluster}: {error.what} Its runs are shown in their last known state.")
    records, unreadable = feed.records.all(), services.runs.unreadable()
    listed: list[_Listed] = [(entry.created_at, entry.document, None, NO_NOTE) for entry in cache.done.values()]
    for record in records:
        note = services.notes.of(record.run.id)
        run_document = document(record.run, record.state) | {"note": note.text, "tags": list(note.tags)}
        listed.append((record.run.created_at, run_document, record, note))
        cache.keep(record.run, record.state, run_document)
    listed.sort(key=itemgetter(0), reverse=True)
    cache.save()
    if arguments.json:  # without the modules of an answer, whose import takes longer than to read a thousand runs
        print_json([run_document for _, run_document, _, _ in listed])
    elif listed:
        _write_runs(listed, arguments)
    elif not unreadable:
        print_status("No runs yet. `llmb-tui submit --cluster C …` or the wizard (`llmb-tui`) submits one.")
    for record in records:
        if record.state.link_note:
            print_status(f"run {record.run.id}: {record.state.link_note}")
        print_next_steps(record.run)
        if record.run.is_active:
            print_cancel_note(record.run)
    for error in unreadable:
        print_status(str(error))
    return 0


def _write_runs(listed: Sequence[_Listed], arguments: argparse.Namespace) -> None:
    from llmb_tui.answers.run_row import row_from_document, row_from_record
    from llmb_tui.answers.runs import runs

    rows = [
        row_from_record(record, note) if record else row_from_document(run_document)
        for _, run_document, record, note in listed
    ]
    write(runs(rows, [run_document for _, run_document, _, _ in listed]), arguments)


def print_run(services: Services, run_id: str, *, as_json: bool) -> int:
    """Print the id of a run, or its JSON object as known on this machine."""
    if as_json:
        record = services.feed.record(run_id)
        print_json(document(record.run, record.state))
    else:
        print_line(run_id)
    return 0


def settle(services: Services, run_id: str, *, wait: bool = False) -> Run:
    """Read a run; ask its cluster first if its submission is unknown.

    `wait`: ask again until it is known, and print the reason from time to time. Raises LlmbError for an unknown run, or
    if the cluster rejects the login.
    """
    repeats = RepeatLimiter()

    def print_reason(run: Run, why: str) -> None:
        duration = repeats.due(why)
        if duration is not None:
            print_unknown_submission(run, why, duration)

    stop = threading.Event()
    if not wait:
        stop.set()
    return services.feed.settle_with_retries(run_id, print_reason, stop, terminal_prompter(), passing=TRANSIENT_ERRORS)


def print_cancel_note(run: Run) -> None:
    """Print the outcome of a cancel whose answer was lost; nothing for other runs."""
    if run.cancel_note:
        print_status(f"run {run.id}: {run.cancel_note}")


def print_next_steps(run: Run) -> None:
    """Print the next steps for a run that is not submitted; nothing for other runs."""
    if run.submission == "intended":
        print_status(f"Run {run.id} is not submitted. {NEXT_STEPS.format(run.id)}")


def print_unknown_submission(run: Run, why: str, duration: str = "") -> None:
    """Print why it is not known yet whether a run was submitted."""
    age = f" ({duration})" if duration else ""
    print_status(f"{run.cluster}: it is not known yet whether run {run.id} was submitted{age}. {why}".rstrip())


def watch_verb(arguments: argparse.Namespace) -> int:
    """Follow a run until it ends, or print its current state."""
    services = user_services(arguments)
    run = settle(services, arguments.run, wait=not arguments.once)
    if run.submission == "intended" and not arguments.once:
        what = f"Run {run.id} cannot be watched: it is not submitted yet."
        raise LlmbError(what, run.note, NEXT_STEPS.format(run.id), exit_code=1)
    print_next_steps(run)
    stored = _stored_state(services, run)
    if arguments.once:
        return _print_state(services, stored or services.feed.monitor(run.id).once(terminal_prompter()), arguments)
    if not arguments.json:
        from llmb_tui.launch.procedures import PROCEDURES  # slow, and `jobs` does not need it

        print_line(f"run {run.id} on {run.cluster}, {PROCEDURES[run.procedure].title}")
    publish = _json_printer(services.runs, run) if arguments.json else line_printer(run, print_line)
    if stored:
        publish(state := stored)
    else:
        state = services.feed.monitor(run.id).watch(publish, threading.Event(), terminal_prompter())
        if arguments.json:
            publish(state)  # a cancel may have been resolved since
    print_cancel_note(services.runs.load(run.id))
    if not arguments.json:
        print_line(final_line(run, state))
        if state.stage in BAD_ENDS:
            print_line(f"log: {services.runs.folder(run.id) / state.log_name}")
    if run.submission == "submitted" and state.stage not in ENDED:
        print_status(f"{run.cluster}: the run is no longer followed. {state.link_note}".rstrip())
        return 2
    return exit_code(run, state, strict=arguments.strict)


def _print_state(services: Services, state: RunState, arguments: argparse.Namespace) -> int:
    from llmb_tui.answers.run_row import row_from_record
    from llmb_tui.answers.runs import run as run_answer

    run = services.runs.load(state.run_id)
    for note in filter(None, (state.link_note, state.slurm_note)):
        print_status(note)
    print_cancel_note(run)
    write(run_answer(row_from_record(RunRecord(run, state)), document(run, state)), arguments)
    return 2 if state.link == "lost" else exit_code(run, state, strict=arguments.strict)


def _stored_state(services: Services, run: Run) -> RunState | None:
    """Stored state of a run that is finished or has no job; None if its cluster may change it.

    The cluster is asked once more for the missing data of a finished run; a failure of that is ignored.
    """
    state = services.feed.record(run.id).state
    if not run.job_ids:
        return state
    if run.is_active or state.stage not in ENDED or state.log_unread:
        return None
    if run.log_read is False or not (services.runs.folder(run.id) / ACCOUNTING).exists():
        with contextlib.suppress(LlmbError):
            services.feed.monitor(run.id).once()
        state = services.feed.record(run.id).state
    return state


def cancel_verb(arguments: argparse.Namespace) -> int:
    """Cancel every job of a run, after a confirmation if there is a terminal."""
    services = user_services(arguments)
    run = _refreshed_run(services, services.runs.load(arguments.run))
    if run.submission == "intended":
        services.clusters.require_withdrawing(run.cluster)
    elif run.is_active or run.submission == "unknown":
        require_changes(services, run.cluster)
        run = settle(services, run.id)
    if run.submission == "unknown":
        raise LlmbError(f"Nothing was cancelled: it is not known yet whether run {run.id} has a job.", run.note)
    if run.submission == "intended":
        run = withdraw(services.runs, services.journal, run)
    if not run.job_ids:
        word = state_label(run.submission).word
        message = f"Run {run.id} is {word} and has no job: nothing was cancelled. {run.note}".rstrip()
        print_outcome(arguments, {"id": run.id, "cancelled": []}, message)
        return 0
    if not run.is_active:
        print_outcome(arguments, {"id": run.id, "cancelled": []}, cancel_words(run, ()))
        print_cancel_note(run)
        return 0
    jobs = ", ".join(run.job_ids)
    if not arguments.yes and has_terminal() and not confirm(f"Cancel job {jobs} on {run.cluster}?"):
        raise LlmbError("Nothing was cancelled.", exit_code=1)
    cancelled = services.feed.cancel(run, terminal_prompter())
    print_outcome(arguments, {"id": run.id, "cancelled": list(cancelled)}, cancel_words(run, cancelled))
    print_cancel_note(services.runs.load(run.id))
    return 0


def _refreshed_run(services: Services, run: Run) -> Run:
    """Current state of a run; asks the cluster about a failed job, which a user may have requeued."""
    if run.job_ids and not run.is_active and run.job_state not in ("COMPLETED", "CANCELLED"):
        with contextlib.suppress(LlmbError):  # its cluster may have been removed here
            services.feed.monitor(run.id).once()
        run = services.runs.load(run.id)
    return run


def suspend_verb(arguments: argparse.Namespace) -> int:
    """Suspend a run's job and release its nodes."""
    return _change(arguments, "suspend")


def resume_verb(arguments: argparse.Namespace) -> int:
    """Resume a run's suspended job."""
    return _change(arguments, "resume")


def _change(arguments: argparse.Namespace, action: Literal["suspend", "resume"]) -> int:
    services = user_services(arguments)
    run = services.runs.load(arguments.run)
    require_changes(services, run.cluster)
    if not run.is_active or not run.job_ids:
        raise LlmbError(f"Run {run.id} has no job to {action}: it is finished or not submitted.", exit_code=1)
    services.feed.change(run, action, terminal_prompter())
    message = f"{run.cluster} was asked to {action} run {run.id}; `llmb-tui watch {run.id} --once` shows its state."
    print_outcome(arguments, {"id": run.id, "asked": action}, message)
    return 0


def note_verb(arguments: argparse.Namespace) -> int:
    """Change the note or the tags of a run if requested, and print them."""
    notes = user_services(arguments).notes
    note = notes.change(arguments.run, arguments.text, arguments.tag, arguments.untag)
    if arguments.json:
        print_json({"id": arguments.run, "note": note.text, "tags": list(note.tags)})
    elif note:
        print_line(note.words)
    return 0


def exit_code(run: Run, state: RunState, *, strict: bool = False) -> int:
    """Exit code: 4 for a failed or cancelled run, 2 for an unknown or incompletely read one, 3 for a FAIL, else 0.

    `strict`: 3 for everything but a PASS, also without a verdict.
    """
    word = state_word(run, state)
    if word in _BAD_ENDS:
        return 4
    if word == "unknown" or (word == "done" and state.log_unread):
        return 2
    result = state.verdict.result if state.verdict and word == "done" else None
    return 3 if result == "FAIL" or (strict and result != "PASS") else 0


def final_line(run: Run, state: RunState) -> str:
    """Verdict of a run in one line."""
    from llmb_tui.answers.run_columns import verdict_words

    verdict, estimate = state.verdict, run.plan.estimate
    if verdict is None or estimate is None:
        return f"verdict: none. {state.no_verdict} {state.why_failed}".rstrip()
    reference = f" of {method_phrase(estimate.method)}"
    return f"verdict: {verdict_words(verdict.result, verdict.ratio, verdict.reasons, reference)}"


def _json_printer(runs: Runs, run: Run) -> Callable[[RunState], None]:
    """Callback that prints each change; it reads the run each time, because a state lacks, for example, its cancel."""
    last_document: dict[str, object] = {}

    def publish(state: RunState) -> None:
        nonlocal last_document, run
        with contextlib.suppress(LlmbError):  # the file is being replaced or is unreadable
            run = runs.load(run.id)
        current = document(run, state)
        if current != last_document:
            last_document = current
            print_json(current)

    return publish
