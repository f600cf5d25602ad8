"""`COLUMNS`: every column of every table of runs, once. A table takes those that name it, in this order. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from llmb_tui.answers.run_row import RunRow
from llmb_tui.answers.table import Cell, Column, Quantity, State, quantity
from llmb_tui.language.labels import gpus_cell, gpus_label, workload_label
from llmb_tui.language.quantities import (
    days_digits,
    given,
    gpu_hours_digits,
    percent,
    percent_digits,
    step_time_digits,
    tflops,
    tokens_per_s,
    two_digits,
)
from llmb_tui.language.states import VerdictResult, method_word, verdict_label
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
"""A table by the output that it is part of. `results json`: values that a run's JSON object has under `result`, further
to its own keys. `rule`: one of NVIDIA's rules. A screen puts marks, bars and ages, which change by themselves, between
these columns."""


@dataclass(frozen=True, slots=True)
class RunColumn(Column):
    """A column of tables of runs; its values are `RunRow`s."""

    shown: tuple[RunTable, ...] = ()
    """The tables that have it."""
    names: Mapping[RunTable, str] = field(default_factory=dict)
    """Name in the CSV of a table that has another one than `name`: headings of CSV never change."""


def run_columns(table: RunTable) -> tuple[RunColumn, ...]:
    """The columns of a table, in order."""
    shown = (column for column in COLUMNS if table in column.shown)
    return tuple(replace(column, name=column.names[table]) if table in column.names else column for column in shown)


def expected_cell(row: RunRow) -> Cell:
    """The expected step time without its unit, in the digits that its origin has."""
    if row.expected_s is None or row.method is None:
        return None
    return Quantity(row.expected_s, expected_step_time(row.method))


def verdict_words(result: VerdictResult, ratio: float, reasons: tuple[str, ...], of: str = "") -> str:
    """`PASS 98.5 %`; any other verdict has its reasons. `of`: the end of the sentence, such as ` of published`."""
    why = "" if result == "PASS" else " ".join(reasons)
    return f"{result} {percent(100 * ratio)}{of}{why and f': {why}'}"


def _workload(row: RunRow, *, release: bool) -> Cell:
    if row.workload is None or row.size is None or row.dtype is None:
        return None
    return workload_label(f"{row.workload}@{row.release}" if release else row.workload, row.size, row.dtype)


def _gpus(write: Callable[[int, str], str]) -> Callable[[RunRow], Cell]:
    return lambda row: None if row.scale is None or row.gpu is None else write(row.scale, row.gpu)


def _steps(row: RunRow) -> Cell:
    return None if row.steps_done is None else f"{row.steps_done}/{row.steps_total or '?'}"


def _verdict(row: RunRow) -> Cell:
    """The verdict in words; without one, the reasons."""
    if row.result is None or row.ratio is None:
        return _reasons(row) or None
    return verdict_words(row.result, row.ratio, row.reasons)


def _result(row: RunRow) -> Cell:
    """The verdict as a state. A run that ended badly has none, whatever it was until then."""
    return None if row.result is None or row.ended_badly else State(row.result, verdict_label(row.result))


def _outcome(row: RunRow) -> Cell:
    """The verdict of a finished run, or how it ended without one."""
    return _result(row) or row.state


def _speed_pct(row: RunRow) -> float | None:
    return None if row.ratio is None or row.ended_badly else 100 * row.ratio


def _against(row: RunRow) -> Cell:
    """The speed in per cent of the expected one, and the origin of that: `98.5 % of published`."""
    share = _speed_pct(row)
    return None if share is None or row.method is None else f"{percent(share)} of {method_word(row.method)}"


def _noise_pct(row: RunRow) -> float | None:
    return None if row.steady is None or row.ended_badly else row.steady.cv_pct


def _reasons(row: RunRow) -> str:
    return " ".join(row.reasons)


def _slowest(kind: str) -> Callable[[RunRow], Cell]:
    """The slowest checkpoint: the others waited for it."""
    return lambda row: max((one.seconds for one in row.checkpoints if one.kind == kind), default=None)


_FIGURES: tuple[RunTable, ...] = ("results", "results csv", "compare", "compare csv")
_CSV: tuple[RunTable, ...] = ("results csv",)
_COMPARED: tuple[RunTable, ...] = ("compare", "compare csv")
_RULE: tuple[RunTable, ...] = ("rule", "rule csv")
_SCREENS: tuple[RunTable, ...] = ("runs screen", "results screen")

COLUMNS: tuple[RunColumn, ...] = (
    RunColumn("row", "key", "row", shown=("suite plan", "suite", "suite screen")),
    RunColumn(
        "run",
        lambda row: row.id or None,
        "id",
        width=16,
        drop=8,
        shown=("jobs", *_FIGURES, *_RULE, "suite", "report", "results screen"),
        names={"rule csv": "run or log", "compare csv": "run"},
    ),
    RunColumn("workload", "workload", "workload", shown=_CSV),
    RunColumn("configuration", "configuration", shown=("compare csv", "report")),
    RunColumn("release", "release", shown=(*_CSV, "compare csv", "report")),
    *(RunColumn(name, name, shown=_CSV) for name in ("size", "gpu", "dtype", "scale")),
    RunColumn("workload", lambda row: _workload(row, release=True), shown=("jobs",)),
    RunColumn("workload", lambda row: _workload(row, release=False), "workload", width=17, shown=_SCREENS),
    RunColumn("GPUs", _gpus(gpus_label), shown=("jobs",)),
    RunColumn("GPUs", _gpus(gpus_cell), "gpus", width=9, shown=_SCREENS),
    RunColumn("GPUs", "scale", "gpus", width=5, figures=True, shown=("suite screen",)),
    RunColumn("nodes", "node_count", shown=("suite plan",)),
    RunColumn("cluster", "cluster", "cluster", width=5, shown=("jobs", *_CSV, "compare csv", "report", *_SCREENS)),
    RunColumn(
        "procedure",
        "procedure",
        "procedure",
        width=9,
        drop=7,
        shown=("jobs", "results", *_CSV, "compare csv", "report", *_SCREENS),
    ),
    RunColumn(
        "state",
        "state",
        "state",
        width=12,
        shown=("jobs", "results", *_CSV, "compare csv", "suite", "report", "runs screen", "suite screen"),
    ),
    RunColumn(
        "steps",
        _steps,
        "steps",
        width=9,
        figures=True,
        shown=("jobs", "results", "suite", "runs screen", "suite screen"),
    ),
    RunColumn("steps done", "steps_done", "steps_done", shown=_CSV),
    RunColumn("steps total", "steps_total", "steps_total", shown=_CSV),
    RunColumn("rule", "rule", shown=_CSV),
    RunColumn(
        "step s",
        quantity("step_time_s", step_time_digits),
        "step_time_s",
        width=6,
        figures=True,
        shown=("jobs", *_FIGURES, "suite", "report", "results screen", "suite screen"),
        names={"compare csv": "step s"},
    ),
    RunColumn("rule", "rule", shown=("compare csv",)),  # its CSV has the rule behind the step time
    RunColumn(
        "median s",
        quantity("median_s", step_time_digits),
        "median_step_time_s",
        width=8,
        figures=True,
        shown=("jobs", "results", *_CSV, "runs screen"),
    ),
    RunColumn("last s", quantity("last_s", step_time_digits), "last_step_time_s", shown=_CSV),
    RunColumn(
        "steady mean s",
        quantity("steady.mean", step_time_digits),
        "steady_mean_s",
        shown=(*_COMPARED, *_CSV),
        names={"compare csv": "mean s"},
    ),
    RunColumn(
        "steady median s",
        quantity("steady.median", step_time_digits),
        "steady_median_s",
        shown=(*_COMPARED, *_CSV),
        names={"compare csv": "median s"},
    ),
    RunColumn(
        "steady deviation s",
        quantity("steady.stdev", two_digits),
        "steady_stdev_s",
        shown=(*_COMPARED, *_CSV),
        names={"compare csv": "deviation s"},
    ),
    RunColumn("steady low s", quantity("steady.low", step_time_digits), "steady_low_s", shown=_CSV),
    RunColumn("steady high s", quantity("steady.high", step_time_digits), "steady_high_s", shown=_CSV),
    RunColumn(
        "± %", quantity(_noise_pct, two_digits), "noise_pct", width=4, figures=True, drop=6, shown=("results screen",)
    ),
    RunColumn(
        "expected s",
        expected_cell,
        "expected_s",
        width=10,
        figures=True,
        drop=5,
        shown=("results", *_CSV, "suite plan", "suite", "report"),
    ),
    RunColumn("from s", quantity("low_s", step_time_digits), "expected_low_s", shown=("suite plan",)),
    RunColumn("to s", quantity("high_s", step_time_digits), "expected_high_s", shown=("suite plan",)),
    RunColumn("source", lambda row: method_word(row.method) if row.method else "no estimate", shown=("suite plan",)),
    RunColumn("expected by", "method", "expected_by", shown=_CSV),
    RunColumn("published s", quantity("published_s", given), "published_s", shown=_CSV),
    RunColumn(
        "speed %",
        quantity(_speed_pct, percent_digits),
        "speed_pct",
        width=7,
        figures=True,
        shown=("report", "results screen"),
    ),
    RunColumn("speed", _against, "speed", width=23, drop=9, shown=("runs screen", "suite screen")),
    RunColumn(
        "tokens/s",
        quantity("figures.tokens_per_s", tokens_per_s),
        "tokens_per_s",
        shown=(*_FIGURES, "report"),
        names={"compare csv": "tokens/s"},
    ),
    RunColumn(
        "TFLOPS/GPU",
        quantity("figures.tflops_per_gpu", tflops),
        "tflops_per_gpu",
        shown=_FIGURES,
        names={"compare csv": "TFLOPS/GPU"},
    ),
    RunColumn(
        "MFU %",
        quantity("figures.mfu_pct", percent_digits),
        "mfu_pct",
        shown=(*_FIGURES, "report"),
        names={"compare csv": "MFU %"},
    ),
    RunColumn(
        "days/1T",
        quantity("figures.days_per_1t_tokens", days_digits),
        "days_per_1t_tokens",
        shown=(*_CSV, *_COMPARED),
        names={"compare csv": "days/1T"},
    ),
    RunColumn(
        "of published %",
        quantity("of_published_pct", percent_digits),
        "of_published_pct",
        shown=_COMPARED,
        names={"compare csv": "of published %"},
    ),
    RunColumn("GPU-hours", quantity("gpu_hours", gpu_hours_digits), "gpu_hours", shown=("suite plan", "suite")),
    RunColumn("time limit", "time_limit", shown=("suite plan",)),
    RunColumn("logged TFLOPS/GPU", quantity("logged_tflops_per_gpu", tflops), "logged_tflops_per_gpu", shown=_CSV),
    RunColumn("loss", lambda row: row.loss or None, "loss", shown=_CSV),
    RunColumn(
        "loss against first %", quantity("loss_against_first_pct", two_digits), "loss_against_first_pct", shown=_CSV
    ),
    RunColumn("checkpoint save s", _slowest("save"), "checkpoint_save_s", shown=_CSV),
    RunColumn("checkpoint load s", _slowest("load"), "checkpoint_load_s", shown=_CSV),
    RunColumn("restarts", "restarts", shown=_CSV),
    RunColumn("nodes", "node_list", "nodes", shown=_CSV),
    RunColumn("result", "result", shown=(*_CSV, "compare csv"), names={"compare csv": "verdict"}),
    RunColumn("ratio", "ratio", shown=_CSV),
    RunColumn("against", "against", shown=_CSV),
    RunColumn("reasons", _reasons, shown=_CSV),
    RunColumn(
        "verdict", _result, "verdict", width=6, shown=("compare", "suite", "report", "runs screen", "suite screen")
    ),
    RunColumn("verdict", _outcome, "verdict", width=9, shown=("results screen",)),
    RunColumn("note", "note.words", "note", width=7, drop=10, shown=("jobs", "results screen")),
    RunColumn("verdict", _verdict, "verdict", shown=("jobs", "results")),
    RunColumn("job", lambda row: ", ".join(row.job_ids) or None, "job", width=9, drop=9, shown=("suite screen",)),
    RunColumn("rule", "upstream.rule", shown=_RULE),
    RunColumn("status", "upstream.status", shown=_RULE),
    RunColumn("mean s", quantity("upstream.step_time_mean_s", step_time_digits), shown=_RULE),
    RunColumn(
        "deviation s",
        quantity("upstream.step_time_stdev_s", two_digits),
        shown=_RULE,
        names={"rule csv": "stdev s"},
    ),
    RunColumn("TFLOPS/GPU", quantity("upstream.tflops_per_gpu_mean", tflops), shown=_RULE),
    RunColumn(
        "TFLOPS/GPU deviation",
        quantity("upstream.tflops_per_gpu_stdev", two_digits),
        shown=_RULE,
        names={"rule csv": "TFLOPS stdev"},
    ),
    RunColumn("samples", "upstream.samples", shown=_RULE),
)
