"""`local_logs` and `cluster_logs`: the training logs below a folder, here or on a cluster."""

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
from llmb_tui.errors import Trouble, trouble_of
from llmb_tui.language.text import clean_line
from llmb_tui.launch.llmb.run import describes_run, run_of
from llmb_tui.watch.training_log import TrainingLog

MOST = 500
"""Logs of one folder on a cluster; there are seldom more than one for each run."""
_PLAN = "configs/plan.json"
_MOST_LINES = 2 << 20
"""Bytes of one log that are read over the line: seven thousand steps."""
_AT_ONCE, _BYTES_AT_ONCE = 32, 4 * _MOST_LINES
"""Logs, and at most so much of them, in one call."""
_DEADLINE_S = 120.0


def local_logs(path: Path) -> tuple[list[TrainingLog], list[str]]:
    """A log itself, or all `*.out` below a folder, by name; and in words which folders below it cannot be read.

    Raises Trouble where it cannot be read itself.
    """
    closed: list[OSError] = []
    try:
        files = [path] if path.is_file() else sorted(_below(path, closed))
        if closed and closed[0].filename == str(path):
            raise closed[0]
    except OSError as error:
        raise trouble_of(error, "read", path) or error from error
    beside: dict[str, str] = {}
    for folder in {file.parent for file in files}:
        for config in (*folder.glob("llmb-config_*.yaml"), folder / _PLAN):
            # What a log's run was is unknown then, and the log is shown all the same.
            with contextlib.suppress(OSError):
                if config.is_file():
                    with config.open("rb") as file:
                        beside[str(config.absolute())] = file.read(MOST_BYTES + 1).decode("utf-8", "replace")
    logs = [TrainingLog(str(file.absolute()), str(file), partial(_open, file)) for file in files]
    return _with_runs(logs, beside), [f"{error.filename} cannot be read. {error.strerror}." for error in closed]


def _below(folder: Path, closed: list[OSError]) -> Iterator[Path]:
    """The logs there, whatever `closed` is given beside them."""
    for place, _, names in os.walk(folder, onerror=closed.append):
        for file in (Path(place, name) for name in names if name.endswith(".out")):
            try:
                if file.is_file():
                    yield file
            except OSError as error:
                closed.append(error)


def _open(file: Path) -> BinaryIO:
    return file.open("rb")


def cluster_logs(
    session: Session, path: str, tell: Callable[[int, int], None]
) -> tuple[list[TrainingLog], list[str], bool]:
    """The same on a cluster, where the lines that tell of steps are read; and whether there are more than `MOST`.

    `tell` is given how many logs were read, and of how many. Raises Trouble (exit code 1) for what is not there, and
    what `Session.run_script` raises.
    """
    found = _asked(session, "training_logs.sh", path, MOST_BYTES, MOST, path)
    sizes = {file: text.strip() for kind, file, text in found if kind == "log"}
    beside = {file: text for kind, file, text in found if kind == "beside"}
    logs: list[TrainingLog] = []
    for some in _batches({file: int(size) if size.isdecimal() else 0 for file, size in sizes.items()}):
        answer = _asked(session, "progress_lines.sh", path, _MOST_LINES, *some)
        lines = {file: text.encode() for kind, file, text in answer if kind == "lines"}
        logs += [_read_there(session, file, lines.get(file)) for file in some]
        tell(len(logs), len(sizes))
    said = (line for kind, _, text in found if kind == "closed" for line in text.splitlines())
    closed = [f"{session.profile.name}: {clean_line(line)}" for line in said]
    return _with_runs(logs, beside), closed, any(kind == "more" for kind, _, _ in found)


def _batches(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """The files in their order, as many together as one answer holds."""
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
    """(kind, path, text) of what a script of `remote/` prints. `path`: what was asked about."""
    what = f"{session.profile.name}:{clean_line(path)} cannot be read."
    failed = partial(Trouble, what, fix="Name a training log, or a folder of them.", exit_code=1)
    return ask(session, remote_text(script), *arguments, failed=failed, deadline_s=_DEADLINE_S)


def _read_there(session: Session, file: str, lines: bytes | None) -> TrainingLog:
    name = f"{session.profile.name}:{clean_line(file)}"
    if lines is None:
        return TrainingLog(file, name, partial(_refuse, file))
    more = len(lines) > _MOST_LINES
    note = f"Only the first {_MOST_LINES >> 20} MiB of its lines of progress were read." if more else ""
    return TrainingLog(file, name, partial(BytesIO, lines[:_MOST_LINES]), note=note)


def _refuse(file: str) -> BinaryIO:
    raise OSError(errno.EACCES, "It may not be read there, or is gone", file)


def _with_runs(logs: list[TrainingLog], beside: Mapping[str, str]) -> list[TrainingLog]:
    """Each log with what llmb-run, or our direct procedure, wrote into its folder, by the paths of those files."""
    names: dict[str, list[str]] = {}
    for log in logs:
        names.setdefault(log.folder, []).append(log.file_name)
    runs = {}
    for path, text in beside.items():
        folder = path.rpartition("/")[0]
        if describes_run(path):
            run = run_of(path, {"run": text, "logs": "\n".join(names.get(folder, ()))})
            runs[folder, run.job_id] = run
    return [
        replace(log, run=runs.get((log.folder, log.job_id)), plan=beside.get(f"{log.folder}/{_PLAN}", ""))
        for log in logs
    ]
