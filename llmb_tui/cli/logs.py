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
from llmb_tui.cli.runs import print_next_steps, settle
from llmb_tui.cli.user import terminal_prompter, user_services
from llmb_tui.errors import LlmbError, error_with_remedy
from llmb_tui.language.states import state_label
from llmb_tui.language.text import clean
from llmb_tui.launch.run import Run
from llmb_tui.services import Services
from llmb_tui.watch.compressed import is_compressed, open_log
from llmb_tui.watch.line_reader import CopiesReader, LineReader
from llmb_tui.watch.lines import LineSplitter
from llmb_tui.watch.logcopy import copies, is_removed
from llmb_tui.watch.report import label_of
from llmb_tui.watch.state import ENDED, RunState

_PIECE = 1 << 18
_POLL_S = 0.5
"""Interval at which a followed file is read, seconds."""


def logs_verb(arguments: argparse.Namespace) -> int:
    """Print the log of a run, or a log file; with `-f`, follow it until the run ends."""
    path = existing_path(arguments.run)
    write = _print_json_line if arguments.json else _print_line
    if path is not None and path.is_file():
        _print_file(path, write, follow=arguments.follow)
        return 0
    services = user_services(arguments)
    if path is not None and not _is_run(services, arguments.run):
        what = f"{path} is a folder." if path.is_dir() else f"{path} is neither a regular file nor a run."
        raise LlmbError(what, "", "Name a log file or a run's id; `llmb-tui results` takes a folder.", exit_code=1)
    run = settle(services, arguments.run, wait=arguments.follow)
    print_next_steps(run)
    if is_removed(services.runs.folder(run.id)):
        target = f"to {run.job_log.path(run.job_ids[-1], 0)} " if run.job_log else ""
        print_status(f"`jobs --prune` removed the local copy of this log. The job wrote it {target}on {run.cluster}.")
        return 0
    stored = services.feed.record(run.id).state
    if not run.job_ids or (stored.stage in ENDED and not stored.log_unread and run.log_read):
        _print_log(services, run, stored, write)
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
    reader, repeats = CopiesReader(folder), RepeatLimiter()

    def print_new(state: RunState) -> None:
        for line in reader.new():
            write(line)
        # A refused login ends the loop and is reported after it.
        note = " ".join(filter(None, ("" if state.link == "closed" else state.link_note, state.slurm_note)))
        duration = repeats.due(note)
        if note and duration is not None:
            print_status(f"{run.cluster}: {note}{duration and f' ({duration})'}")

    print_new(state := services.feed.monitor(run.id).watch(print_new, threading.Event(), terminal_prompter()))
    for line in reader.last():
        write(line)
    if state.stage not in ENDED or state.log_unread:
        raise _unread_log(run, state.link_note if state.link == "closed" else "")
    if not any((folder / copy.name).stat().st_size for copy in copies(folder)):
        print_status(_no_log(run, state))


def _unread_log(run: Run, why: str) -> LlmbError:
    return LlmbError(f"The log of run {run.id} on {run.cluster} could not be read.", why)


def _print_log(services: Services, run: Run, state: RunState, write: Callable[[str], None]) -> None:
    """Print the local copy of a run's log, or the reason why there is none."""
    if state.log_bytes:
        _print_file(services.runs.folder(run.id) / state.log_name, write)
    else:
        print_status(_no_log(run, state))


def _no_log(run: Run, state: RunState) -> str:
    """Reason why a run has no log here, and what to do."""
    if not run.job_ids:
        return f"Run {run.id} is {state_label(run.submission).word}: it has no job and no log. {run.note}".rstrip()
    location = f" Its path on {run.cluster} is {run.job_log.path(run.job_ids[-1], 0)}." if run.job_log else ""
    if state.stage in ENDED:
        return f"Run {run.id} is {label_of(run, state).word}, but this machine has no line of its log.{location}"
    follow = f"`llmb-tui logs {run.id} -f` waits for it."
    return f"Run {run.id} has no log yet; it begins when the job starts.{location} {follow}"


def _print_json_line(line: str) -> None:
    print_streamed(json_line({"line": line}))


def _print_line(line: str) -> None:
    print_streamed(f"{clean(line)}\n")


def _print_file(path: Path, write: Callable[[str], None], *, follow: bool = False) -> None:
    """Write all lines of a file; with `follow`, also new ones until the user interrupts, because a file has no end."""
    for line in _file_lines(path, follow=follow):
        write(line)


def _is_run(services: Services, name: str) -> bool:
    """Whether a run has this id; False for text that cannot be an id."""
    try:
        return services.runs.has(name)
    except LlmbError:
        return False


def _file_lines(path: Path, *, follow: bool = False) -> Iterator[str]:
    """Lines of a file. Raises LlmbError if it cannot be read to its end."""
    reader = LineReader(path)
    try:
        if is_compressed(path):  # such a file does not grow
            yield from _unpacked_lines(path)
            return
        yield from reader.new()
        while follow:
            time.sleep(_POLL_S)
            yield from reader.new()
        yield from reader.last()
    except OSError as error:
        raise error_with_remedy(error, "read", path) or LlmbError(
            f"{path} cannot be read.", f"{error.strerror}.", "Check its file system, and try again."
        ) from error


def _unpacked_lines(path: Path) -> Iterator[str]:
    """Lines of a compressed file. Raises OSError."""
    splitter = LineSplitter()
    with open_log(path) as file:
        while data := file.read(_PIECE):
            yield from splitter.feed(data)
    if splitter.rest:
        yield splitter.rest


def existing_path(name: str) -> Path | None:
    """Path with this name; None if it does not exist or cannot be a path."""
    return Path(name) if os.path.exists(name) else None
