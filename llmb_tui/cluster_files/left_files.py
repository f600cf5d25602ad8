"""`LeftFiles`: what a run has left on its cluster, and what of it may be fetched. Names there are remote text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Literal

from llmb_tui.cluster.batch import ask
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean_line
from llmb_tui.launch.run import Run

FileKind = Literal["profile", "trace", "log"]
MOST = 2000
"""Files that are looked at."""
_DEADLINE_S = 60.0
_LONGEST_PART = 200
"""Bytes of a part of a name: every file system takes so many, and what is added while it is fetched."""
_TRACE_FOLDERS = {"torch_profile", "pytorch_profile"}
_TRACE = re.compile(r"trace[^/]*\.json(\.gz)?", re.IGNORECASE)
_HIDDEN = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class LeftFile:
    """A plain file. Its name is harmless: relative, on one line, and leads nowhere but down."""

    name: str
    kind: FileKind
    size: int
    """Bytes, when it was looked at."""


@dataclass(frozen=True, slots=True)
class LeftFiles:
    """What there is."""

    folder: str
    """True path of the run's folder on the cluster."""
    files: tuple[LeftFile, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    """(name, clean, and why it is not fetched)."""


def list_left(session: Session, run: Run, kinds: frozenset[FileKind]) -> LeftFiles:
    """What a run has left of these kinds.

    Raises Trouble (exit code 1) where that cannot be listed, and what `Session.run_script` raises.
    """
    folder = run.results or (run.job_log.folder if run.job_log else "")
    if not folder:
        raise Trouble(f"It is not known where run {run.id} writes.", run.note, "Watch it first.", exit_code=1)
    what = f"{clean_line(folder)} on {session.profile.name} cannot be listed."
    fix = "It may have been removed there, or moved; the copy of its log is kept here."
    failed = partial(Trouble, what, fix=fix, exit_code=1)
    parts = ask(session, remote_text("left_files.sh"), MOST, folder, failed=failed, deadline_s=_DEADLINE_S)
    # The runs of a Hydra recipe by NVIDIA's own scripts share one folder, and name their files by the job.
    shared = run.spec is not None and run.spec.shares_folder
    return sorted_out(parts, kinds, run.job_ids if shared else ())


def sorted_out(
    parts: list[tuple[str, str, str]], kinds: frozenset[FileKind], job_ids: tuple[str, ...] = ()
) -> LeftFiles:
    """(kind, name, text) of what `remote/left_files.sh` prints. Pure. Whatever the server says, no name leads upwards.

    `job_ids`: only files whose names have one of these; empty: all.
    """
    folder = ""
    files: dict[str, LeftFile] = {}
    left_out: dict[str, str] = {}
    for what, name, text in parts:
        kind = kind_of(name)
        if what == "folder":
            folder = name
        elif what == "more":
            left_out["…"] = f"There are more than {MOST} files; the first of them by name were looked at."
        elif (kind in kinds or (kind is None and _is_odd(name))) and _is_of(name, job_ids):
            relative, shown = name.removeprefix("./"), clean_line(name.removeprefix("./"))[:_LONGEST_PART]
            size = text.strip()
            if why := _why_not(what, name, size):
                left_out[shown] = why
            elif kind is not None:
                files[relative] = LeftFile(relative, kind, int(size))
    if not folder.startswith("/") or clean_line(folder) != folder or _HIDDEN in folder:
        raise Trouble("The run's folder has a name that cannot be used.", clean_line(folder), exit_code=1)
    return LeftFiles(folder, tuple(files[name] for name in sorted(files)), tuple(left_out.items()))


def kind_of(name: str) -> FileKind | None:
    """By its name; None for what is no profile, trace or log."""
    *folders, last = name.split("/")
    if last.endswith((".nsys-rep", ".qdrep", ".qdstrm")):
        return "profile"
    if _TRACE_FOLDERS.intersection(folders) or _TRACE.search(last):
        return "trace"
    return "log" if last.endswith((".out", ".err", ".log")) else None


def _why_not(what: str, name: str, size: str) -> str:
    """Why it is not fetched; empty where it may be."""
    if _is_odd(name):
        return "Its name leads elsewhere, or cannot be written here."
    if what == "link":
        return "It is a symbolic link, which is not followed."
    if what != "file":
        return "It is no file."
    if name.rpartition("/")[2].startswith("sbatch_"):
        return "The output of a batch script may hold tokens; read it on the cluster."
    return "" if size.isascii() and size.isdecimal() and len(size) <= 15 else "Its size cannot be read there."


def _is_odd(name: str) -> bool:
    """Whether it is anything but `./` and names of files below, which every system here takes as they are."""
    parts = name.split("/")
    return (
        clean_line(name) != name
        or _HIDDEN in name
        or "\\" in name
        or parts[0] != "."
        or len(parts) < 2
        or any(part in ("", ".", "..") or len(part.encode()) > _LONGEST_PART for part in parts[1:])
    )


def _is_of(name: str, job_ids: tuple[str, ...]) -> bool:
    return not job_ids or any(re.search(rf"(?<!\d){re.escape(job_id)}(?!\d)", name) for job_id in job_ids)
