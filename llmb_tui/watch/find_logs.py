"""`local_logs` and `cluster_logs`: the training logs below a folder, on this machine or on a cluster."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from llmb_tui.cluster.batch import ask
from llmb_tui.cluster.llmb.files import MOST_BYTES
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.errors import LlmbError, error_with_remedy
from llmb_tui.language.redact import server_words
from llmb_tui.language.text import clean_line, count_in
from llmb_tui.launch.llmb.run import describes_run, run_of
from llmb_tui.watch.compressed import open_log
from llmb_tui.watch.training_log import TrainingLog

MOST = 500
"""Maximum number of logs of one folder on a cluster; a folder seldom has more than one log per run."""
_PLAN = "configs/plan.json"
_MOST_LINES = 2 << 20
"""Maximum number of bytes of one log that are transferred: the lines of seven thousand steps."""
_AT_ONCE, _BYTES_AT_ONCE = 32, 4 * _MOST_LINES
"""Maximum number of logs, and of their bytes, in one call."""
_DEADLINE_S = 120.0


def local_logs(path: Path) -> tuple[list[TrainingLog], list[str]]:
    """One log file, or all `*.out` below a folder, sorted by name; and a message for each folder that cannot be read.

    Raises LlmbError if the path itself cannot be read.
    """
    closed: list[OSError] = []
    try:
        files = [path] if path.is_file() else sorted(_below(path, closed))
        if closed and closed[0].filename == str(path):
            raise closed[0]
    except OSError as error:
        raise error_with_remedy(error, "read", path) or error from error
    companions: dict[str, str] = {}
    for folder in {file.parent for file in files}:
        for config in (*folder.glob("llmb-config_*.yaml"), folder / _PLAN):
            # If such a file cannot be read, the log is shown without the facts about its run.
            with contextlib.suppress(OSError):
                if config.is_file():
                    with config.open("rb") as file:
                        companions[str(config.absolute())] = file.read(MOST_BYTES + 1).decode("utf-8", "replace")
    logs = [TrainingLog(str(file.absolute()), str(file), partial(open_log, file)) for file in files]
    return _with_runs(logs, companions), [f"{error.filename} cannot be read. {error.strerror}." for error in closed]


def _below(folder: Path, closed: list[OSError]) -> Iterator[Path]:
    """Log files below the folder; errors of unreadable folders are added to `closed`."""
    for place, _, names in os.walk(folder, onerror=closed.append):
        for file in (Path(place, name) for name in names if name.endswith(".out")):
            try:
                if file.is_file():
                    yield file
            except OSError as error:
                closed.append(error)


def cluster_logs(
    session: Session, path: str, report_progress: Callable[[int, int], None]
) -> tuple[list[TrainingLog], list[str], bool]:
    """The logs below a path on a cluster, reduced to their progress lines, and whether there are more than `MOST`.

    `report_progress` gets the number of logs read, and the number of all. Raises LlmbError (exit code 1) for a path
    that does not exist, and whatever `Session.run_script` raises.
    """
    answers = _asked(session, "training_logs.sh", path, MOST_BYTES, MOST, path)
    sizes = {file: text.strip() for kind, file, text in answers if kind == "log"}
    companions = {file: text for kind, file, text in answers if kind == "beside"}
    logs: list[TrainingLog] = []
    for batch in _batches({file: count_in(size) or 0 for file, size in sizes.items()}):
        lines_answer = _asked(session, "progress_lines.sh", path, _MOST_LINES, *batch)
        lines = {file: text.encode() for kind, file, text in lines_answer if kind == "lines"}
        logs += [_read_there(session, file, lines.get(file)) for file in batch]
        report_progress(len(logs), len(sizes))
    messages = (line for kind, _, text in answers if kind == "closed" for line in text.splitlines())
    closed = [f"{session.profile.name}: {clean_line(server_words(line))}" for line in messages]
    return _with_runs(logs, companions), closed, any(kind == "more" for kind, _, _ in answers)


def _batches(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """The files in order, in batches that fit into one answer."""
    batch, total = list[str](), 0
    for file, size in sizes.items():
        read = min(size, _MOST_LINES)
        if batch and (len(batch) == _AT_ONCE or total + read > _BYTES_AT_ONCE):
            yield batch
            batch, total = [], 0
        batch, total = [*batch, file], total + read
    if batch:
        yield batch


def _asked(session: Session, script: str, path: str, *arguments: str | int) -> list[tuple[str, str, str]]:
    """(kind, path, text) items printed by a script of `remote/`. `path`: path named in an error."""
    what = f"{session.profile.name}:{clean_line(path)} cannot be read."
    failed = partial(LlmbError, what, fix="Name a training log, or a folder of them.", exit_code=1)
    return ask(session, remote_text(script), *arguments, failed=failed, deadline_s=_DEADLINE_S)


def _read_there(session: Session, file: str, lines: bytes | None) -> TrainingLog:
    name = f"{session.profile.name}:{clean_line(file)}"
    if lines is None:
        return TrainingLog(file, name, partial(_refuse, file))
    more = len(lines) > _MOST_LINES
    note = f"Only the first {_MOST_LINES >> 20} MiB of its progress lines were read." if more else ""
    return TrainingLog(file, name, partial(BytesIO, lines[:_MOST_LINES]), note=note)


def _refuse(file: str) -> BinaryIO:
    raise OSError(errno.EACCES, "Permission denied, or the file was removed", file)


def _with_runs(logs: list[TrainingLog], companions: Mapping[str, str]) -> list[TrainingLog]:
    """Add to each log the files, by path, that llmb-run or our script wrote into its folder."""
    names: dict[str, list[str]] = {}
    for log in logs:
        names.setdefault(log.folder, []).append(log.file_name)
    runs = {}
    for path, text in companions.items():
        folder = path.rpartition("/")[0]
        if describes_run(path):
            run = run_of(path, {"run": text, "logs": "\n".join(names.get(folder, ()))})
            runs[folder, run.job_id] = run
    return [
        replace(log, run=runs.get((log.folder, log.job_id)), plan=companions.get(f"{log.folder}/{_PLAN}", ""))
        for log in logs
    ]
