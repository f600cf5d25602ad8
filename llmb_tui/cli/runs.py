"""`jobs`, `note`, `watch`, `cancel`, `suspend`, `resume`: runs that were submitted."""

from __future__ import annotations

import argparse
import contextlib
import threading
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Literal

from llmb_tui.cli.output import answer, print_json, print_line, print_status, write
from llmb_tui.cli.run_lines import RepeatLimiter, line_teller
from llmb_tui.cli.user import confirm, has_terminal, require_changes, terminal_prompter, user_services
from llmb_tui.errors import LlmbError
from llmb_tui.language.states import method_phrase, state_label
from llmb_tui.launch.note import NO_NOTE, Note
from llmb_tui.launch.refusal import WITH_INTENT
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
    """All runs, newest first; a cluster that does not answer leaves its runs as they were last seen."""
    services = user_services(arguments)
    if arguments.prune:
        from llmb_tui.cli.prune import prune

        return prune(services, arguments)
    if arguments.yes or arguments.older_than:
        raise LlmbError("--yes and --older-than go with --prune.", "The list of runs changes nothing.", exit_code=1)
    kept = RunCache(services.places.runs_done, services.places.runs, services.settings.verdict.threshold)
    feed, services.runs.passed_over = services.feed, frozenset(kept.done)
    for run, why in feed.settle_all(terminal_prompter()):
        say_unknown(run, why)
    for cluster, error in feed.poll(terminal_prompter()).items():
        print_status(f"{cluster}: {error.what} Its runs are shown as they were last seen.")
    records, unreadable = feed.records.all(), services.runs.unreadable()
    found: list[_Listed] = [(one.created_at, one.document, None, NO_NOTE) for one in kept.done.values()]
    for record in records:
        note = services.notes.of(record.run.id)
        said = {"note": note.text, "tags": list(note.tags)}
        found.append((record.run.created_at, document(record.run, record.state) | said, record, note))
        kept.keep(record.run, record.state, found[-1][1])
    found.sort(key=itemgetter(0), reverse=True)
    kept.save()
    if arguments.json:  # without the modules of an answer, whose import takes longer than to read a thousand runs
        print_json([one for _, one, _, _ in found])
    elif found:
        _write_runs(found, arguments)
    elif not unreadable:
        print_status(
            "There is no run yet. `llmb-tui submit --cluster C …` submits one, and so does the wizard's last step."
        )
    for record in records:
        if record.state.link_note:
            print_status(f"run {record.run.id}: {record.state.link_note}")
        say_intent(record.run)
        if record.run.is_active:
            say_cancel(record.run)
    for error in unreadable:
        print_status(str(error))
    return 0


def _write_runs(found: Sequence[_Listed], arguments: argparse.Namespace) -> None:
    from llmb_tui.answers.run_row import row_from_document, row_from_record
    from llmb_tui.answers.runs import runs

    rows = [row_from_record(record, note) if record else row_from_document(one) for _, one, record, note in found]
    write(runs(rows, [one for _, one, _, _ in found]), arguments)


def print_run(services: Services, run_id: str, *, as_json: bool) -> int:
    """The id of a run, or its JSON object as far as is known here."""
    if as_json:
        record = services.feed.record(run_id)
        print_json(document(record.run, record.state))
    else:
        print_line(run_id)
    return 0


def settle(services: Services, run_id: str, *, wait: bool = False) -> Run:
    """Read a run; ask its cluster first if its submission is unknown.

    `wait`: ask again until it is known, and print the reason now and then. Raises LlmbError for an unknown run, or if
    the cluster rejects the login.
    """
    reasons = RepeatLimiter()

    def tell(run: Run, why: str) -> None:
        lasting = reasons.due(why)
        if lasting is not None:
            say_unknown(run, why, lasting)

    stop = threading.Event()
    if not wait:
        stop.set()
    return services.feed.settle_with_retries(run_id, tell, stop, terminal_prompter(), passing=TRANSIENT_ERRORS)


def say_cancel(run: Run) -> None:
    """What became of a cancel whose answer was lost; nothing of any other."""
    if run.cancel_note:
        print_status(f"run {run.id}: {run.cancel_note}")


def say_intent(run: Run) -> None:
    """What can be done with a run of which nothing was sent; nothing of any other."""
    if run.submission == "intended":
        print_status(f"Nothing of run {run.id} was sent. {WITH_INTENT.format(run.id)}")


def say_unknown(run: Run, why: str, lasting: str = "") -> None:
    """Why it is not known yet whether a run was submitted."""
    still = f" ({lasting})" if lasting else ""
    print_status(f"{run.cluster}: it is not known yet whether run {run.id} was submitted{still}. {why}".rstrip())


def watch_verb(arguments: argparse.Namespace) -> int:
    """Follow a run to its end, or say how it stands."""
    services = user_services(arguments)
    run = settle(services, arguments.run, wait=not arguments.once)
    if run.submission == "intended" and not arguments.once:
        what = f"Nothing of run {run.id} was sent yet, so there is nothing to watch."
        raise LlmbError(what, run.note, WITH_INTENT.format(run.id), exit_code=1)
    say_intent(run)
    last = _last_state(services, run)
    if arguments.once:
        return _print_state(services, last or services.feed.monitor(run.id).once(terminal_prompter()), arguments)
    if not arguments.json:
        from llmb_tui.launch.procedures import PROCEDURES  # `jobs` needs no words of them

        print_line(f"run {run.id} on {run.cluster}, {PROCEDURES[run.procedure].title}")
    tell = _json_teller(services.runs, run) if arguments.json else line_teller(run, print_line)
    if last:
        tell(state := last)
    else:
        state = services.feed.monitor(run.id).watch(tell, threading.Event(), terminal_prompter())
        if arguments.json:
            tell(state)  # a cancel may have been settled since
    say_cancel(services.runs.load(run.id))
    if not arguments.json:
        print_line(final_line(run, state))
        if state.stage in BAD_ENDS:
            print_line(f"log: {services.runs.folder(run.id) / state.log_name}")
    if run.submission == "submitted" and state.stage not in ENDED:
        print_status(f"{run.cluster}: the run is not followed any more. {state.link_note}".rstrip())
        return 2
    return exit_code(run, state, strict=arguments.strict)


def _print_state(services: Services, state: RunState, arguments: argparse.Namespace) -> int:
    from llmb_tui.answers.run_row import row_from_record
    from llmb_tui.answers.runs import run as run_answer

    run = services.runs.load(state.run_id)
    for note in filter(None, (state.link_note, state.slurm_note)):
        print_status(note)
    say_cancel(run)
    write(run_answer(row_from_record(RunRecord(run, state)), document(run, state)), arguments)
    return 2 if state.link == "lost" else exit_code(run, state, strict=arguments.strict)


def _last_state(services: Services, run: Run) -> RunState | None:
    """How a run stands by what is here, where it is over or has no job; None where its cluster may change that.

    What else the cluster has of one that is over is asked for once more, and nobody minds if it cannot be.
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
    """Cancel every job of a run, after a yes where there is a terminal."""
    services = user_services(arguments)
    run = _looked_at_again(services, services.runs.load(arguments.run))
    if run.submission == "intended":
        services.clusters.require_withdrawing(run.cluster)
    elif run.is_active or run.submission == "unknown":
        require_changes(services, run.cluster)
        run = settle(services, run.id)
    if run.submission == "unknown":
        raise LlmbError(f"It is not known yet whether run {run.id} has a job. Nothing was cancelled.", run.note)
    if run.submission == "intended":
        run = withdraw(services.runs, services.journal, run)
    if not run.job_ids:
        word = state_label(run.submission).word
        nothing = f"Run {run.id} is {word} and has no job: nothing was cancelled. {run.note}".rstrip()
        answer(arguments, {"id": run.id, "cancelled": []}, nothing)
        return 0
    if not run.is_active:
        answer(arguments, {"id": run.id, "cancelled": []}, cancel_words(run, ()))
        say_cancel(run)
        return 0
    jobs = ", ".join(run.job_ids)
    if not arguments.yes and has_terminal() and not confirm(f"Cancel job {jobs} on {run.cluster}?"):
        raise LlmbError("Nothing was cancelled.", exit_code=1)
    cancelled = services.feed.cancel(run, terminal_prompter())
    answer(arguments, {"id": run.id, "cancelled": list(cancelled)}, cancel_words(run, cancelled))
    say_cancel(services.runs.load(run.id))
    return 0


def _looked_at_again(services: Services, run: Run) -> Run:
    """A run whose job had failed as it is now: somebody may have had Slurm start it once more."""
    if run.job_ids and not run.is_active and run.job_state not in ("COMPLETED", "CANCELLED"):
        with contextlib.suppress(LlmbError):  # its cluster may not be known here any more
            services.feed.monitor(run.id).once()
        run = services.runs.load(run.id)
    return run


def suspend_verb(arguments: argparse.Namespace) -> int:
    """Let a run's job give its nodes back; it stays, and can be resumed."""
    return _change(arguments, "suspend")


def resume_verb(arguments: argparse.Namespace) -> int:
    """Let a suspended job of a run begin again."""
    return _change(arguments, "resume")


def _change(arguments: argparse.Namespace, word: Literal["suspend", "resume"]) -> int:
    services = user_services(arguments)
    run = services.runs.load(arguments.run)
    require_changes(services, run.cluster)
    if not run.is_active or not run.job_ids:
        raise LlmbError(f"Run {run.id} has no job to {word}: it is over, or has none yet.", exit_code=1)
    services.feed.change(run, word, terminal_prompter())
    words = f"{run.cluster} was asked to {word} run {run.id}; `llmb-tui watch {run.id} --once` says how it stands."
    answer(arguments, {"id": run.id, "asked": word}, words)
    return 0


def note_verb(arguments: argparse.Namespace) -> int:
    """Change the note or the tags of a run, where that is asked for; then say them."""
    notes = user_services(arguments).notes
    note = notes.change(arguments.run, arguments.text, arguments.tag, arguments.untag)
    if arguments.json:
        print_json({"id": arguments.run, "note": note.text, "tags": list(note.tags)})
    elif note:
        print_line(note.words)
    return 0


def exit_code(run: Run, state: RunState, *, strict: bool = False) -> int:
    """4 for a run that did not end well, 2 for one that is not known or not read whole, 3 for a FAIL, else 0.

    `strict`: 3 for every other result than the PASS of a finished run, also without a verdict.
    """
    word = state_word(run, state)
    if word in _BAD_ENDS:
        return 4
    if word == "unknown" or (word == "done" and state.log_unread):
        return 2
    result = state.verdict.result if state.verdict and word == "done" else None
    return 3 if result == "FAIL" or (strict and result != "PASS") else 0


def final_line(run: Run, state: RunState) -> str:
    """How a run ended, in one line."""
    from llmb_tui.answers.run_columns import verdict_words

    verdict, estimate = state.verdict, run.plan.estimate
    if verdict is None or estimate is None:
        return f"verdict: none. {state.no_verdict} {state.why_failed}".rstrip()
    of = f" of {method_phrase(estimate.method)}"
    return f"verdict: {verdict_words(verdict.result, verdict.ratio, verdict.reasons, of)}"


def _json_teller(runs: Runs, run: Run) -> Callable[[RunState], None]:
    """A `publish` that prints each change; what is not in a state, such as a cancel, is read anew each time."""
    last_document: dict[str, object] = {}

    def publish(state: RunState) -> None:
        nonlocal last_document, run
        with contextlib.suppress(LlmbError):  # it cannot be read at the moment
            run = runs.load(run.id)
        now = document(run, state)
        if now != last_document:
            last_document = now
            print_json(now)

    return publish
