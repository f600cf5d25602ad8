"""All tables of runs use one class of rows and one table of columns."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from llmb_tui.answers import run_columns as table_of_columns
from llmb_tui.answers.run_columns import COLUMNS, RunColumn, RunTable, run_columns
from llmb_tui.answers.run_row import RunRow, row_from_document, row_from_record, row_from_result
from llmb_tui.answers.table import State, Table, cell_text, quantity, toned_text
from llmb_tui.language.quantities import gpu_hours_digits
from llmb_tui.language.states import Stage, Submission, state_label
from llmb_tui.launch.note import Note
from llmb_tui.services import Services
from llmb_tui.watch.report import document
from tests.baseline.answers import LLMB, OTHER_LAYOUT, PLAIN, SLOW, answer

_NARROW = 78
"""Cells of a table of runs on a terminal of 80."""
_MARK = 1
"""Cells of the column of marks, which only screens have. Their column of ages is hidden first."""
_STATE = max(len(state_label(state).text) for state in (*get_args(Stage), *get_args(Submission)))
SCREENS: tuple[RunTable, ...] = ("runs screen", "results screen", "suite screen")
NOTE = Note("after the switch was replaced", ("weekly",))


def spent(row: RunRow) -> float | None:
    if row.steps_done is None or row.step_time_s is None or row.scale is None:
        return None
    return row.steps_done * row.step_time_s * row.scale / 3600


NEW = RunColumn(
    "GPU-hours spent",
    quantity(spent, gpu_hours_digits),
    "spent_gpu_hours",
    width=15,
    figures=True,
    shown=("results", "results csv", "results json", "report", "results screen"),
)


def output(tmp_path: Path, name: str, *words: str) -> str:
    """Output of a verb, without its exit code."""
    return answer(tmp_path / name, words).partition("\n")[2]


def test_a_column_that_is_added_to_the_table_is_in_every_output(
    tmp_path: Path, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_of_columns, "COLUMNS", (*COLUMNS, NEW))
    runs = (PLAIN, SLOW)
    values = [spent(row_from_result(services.history.result(run_id))) for run_id in runs]
    texts = [gpu_hours_digits(value) for value in values if value is not None]
    assert texts == ["1.8", "4.3"]

    headings, *lines = output(tmp_path, "terminal", "results", *runs).splitlines()
    assert headings.endswith(NEW.heading)
    assert [line.split()[-1] for line in lines] == texts

    written = list(csv.DictReader(io.StringIO(output(tmp_path, "csv", "results", *runs, "--format", "csv"))))
    assert [row["spent_gpu_hours"] for row in written] == list(map(repr, values))

    documents = json.loads(output(tmp_path, "json", "results", *runs, "--json"))
    assert [document["result"]["spent_gpu_hours"] for document in documents] == values

    markdown = output(tmp_path, "markdown", "results", *runs, "--format", "markdown").splitlines()
    assert [line.split(" | ")[-1].rstrip(" |") for line in markdown] == [NEW.heading, "---:", *texts]

    output(tmp_path, "html", "report", *runs, "-o", f"{tmp_path}/report.html")
    page = (tmp_path / "report.html").read_text()
    assert f'<th scope="col" class="number">{NEW.heading}</th>' in page
    rows = [re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", row) for row in re.findall(r"<tr>(.*?)</tr>", page)]
    assert [row[-1] for row in rows if row and row[0] in runs] == texts

    (column,) = (column for column in run_columns("results screen") if column.name == "spent_gpu_hours")
    screen = [toned_text(column.cell(row_from_result(services.history.result(run_id)))) for run_id in runs]
    assert screen == [(text, "plain") for text in texts]
    assert (column.heading, column.width, column.figures) == ("GPU-hours spent", 15, True)


@pytest.mark.parametrize("run_id", [PLAIN, OTHER_LAYOUT, SLOW, LLMB])
def test_a_row_from_a_result_equals_the_row_from_its_json(tmp_path: Path, services: Services, run_id: str) -> None:
    (result,) = json.loads(output(tmp_path, "json", "results", run_id, "--json"))
    by_document, by_result = row_from_document(result), row_from_result(services.history.result(run_id))
    for table in ("jobs", "results", "compare", "compare csv", "report", "results screen"):
        columns = run_columns(table)
        assert Table.by(columns, [by_document]) == Table.by(columns, [by_result])


def test_a_row_of_jobs_from_a_stored_document_equals_the_row_from_the_record(services: Services) -> None:
    record = services.feed.record(PLAIN)
    stored = document(record.run, record.state) | {"note": NOTE.text, "tags": list(NOTE.tags)}
    columns = run_columns("jobs")
    rows = [row_from_document(json.loads(json.dumps(stored))), row_from_record(record, NOTE)]
    first, second = Table.by(columns, rows).rows
    assert first == second
    assert NOTE.words in first


@pytest.mark.parametrize("table", get_args(RunTable))
def test_a_table_names_each_of_its_columns_once(table: RunTable) -> None:
    names = [column.name or column.heading for column in run_columns(table)]
    assert len(names) == len(set(names))


def test_the_csv_of_nvidias_rules_has_stable_headings() -> None:
    headings = Table.for_programs(run_columns("rule csv"), []).headings
    assert ",".join(headings) == "run or log,rule,status,mean s,stdev s,TFLOPS/GPU,TFLOPS stdev,samples"


@pytest.mark.parametrize("table", SCREENS)
def test_columns_that_are_never_hidden_fit_a_narrow_screen(table: RunTable) -> None:
    kept = [column for column in run_columns(table) if not column.drop]
    widths = [_MARK, *(column.width or _STATE for column in kept)]
    assert sum(widths) + len(widths) - 1 <= _NARROW


@pytest.mark.parametrize("stage", ["failed", "timeout", "node_fail", "cancelled"])
def test_a_run_that_ended_badly_has_no_verdict_in_a_narrow_column(services: Services, stage: Stage) -> None:
    done = row_from_result(services.history.result(SLOW))
    bad = replace(done, state=State(stage, state_label(stage)))
    for row, verdict, speed in ((done, "FAIL", "82.7"), (bad, "–", "–")):
        (report,) = Table.by(run_columns("report"), [row]).texts()
        cells = dict(zip([column.heading for column in run_columns("report")], report, strict=True))
        assert (cells["verdict"], cells["speed %"]) == (verdict, speed)
    (outcome,) = (column for column in run_columns("results screen") if column.key == "verdict")
    assert [cell_text(outcome.cell(row)) for row in (done, bad)] == ["FAIL", state_label(stage).word]


def test_a_log_of_unknown_origin_has_unknown_cells(tmp_path: Path, home: Path) -> None:
    (result,) = json.loads(output(tmp_path, "log", "results", str(home / "foreign.log"), "--json"))
    (cells,) = Table.by(run_columns("results"), [row_from_document(result)]).texts()
    texts = dict(zip([column.heading for column in run_columns("results")], cells, strict=True))
    assert [texts[name] for name in ("launch", "state", "expected s", "tokens/s", "MFU %")] == ["–"] * 5
    assert (texts["steps"], texts["step s"]) == ("50/50", "4.36")


def test_a_run_that_is_done_without_a_verdict_is_not_shown_as_good(services: Services) -> None:
    judged = row_from_result(services.history.result(PLAIN))
    (outcome,) = (column for column in run_columns("results screen") if column.key == "verdict")
    rows = (judged, replace(judged, result=None, ratio=None))
    assert [toned_text(outcome.cell(row)) for row in rows] == [("✓ PASS", "good"), ("✓ done", "quiet")]
