"""`fetched_files`: files of a run that were fetched from its cluster, and a summary of the first profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Grid, Remark, Remarks, Text
from llmb_tui.answers.table import Column, Table, quantity
from llmb_tui.cluster_files.fetch import Fetched
from llmb_tui.cluster_files.left_files import LeftFiles
from llmb_tui.cluster_files.nsight import ProfileSummary
from llmb_tui.language.quantities import byte_size, count, four_digits, percent, percent_digits, seconds
from llmb_tui.language.states import severity_label
from llmb_tui.language.text import clean_line, plural

FILE: tuple[Column, ...] = (
    Column("file", "name"),
    Column("kind", "kind"),
    Column("size", quantity("size", byte_size)),
)
"""Columns for the files of a run."""
_FETCHED: tuple[Column, ...] = (
    Column("file", "file.name"),
    Column("kind", "file.kind"),
    Column("size", quantity("file.size", byte_size)),
    Column("state", "state"),
)
_LONGEST_KERNEL = 100
_KERNEL: tuple[Column, ...] = (
    Column("%", quantity("time_pct", percent_digits)),
    Column("s", quantity("total_s", four_digits)),
    Column("launches", quantity("launches", count)),
    Column("kernel", lambda kernel: kernel.name[:_LONGEST_KERNEL]),
)
Profile = tuple[str, ProfileSummary]
"""Name of a profile, and its summary."""


def fetched_files(
    run_id: str, left: LeftFiles, target: Path, files: Sequence[Fetched], profile: Profile | None
) -> Answer:
    """The files of a run that were fetched into the folder `target`."""
    return Answer(
        f"Files of run {run_id}",
        lambda: tuple(_blocks(left, target, files, profile)),
        lambda: {
            "id": run_id,
            "folder": left.folder,
            "to": str(target),
            "files": [*map(_document, files)],
            "left_out": [{"name": name, "why": why} for name, why in left.left_out],
            "profile": {"name": profile[0], **asdict(profile[1])} if profile else None,
        },
    )


def _blocks(left: LeftFiles, target: Path, files: Sequence[Fetched], profile: Profile | None) -> Iterator[Block]:
    if not files:
        yield Text(f"No files of the requested kinds in {left.folder}.")
    else:
        present = [file for file in files if file.state != "refused"]
        yield Grid("", Table.by(_FETCHED, files))
        fetched = byte_size(sum(file.bytes_fetched for file in present))
        yield Text(f"{plural(len(present), 'file')} in {target}, {fetched} of it fetched now.")
    if left.left_out:
        label = severity_label("note")
        yield Remarks(tuple(Remark(label, f"{name} was not fetched. {why}") for name, why in left.left_out))
    if profile is not None:
        name, summary = profile
        nccl = percent(summary.nccl_pct)
        caption = f"{name}: {seconds(summary.total_s)} of kernel time, {nccl} of it in NCCL. Longest kernels:"
        yield Grid(caption, Table.by(_KERNEL, summary.kernels))


def _document(fetched: Fetched) -> dict[str, object]:
    return {
        "name": fetched.file.name,
        "kind": fetched.file.kind,
        "bytes": fetched.file.size,
        "state": fetched.state,
        "bytes_fetched": fetched.bytes_fetched,
        "why": clean_line(fetched.why) or None,
    }
