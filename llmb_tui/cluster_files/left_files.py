"""`LeftFiles`: files of a run on its cluster, and those of them that may be fetched. Their names are remote text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Literal

from llmb_tui.cluster.batch import ask
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line
from llmb_tui.launch.run import Run

FileKind = Literal["profile", "trace", "log"]
MOST = 2000
"""Maximum number of files that are listed."""
_DEADLINE_S = 60.0
_LONGEST_PART = 200
"""Maximum length of a part of a name, in bytes: every file system allows it, together with the suffix during a
fetch."""
_TRACE_FOLDERS = {"torch_profile", "pytorch_profile"}
_TRACE = re.compile(r"trace[^/]*\.json(\.gz)?", re.IGNORECASE)
_HIDDEN = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class LeftFile:
    """A regular file. Its name is safe: relative, on one line, and without a way upwards."""

    name: str
    kind: FileKind
    size: int
    """Bytes at the time of the listing."""


@dataclass(frozen=True, slots=True)
class LeftFiles:
    """Files of a run on its cluster."""

    folder: str
    """Real path of the run's folder on the cluster."""
    files: tuple[LeftFile, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    """(clean name, reason why it is not fetched)."""


def list_left(session: Session, run: Run, kinds: frozenset[FileKind]) -> LeftFiles:
    """List the files of these kinds that a run has left.

    Raises LlmbError (exit code 1) if they cannot be listed, and whatever `Session.run_script` raises.
    """
    folder = run.results or (run.job_log.folder if run.job_log else "")
    if not folder:
        raise LlmbError(f"The folder of run {run.id} is not known.", run.note, "Watch the run first.", exit_code=1)
    what = f"{clean_line(folder)} on {session.profile.name} cannot be listed."
    fix = "It may have been removed or moved there; the copy of the log on this machine is kept."
    failed = partial(LlmbError, what, fix=fix, exit_code=1)
    parts = ask(session, remote_text("left_files.sh"), MOST, folder, failed=failed, deadline_s=_DEADLINE_S)
    # Runs of a Hydra recipe by NVIDIA's scripts share one folder, and name their files by the job.
    shared = run.spec is not None and run.spec.shares_folder
    return parse_listing(parts, kinds, run.job_ids if shared else ())


def parse_listing(
    parts: list[tuple[str, str, str]], kinds: frozenset[FileKind], job_ids: tuple[str, ...] = ()
) -> LeftFiles:
    """Parse the (kind, name, text) items of `remote/left_files.sh`. Pure. No resulting name leads upwards.

    `job_ids`: only files whose names contain one of these; empty: all.
    """
    folder = ""
    files: dict[str, LeftFile] = {}
    left_out: dict[str, str] = {}
    for what, name, text in parts:
        kind = kind_of(name)
        if what == "folder":
            folder = name
        elif what == "more":
            left_out["…"] = f"There are more than {MOST} files; only the first by name were listed."
        elif (kind in kinds or (kind is None and _is_odd(name))) and _is_of(name, job_ids):
            relative, shown = name.removeprefix("./"), clean_line(name.removeprefix("./"))[:_LONGEST_PART]
            size = text.strip()
            if why := _why_not(what, name, size):
                left_out[shown] = why
            elif kind is not None:
                files[relative] = LeftFile(relative, kind, int(size))
    if not folder.startswith("/") or clean_line(folder) != folder or _HIDDEN in folder:
        raise LlmbError("The path of the run's folder cannot be used.", clean_line(folder), exit_code=1)
    return LeftFiles(folder, tuple(files[name] for name in sorted(files)), tuple(left_out.items()))


def kind_of(name: str) -> FileKind | None:
    """Kind of a file by its name; None for a file that is not a profile, trace or log."""
    *folders, last = name.split("/")
    if last.endswith((".nsys-rep", ".qdrep", ".qdstrm")):
        return "profile"
    if _TRACE_FOLDERS.intersection(folders) or _TRACE.search(last):
        return "trace"
    return "log" if last.endswith((".out", ".err", ".log")) else None


def _why_not(what: str, name: str, size: str) -> str:
    """Reason why a file is not fetched; empty if it may be."""
    if _is_odd(name):
        return "Its name leads out of the folder, or cannot be written here."
    if what == "link":
        return "It is a symbolic link, which is not followed."
    if what != "file":
        return "It is not a regular file."
    if name.rpartition("/")[2].startswith("sbatch_"):
        return "The output of a batch script may hold tokens; read it on the cluster."
    return "" if size.isascii() and size.isdecimal() and len(size) <= 15 else "Its size cannot be read there."


def _is_odd(name: str) -> bool:
    """Whether a name differs from `./` with plain names below it, which every supported system accepts."""
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
