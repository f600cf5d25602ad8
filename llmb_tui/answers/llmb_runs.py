"""`llmb_run_columns`: the table of the runs that NVIDIA's llmb-run started on a cluster."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from llmb_tui.answers.table import Cell, Column, Quantity, Toned
from llmb_tui.language.instants import local_time
from llmb_tui.language.labels import gpus_cell
from llmb_tui.language.quantities import age
from llmb_tui.language.states import Tone

if TYPE_CHECKING:
    from llmb_tui.launch.llmb.import_run import ImportableRun  # loads paramiko


def llmb_run_columns(now: float) -> tuple[Column, ...]:
    """Columns for an `ImportableRun`; a run that cannot be opened is quiet. `now` is Unix time."""
    return (
        Column("job", lambda run: _text(run, run.run.job_id), name="job", width=10),
        Column("workload", lambda run: _text(run, _workload(run)), name="workload", width=27),
        Column("GPUs", _scale, name="scale", width=10),
        Column("release", lambda run: _text(run, run.run.release), name="release", width=9),
        Column("submitted", lambda run: _submitted(run, now), name="submitted", width=21, drop=1),
        Column("age", lambda run: _age(run, now), name="age", width=7),
        Column("imported as", lambda run: _text(run, run.imported_id), name="here", width=19),
        Column("cannot be opened because", "why_not", name="why"),
    )


def runs_summary(cluster: str, runs: Collection[ImportableRun]) -> str:
    """Number of runs, and of those that can be opened."""
    if not runs:
        return f"No run of llmb-run was found on {cluster}."
    return f"{cluster}: {len(runs)} found, {sum(run.can_be_opened for run in runs)} can be opened"


def _tone(run: ImportableRun) -> Tone:
    return "plain" if run.can_be_opened else "quiet"


def _text(run: ImportableRun, text: str) -> Cell:
    return Toned(text, _tone(run)) if text else None


def _workload(importable: ImportableRun) -> str:
    """Workload, precision and, unless the workload's name contains it, size."""
    run = importable.run
    words = f"{run.workload.removeprefix('pretrain_')} {run.dtype}".rstrip()
    return words if run.size in words else f"{words} {run.size}"


def _scale(importable: ImportableRun) -> Cell:
    run = importable.run
    return _text(importable, gpus_cell(run.scale, run.gpu)) if run.scale else None


def _submitted(importable: ImportableRun, now: float) -> Cell:
    written_at = importable.run.written_at
    return _text(importable, local_time(written_at, now)) if written_at else None


def _age(importable: ImportableRun, now: float) -> Cell:
    written_at = importable.run.written_at
    return Quantity(now - written_at, age, _tone(importable)) if written_at else None
