"""`logs`: the training log of a run, or any log file."""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from llmb_tui.cli.output import json_line, print_status, print_streamed
from llmb_tui.cli.run_lines import RepeatLimiter
from llmb_tui.cli.runs import say_intent, settle
from llmb_tui.cli.user import terminal_prompter, user_services
from llmb_tui.errors import LlmbError, error_with_remedy
from llmb_tui.language.states import state_label
from llmb_tui.language.text import clean
from llmb_tui.launch.run import Run
from llmb_tui.services import Services
from llmb_tui.watch.line_reader import CopiesReader, LineReader
from llmb_tui.watch.logcopy import copies, is_removed
from llmb_tui.watch.report import label_of
from llmb_tui.watch.state import ENDED, RunState

_GROWS_S = 0.5
"""How often a file that is followed is looked at."""


def logs_verb(arguments: argparse.Namespace) -> int:
    """Print the log of a run, or of a file; with `-f` until the run ends."""
    path = existing(arguments.run)
    write = _json_line if arguments.json else _line
    if path is not None and path.is_file():
        _print_whole(path, write, follow=arguments.follow)
        return 0
    services = user_services(arguments)
    if path is not None and not _is_run(services, arguments.run):
        what = f"{path} is a folder, and no run." if path.is_dir() else f"{path} is no file, and no run."
        raise LlmbError(what, "", "Name one log, or the id of a run; `llmb-tui results` takes a folder.", exit_code=1)
    run = settle(services, arguments.run, wait=arguments.follow)
    say_intent(run)
    if is_removed(services.runs.folder(run.id)):
        at = f", to {run.job_log.path(run.job_ids[-1], 0)}" if run.job_log else ""
        print_status(f"The copy of this log was removed here (`jobs --prune`). It was written on {run.cluster}{at}.")
        return 0
    last = services.feed.record(run.id).state
    if not run.job_ids or (last.stage in ENDED and not last.log_unread and run.log_read):
        _print_log(services, run, last, write)
        return 2 if run.submission == "unknown" else 0
    if arguments.follow:
        _follow_log(services, run, write)
        return 0
    state = services.feed.monitor(run.id).once(terminal_prompter())
    lost = state.link == "lost"
    for note in filter(None, ("" if lost else state.link_note, state.slurm_note)):
        print_status(note)
    _print_log(services, run, state, write)
    if lost or (state.log_unread and state.link_note):
        raise _unread_log(run, state.link_note if lost else "")
    return 0


def _follow_log(services: Services, run: Run, write: Callable[[str], None]) -> None:
    """Print a run's log until the run ends; report problems on stderr. Raises LlmbError if it cannot be read."""
    folder = services.runs.folder(run.id)
    reader, notes = CopiesReader(folder), RepeatLimiter()

    def print_new(state: RunState) -> None:
        for line in reader.new():
            write(line)
        # That nobody is let in ends it, and is said at the end.
        note = " ".join(filter(None, ("" if state.link == "closed" else state.link_note, state.slurm_note)))
        lasting = notes.due(note)
        if note and lasting is not None:
            print_status(f"{run.cluster}: {note}{lasting and f' ({lasting})'}")

    print_new(state := services.feed.monitor(run.id).watch(print_new, threading.Event(), terminal_prompter()))
    for line in reader.last():
        write(line)
    if state.stage not in ENDED or state.log_unread:
        raise _unread_log(run, state.link_note if state.link == "closed" else "")
    if not any((folder / copy.name).stat().st_size for copy in copies(folder)):
        print_status(_no_log(run, state))


def _unread_log(run: Run, why: str) -> LlmbError:
    return LlmbError(f"What {run.cluster} has of the log could not be read now.", why)


def _print_log(services: Services, run: Run, state: RunState, write: Callable[[str], None]) -> None:
    """What is here of a run's log, or why nothing is."""
    if state.log_bytes:
        _print_whole(services.runs.folder(run.id) / state.log_name, write)
    else:
        print_status(_no_log(run, state))


def _no_log(run: Run, state: RunState) -> str:
    """Why there is nothing to print, and what to do."""
    if not run.job_ids:
        return f"Run {run.id} is {state_label(run.submission).word}: it has no job, and so no log. {run.note}".rstrip()
    where = f" It is written to {run.job_log.path(run.job_ids[-1], 0)} on {run.cluster}." if run.job_log else ""
    if state.stage in ENDED:
        return f"Run {run.id} is {label_of(run, state).word}, and no line of its log is here.{where}"
    return (
        f"Run {run.id} has no log yet; it begins when the job starts.{where} `llmb-tui logs {run.id} -f` waits for it."
    )


def _json_line(line: str) -> None:
    print_streamed(json_line({"line": line}))


def _line(line: str) -> None:
    print_streamed(f"{clean(line)}\n")


def _print_whole(path: Path, write: Callable[[str], None], *, follow: bool = False) -> None:
    """`follow`: until somebody ends it, for nobody says of a file that nothing more comes."""
    for line in _lines_of(path, follow=follow):
        write(line)


def _is_run(services: Services, name: str) -> bool:
    """False also for what can be no id."""
    try:
        return services.runs.has(name)
    except LlmbError:
        return False


def _lines_of(path: Path, *, follow: bool = False) -> Iterator[str]:
    """Raises LlmbError where it cannot be read to its end."""
    reader = LineReader(path)
    try:
        yield from reader.new()
        while follow:
            time.sleep(_GROWS_S)
            yield from reader.new()
        yield from reader.last()
    except OSError as error:
        raise error_with_remedy(error, "read", path) or LlmbError(
            f"{path} cannot be read.", f"{error.strerror}.", "Look at its file system, and try again."
        ) from error


def existing(name: str) -> Path | None:
    """The path of that name; None where there is none, or it cannot be one."""
    return Path(name) if os.path.exists(name) else None
