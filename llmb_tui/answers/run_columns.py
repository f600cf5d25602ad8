"""`COLUMNS`: all columns of all tables of runs. A table has the columns that name it, in this order. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from llmb_tui.answers.run_row import RunRow
from llmb_tui.answers.table import Cell, Column, Quantity, State, quantity
from llmb_tui.language.labels import gpus_cell, gpus_label, workload_label
from llmb_tui.language.quantities import (
    days_digits,
    gpu_hours_digits,
    percent,
    percent_digits,
    step_time_digits,
    tflops,
    tokens_per_s,
    two_digits,
)
from llmb_tui.language.states import NO_ESTIMATE, VerdictResult, method_word, verdict_label
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.plan.plan import expected_step_time

RunTable = Literal[
    "jobs",
    "results",
    "results csv",
    "results json",
    "rule",
    "rule csv",
    "compare",
    "compare csv",
    "suite plan",
    "suite",
    "report",
    "runs screen",
    "results screen",
    "suite screen",
]
"""A table, named by the output that contains it. `results json`: additional values under `result` in a run's JSON
object. `rule`: a rule of NVIDIA's tools. Screens insert further columns: marks, bars and ages."""


@dataclass(frozen=True, slots=True)
class RunColumn(Column):
    """A column of tables of runs, whose rows are `RunRow`s."""

    shown: tuple[RunTable, ...] = ()
    """Tables that have the column."""


_CSV_NAMES: Mapping[RunTable, Mapping[str, str]] = {
    "compare csv": {
        "id": "run", "step_time_s": "step s", "steady_mean_s": "mean s", "steady_median_s": "median s",
        "steady_stdev_s": "deviation s", "tokens_per_s": "tokens/s", "tflops_per_gpu": "TFLOPS/GPU", "mfu_pct": "MFU %",
        "days_per_1t_tokens": "days/1T", "result": "verdict",
    },
    "rule csv": {"id": "run or log", "deviation s": "stdev s", "TFLOPS/GPU deviation": "TFLOPS stdev"},
}  # fmt: skip
"""Headings of CSV that differ from the column's name, by that name. They never change."""


def run_columns(table: RunTable) -> tuple[RunColumn, ...]:
    """The columns of a table, in order."""
    names, shown = _CSV_NAMES.get(table, {}), (column for column in COLUMNS if table in column.shown)
    return tuple(replace(column, name=names.get(column.name or column.heading, column.name)) for column in shown)


def verdict_words(result: VerdictResult, ratio: float, reasons: tuple[str, ...], of: str = "") -> str:
    """A verdict, `PASS 98.5 %`, with its reasons if it is not PASS. `of` follows the figure: ` of published`."""
    why = "" if result == "PASS" else " ".join(reasons)
    return f"{result} {percent(100 * ratio)}{of}{why and f': {why}'}"


def _workload(row: RunRow, *, release: bool) -> Cell:
    if row.workload is None or row.size is None or row.dtype is None:
        return None
    return workload_label(f"{row.workload}@{row.release}" if release else row.workload, row.size, row.dtype)


def _gpus(write: Callable[[int, str], str]) -> Callable[[RunRow], Cell]:
    return lambda row: None if row.scale is None or row.gpu is None else write(row.scale, row.gpu)


def _launch(row: RunRow) -> Cell:
    """Name of the launch method, such as `our script`."""
    return next((facts.title for facts in PROCEDURES.values() if facts.id == row.procedure), None)


def _steps(row: RunRow) -> Cell:
    return None if row.steps_done is None else f"{row.steps_done}/{row.steps_total or '?'}"


def _expected(row: RunRow) -> Cell:
    if row.expected_s is None or row.method is None:
        return None
    return Quantity(row.expected_s, expected_step_time(row.method))


def _verdict(row: RunRow) -> Cell:
    """The verdict in words; without a verdict, the reasons."""
    if row.result is None or row.ratio is None:
        return _reasons(row) or None
    return verdict_words(row.result, row.ratio, row.reasons)


def _result(row: RunRow) -> Cell:
    """The verdict as a state; None for a run that failed or was cancelled, whatever its verdict was before."""
    return None if row.result is None or row.ended_badly else State(row.result, verdict_label(row.result))


def _outcome(row: RunRow) -> Cell:
    """The verdict of a finished run; without a verdict, its state, in which `done` is not marked as good."""
    if row.state is not None and row.state.name == "done" and row.result is None:
        return State(row.state.name, row.state.label._replace(tone="quiet"))
    return _result(row) or row.state


def _speed_pct(row: RunRow) -> float | None:
    return None if row.ratio is None or row.ended_badly else 100 * row.ratio


def _speed(row: RunRow) -> Cell:
    """Speed in per cent of the expected one, with the source of that: `98.5 % of published`."""
    share = _speed_pct(row)
    return None if share is None or row.method is None else f"{percent(share)} of {method_word(row.method)}"


def _noise_pct(row: RunRow) -> float | None:
    return None if row.steady is None or row.ended_badly else row.steady.cv_pct


def _reasons(row: RunRow) -> str:
    return " ".join(row.reasons)


def _slowest(kind: str) -> Callable[[RunRow], Cell]:
    """A cell function for the slowest checkpoint of a kind."""

    def cell(row: RunRow) -> Cell:
        return max((checkpoint.seconds for checkpoint in row.checkpoints if checkpoint.kind == kind), default=None)

    return cell


_VERBS: tuple[RunTable, ...] = ("jobs", "results")
_CSV: tuple[RunTable, ...] = ("results csv",)
_COMPARED: tuple[RunTable, ...] = ("compare", "compare csv")
_FIGURES: tuple[RunTable, ...] = ("results", *_CSV, *_COMPARED)
_STEADY: tuple[RunTable, ...] = (*_CSV, *_COMPARED)
_RULE: tuple[RunTable, ...] = ("rule", "rule csv")
_PLAN: tuple[RunTable, ...] = ("suite plan",)
_SCREENS: tuple[RunTable, ...] = ("runs screen", "results screen")

COLUMNS: tuple[RunColumn, ...] = (
    RunColumn("row", "key", "row", 24, shown=(*_PLAN, "suite", "suite screen")),
    RunColumn(
        "run", lambda row: row.id or None, "id", 16, drop=8,
        shown=("jobs", *_FIGURES, *_RULE, "suite", "report", "results screen"),
    ),
    RunColumn("workload", "workload", "workload", shown=_CSV),
    RunColumn("configuration", "configuration", shown=("compare csv", "report")),
    RunColumn("release", "release", shown=(*_CSV, "compare csv", "report")),
    *(RunColumn(name, name, shown=_CSV) for name in ("size", "gpu", "dtype", "scale")),
    RunColumn("workload", lambda row: _workload(row, release=True), shown=("jobs",)),
    RunColumn("workload", lambda row: _workload(row, release=False), "workload", 18, shown=_SCREENS),
    RunColumn("GPUs", _gpus(gpus_label), shown=("jobs",)),
    RunColumn("GPUs", _gpus(gpus_cell), "gpus", 9, shown=_SCREENS),
    RunColumn("GPUs", "scale", "gpus", 5, figures=True, shown=("suite screen",)),
    RunColumn("nodes", "node_count", shown=_PLAN),
    RunColumn("cluster", "cluster", "cluster", shown=("jobs", *_CSV, "compare csv", "report")),
    RunColumn("where", "cluster", "cluster", 5, shown=_SCREENS),
    RunColumn("procedure", "procedure", shown=(*_CSV, "compare csv")),
    RunColumn("launch", _launch, "procedure", 16, drop=11, shown=(*_VERBS, "report", *_SCREENS)),
    RunColumn(
        "state", "state", "state",
        shown=(*_VERBS, *_CSV, "compare csv", "suite", "report", "runs screen", "suite screen"),
    ),
    RunColumn(
        "steps", _steps, "steps", 9, figures=True, shown=(*_VERBS, "suite", "runs screen", "suite screen")
    ),
    *(RunColumn(name, name, shown=_CSV) for name in ("steps_done", "steps_total", "rule")),
    RunColumn(
        "step s", quantity("step_time_s", step_time_digits), "step_time_s", 6, figures=True,
        shown=("jobs", *_FIGURES, "suite", "report", "results screen", "suite screen"),
    ),
    RunColumn("rule", "rule", shown=("compare csv",)),  # CSV has the rule behind the step time
    RunColumn(
        "median s", quantity("median_s", step_time_digits), "median_step_time_s", 8, figures=True,
        shown=(*_VERBS, *_CSV, "runs screen"),
    ),
    RunColumn("last_step_time_s", "last_s", shown=_CSV),
    RunColumn("steady mean s", quantity("steady.mean", step_time_digits), "steady_mean_s", shown=_STEADY),
    RunColumn("steady median s", quantity("steady.median", step_time_digits), "steady_median_s", shown=_STEADY),
    RunColumn("steady deviation s", quantity("steady.stdev", two_digits), "steady_stdev_s", shown=_STEADY),
    RunColumn("steady_low_s", "steady.low", shown=_CSV),
    RunColumn("steady_high_s", "steady.high", shown=_CSV),
    RunColumn("± %", quantity(_noise_pct, two_digits), "noise_pct", 4, figures=True, drop=6, shown=("results screen",)),
    RunColumn("expected s", _expected, "expected_s", shown=("results", *_CSV, *_PLAN, "suite", "report")),
    RunColumn("low s", quantity("low_s", step_time_digits), shown=_PLAN),
    RunColumn("high s", quantity("high_s", step_time_digits), shown=_PLAN),
    RunColumn("source", lambda row: method_word(row.method) if row.method else NO_ESTIMATE, shown=_PLAN),
    RunColumn("expected_by", "method", shown=_CSV),
    RunColumn("published_s", "published_s", shown=_CSV),
    RunColumn(
        "speed %", quantity(_speed_pct, percent_digits), "speed_pct", 7, figures=True,
        shown=("report", "results screen"),
    ),
    RunColumn("speed", _speed, "speed", 20, drop=9, shown=("runs screen", "suite screen")),
    RunColumn("tokens/s", quantity("figures.tokens_per_s", tokens_per_s), "tokens_per_s", shown=(*_FIGURES, "report")),
    RunColumn("TFLOPS/GPU", quantity("figures.tflops_per_gpu", tflops), "tflops_per_gpu", shown=_FIGURES),
    RunColumn("MFU %", quantity("figures.mfu_pct", percent_digits), "mfu_pct", shown=(*_FIGURES, "report")),
    RunColumn("days/1T", quantity("figures.days_per_1t_tokens", days_digits), "days_per_1t_tokens", shown=_STEADY),
    RunColumn("of published %", quantity("of_published_pct", percent_digits), shown=_COMPARED),
    RunColumn("GPU-hours", quantity("gpu_hours", gpu_hours_digits), shown=(*_PLAN, "suite")),
    RunColumn("time limit", "time_limit", shown=_PLAN),
    RunColumn("logged_tflops_per_gpu", "logged_tflops_per_gpu", shown=_CSV),
    RunColumn("loss", lambda row: row.loss or None, shown=_CSV),
    RunColumn("loss_against_first_pct", "loss_against_first_pct", shown=_CSV),
    RunColumn("checkpoint_save_s", _slowest("save"), shown=_CSV),
    RunColumn("checkpoint_load_s", _slowest("load"), shown=_CSV),
    RunColumn("restarts", "restarts", shown=_CSV),
    RunColumn("nodes", "node_list", shown=_CSV),
    RunColumn("verdict", "result", "result", shown=(*_CSV, "compare csv")),
    *(RunColumn(name, name, shown=_CSV) for name in ("ratio", "against")),
    RunColumn("reasons", _reasons, shown=_CSV),
    RunColumn("verdict", _result, "verdict", shown=("compare", "suite", "report")),
    RunColumn("result", _result, "verdict", 6, shown=("runs screen", "suite screen")),
    RunColumn("result", _outcome, "verdict", 9, shown=("results screen",)),
    RunColumn("note", "note.words", "note", 7, drop=10, shown=("jobs", *_SCREENS)),
    RunColumn("verdict", _verdict, "verdict", shown=_VERBS),
    RunColumn("job", lambda row: ", ".join(row.job_ids) or None, "job", 9, drop=9, shown=("suite screen",)),
    RunColumn("rule", "upstream.rule", shown=_RULE),
    RunColumn("status", "upstream.status", shown=_RULE),
    RunColumn("mean s", quantity("upstream.step_time_mean_s", step_time_digits), shown=_RULE),
    RunColumn("deviation s", quantity("upstream.step_time_stdev_s", two_digits), shown=_RULE),
    RunColumn("TFLOPS/GPU", quantity("upstream.tflops_per_gpu_mean", tflops), shown=_RULE),
    RunColumn("TFLOPS/GPU deviation", quantity("upstream.tflops_per_gpu_stdev", two_digits), shown=_RULE),
    RunColumn("samples", "upstream.samples", shown=_RULE),
)  # fmt: skip
