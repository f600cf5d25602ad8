"""`prune`: local copies of logs that may be removed, and their removal without loss of results.

The data behind a verdict, a median or a loss check is saved in their place, so that all lists and results stay the
same. A log on its cluster is not touched.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from llmb_tui.errors import LlmbError
from llmb_tui.language.states import state_label
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.store.files import explained_errors, try_lock
from llmb_tui.store.settings import THRESHOLD
from llmb_tui.suites.suite import Suite
from llmb_tui.suites.suites import Suites
from llmb_tui.watch.local_run import LocalRun
from llmb_tui.watch.log_reader import keep_facts, read_log
from llmb_tui.watch.logcopy import copy_names
from llmb_tui.watch.state import ENDED


@dataclass(frozen=True, slots=True)
class LogCopies:
    """The local copies of one run's log."""

    run: Run
    names: tuple[str, ...]
    """Names of the files in the run's folder, oldest first."""
    size: int
    """Total size in bytes."""
    grew_at: float
    """Unix time at which the newest of them last grew."""


@dataclass(frozen=True, slots=True)
class LocalLogs:
    """All local copies of logs on this machine."""

    removable: tuple[LogCopies, ...] = ()
    """Removable copies, largest first."""
    kept: Mapping[str, str] = field(default_factory=dict)
    """Reasons why other copies stay, by run id."""


def local_logs(runs: Runs, before: float, held: Mapping[str, str]) -> LocalLogs:
    """Removable logs: of finished runs, read to their end, and not grown since `before`, Unix time.

    `held`: reasons why logs of some runs must stay, by run id. Reads no log, and no run without one.
    """
    removable, kept = [], {}
    for folder in sorted(runs.directory.iterdir()) if runs.directory.is_dir() else ():
        names = () if folder.is_symlink() else copy_names(folder)
        if not names:
            continue
        try:
            run = runs.load(folder.name)
        except LlmbError as error:
            kept[folder.name] = error.what
            continue
        log = _measured(run, folder, names)
        why = held.get(run.id) or _why_kept(run)
        if why:
            kept[run.id] = why
        elif log.grew_at < before:
            removable.append(log)
    return LocalLogs(tuple(sorted(removable, key=lambda log: log.size, reverse=True)), kept)


def held_by_suites(suites: Suites, cluster: str | None = None) -> dict[str, str]:
    """Reasons why files of unfinished suites stay, by the ids of their runs; of one cluster if it is named.

    Includes runs that were not submitted yet. Raises LlmbError if a suite cannot be read, because it may be unfinished.
    """
    going = [suite for suite in _going(suites) if cluster in (None, suite.cluster)]
    return {run_id: f"Suite {suite.id} ({suite.name}) is active." for suite in going for run_id in suite.run_ids}


def loaded_by_suites(suites: Suites) -> dict[str, str]:
    """Reasons why checkpoints stay, by the paths from which runs of unfinished suites load them, on any cluster.

    Raises LlmbError as `held_by_suites` does.
    """
    paths = [(row.selection.options.load_checkpoint, suite) for suite in _going(suites) for row in suite.rows]
    return {path: f"Suite {suite.id} ({suite.name}) is to load from it." for path, suite in paths if path}


def _going(suites: Suites) -> list[Suite]:
    return [suite for suite in suites.all() if not suites.progress(suite).over]


def remove_log(runs: Runs, log: LogCopies) -> None:
    """Remove the copies of a run's log, and save the data read from them. May be repeated after an interruption.

    Raises LlmbError if the run has changed since it was listed, or if another program is working on it; then nothing is
    removed.
    """
    folder = runs.folder(log.run.id)
    newest = folder / log.names[-1]
    with runs.lock(log.run.id, wait=False) as mine, explained_errors("read", newest), open(newest, "rb") as file:
        run = runs.load(log.run.id)
        local = LocalRun(runs, run, THRESHOLD)
        local.read_on("closed")
        state = local.state()
        why = _why_kept(run) or ("" if mine and try_lock(file.fileno()) else "Another program is working on it.")
        if state.stage not in ENDED or state.log_unread or state.link_note:
            why = why or state.link_note or "Its log does not show how it ended."
        if why or _measured(run, folder, copy_names(folder)) != log:
            raise LlmbError(f"The log of run {run.id} was not removed.", why or "It has changed since it was listed.")
        keep_facts(folder, read_log(newest, run.log_format))
        local.remove_log()


def _why_kept(run: Run) -> str:
    if run.submission == "unknown":
        return "It is unknown whether it was submitted."
    if run.submission != "submitted":
        return f"It is {state_label(run.submission).word}."
    if run.is_active:
        return "It was still active when it was last checked."
    if not run.log_read:
        return f"Its log may not have been read to its end: `llmb-tui watch {run.id}` reads it."
    return ""


def _measured(run: Run, folder: Path, names: tuple[str, ...]) -> LogCopies:
    stats = [os.stat(folder / name, follow_symlinks=False) for name in names]
    return LogCopies(run, names, sum(stat.st_size for stat in stats), stats[-1].st_mtime)
