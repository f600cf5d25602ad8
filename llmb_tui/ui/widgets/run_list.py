"""Columns of the list screens of runs, their problems, and the question before runs are cancelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from textual.content import Content

from llmb_tui.answers.run_columns import RunTable, run_columns
from llmb_tui.answers.run_row import RunRow
from llmb_tui.answers.table import Cell, Column, Quantity, Toned
from llmb_tui.language.quantities import short_age
from llmb_tui.language.states import state_label
from llmb_tui.language.text import plural
from llmb_tui.launch.run import Run
from llmb_tui.ui.text import MUTED, line, lines
from llmb_tui.ui.units import bar_cells
from llmb_tui.ui.widgets.run_header import run_title

_BAR_CELLS = 4
_NAMED_IN_QUESTION = 8


def _progress_bar(row: RunRow) -> Cell:
    return Toned(bar_cells(row.steps_done or 0, row.steps_total or 0, _BAR_CELLS), "active")


def screen_columns(table: RunTable, clock: Callable[[], float] | None = None) -> list[Column]:
    """Return the columns of a list of runs: the `run_columns`, a bar after the steps, and an age before the note.

    `clock` returns Unix time; without it there is no age.
    """
    columns: list[Column] = []
    for column in run_columns(table):
        if column.key == "note" and clock is not None:
            columns.append(age_column(clock))
        columns.append(column)
        if column.key == "steps":
            columns.append(Column("", _progress_bar, "bar", _BAR_CELLS, drop=10))
    return columns


def age_column(clock: Callable[[], float]) -> Column:
    """Return the column of the time since the submission; `clock` returns Unix time."""
    return Column("age", lambda row: Quantity(clock() - row.made_at, short_age, "quiet"), "age", 3, True, drop=1)


def list_problems(silent: Mapping[str, str], unreadable: int, further: Sequence[str] = ()) -> list[str]:
    """Describe the problems of a list: clusters that did not answer, unreadable run files, and `further` notes."""
    notes = [f"Jobs on {cluster} could not be read: {why}" for cluster, why in silent.items()]
    notes += further
    if unreadable:
        notes.append(f"{plural(unreadable, 'run file')} could not be read: see `llmb-tui jobs`.")
    return notes


def cancel_question(runs: Sequence[Run]) -> Content:
    """Ask for confirmation before these runs are cancelled or withdrawn."""
    named = runs[:_NAMED_IN_QUESTION]
    jobs = Counter(run.words for run in runs for _ in run.job_ids)
    prepared = sum(not run.job_ids for run in runs)
    actions = [f"Cancel {words.count(number)}" for words, number in jobs.items()]
    actions += [f"Withdraw {plural(prepared, 'run')} not submitted yet"] * bool(prepared)
    rows = [line(f"{'; '.join(actions)}?"), Content("")]
    for run in named:
        job = f"{', '.join(run.job_ids) or state_label('intended').word:<13}"
        rows.append(line((job, "bold"), f"  {run_title(run)} · {run.cluster}"))
    if len(runs) > len(named):
        rows.append(line((f"and {len(runs) - len(named)} more", MUTED)))
    rows += [Content(""), *(line((words.cancelling, MUTED)) for words in jobs)] if jobs else []
    return lines(*rows)
