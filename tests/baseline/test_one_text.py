"""A number of a run's JSON is written by `language/`, and every other output has exactly that text."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.analysis.groups import grouped
from llmb_tui.answers.comparison import side_by_side
from llmb_tui.answers.run_columns import run_columns
from llmb_tui.answers.run_row import row_from_record, row_from_result
from llmb_tui.answers.writers.rows import rows
from llmb_tui.language import quantities
from llmb_tui.launch.note import NO_NOTE
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.widgets.figures import figures, strip
from llmb_tui.ui.widgets.keyed_table import Row, make_row
from llmb_tui.ui.widgets.result_texts import about_run
from llmb_tui.ui.widgets.run_parts import metric_rows, verdict_card
from llmb_tui.ui.widgets.suite_texts import progress_columns, progress_things
from llmb_tui.watch.state import RunRecord
from tests.baseline.answers import OTHER_LAYOUT, SLOW, SUITE, answer, copy_home

NOW = 1_795_757_000.0
WIDE = 200
_ANCHOR = re.compile(r"\d+ [x×] [A-Z0-9]+, [\d.]+ s")
"""The published row behind an expected step time: another number, which may be close."""


def numbers(one: Mapping[str, Any]) -> dict[str, tuple[float, str]]:
    """(value, its text) by name, of a run's JSON object."""
    result, verdict = one["result"], one["verdict"]
    return {
        "step time": (one["step_time_s"], quantities.step_time_digits(one["step_time_s"])),
        "median": (one["median_step_time_s"], quantities.step_time_digits(one["median_step_time_s"])),
        "tokens/s": (result["tokens_per_s"], quantities.tokens_per_s(result["tokens_per_s"])),
        "TFLOPS": (result["tflops_per_gpu"], quantities.tflops(result["tflops_per_gpu"])),
        "MFU": (result["mfu_pct"], quantities.percent_digits(result["mfu_pct"])),
        "days": (result["days_per_1t_tokens"], quantities.days_digits(result["days_per_1t_tokens"])),
        "of expected": (100 * verdict["ratio"], quantities.percent_digits(100 * verdict["ratio"])),
        **expected_numbers(result["estimate"]),
    }


def expected_numbers(estimate: Mapping[str, Any]) -> dict[str, tuple[float, str]]:
    """The same, of an estimate's JSON object."""
    printed = estimate["method"] == "published"
    write = quantities.plain_number if printed else quantities.step_time_digits
    band = quantities.step_time_range_digits(estimate["low_s"], estimate["high_s"])
    return {
        "expected": (estimate["step_time_s"], write(estimate["step_time_s"])),
        "band": (estimate["low_s"], band),
    }


def check(text: str, has: Mapping[str, tuple[float, str]], *names: str) -> None:
    """Each named number is in the text as `language/` writes it, and no number in fewer or more digits."""
    for name in names:
        assert re.search(rf"(?<![\d.,]){re.escape(has[name][1])}(?![\d,]|\.\d)", text), f"{name} {has[name]}: {text}"
    written = {part for _, words in has.values() for part in words.split("–")}
    other = {f"{value:.{digits}f}" for value, _ in has.values() for digits in range(1, 6)} - written
    assert not other & set(re.findall(r"\d+\.\d+", _ANCHOR.sub("", text))), text


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def services(home: Path) -> Iterator[Services]:
    copy_home(home)
    found = Services(UserPaths(home / "config", home / "state"))
    yield found
    found.close()


def of_run(tmp_path: Path, run_id: str) -> dict[str, tuple[float, str]]:
    document = answer(tmp_path / "json", ("results", run_id, "--json")).partition("\n")[2]
    return numbers(json.loads(document)[0])


def line_of(run_id: str, text: str) -> str:
    return next(line for line in text.splitlines() if run_id in line)


def cells(row: Row) -> str:
    return "  ".join(text for text, _ in row.values())


@pytest.mark.parametrize("run_id", [OTHER_LAYOUT, SLOW])
def test_a_runs_numbers_are_the_same_in_every_verb(tmp_path: Path, run_id: str) -> None:
    has = of_run(tmp_path, run_id)

    def said(name: str, *words: str) -> str:
        return answer(tmp_path / name, words)

    figures_shown = ("step time", "median", "tokens/s", "TFLOPS", "MFU")
    check(said("results", "results", run_id), has, *figures_shown, "expected", "band", "of expected", "days")
    check(line_of(run_id, said("jobs", "jobs")), has, "step time", "median", "of expected")
    check(line_of(run_id, said("compare", "compare", OTHER_LAYOUT, SLOW)), has, *figures_shown, "days")
    markdown = said("markdown", "report", run_id)
    check(markdown, has, *figures_shown, "days", "expected", "band", "of expected")
    said("html", "report", run_id, "-o", f"{tmp_path}/report.html")
    html = (tmp_path / "report.html").read_text()
    page = re.sub(r"<svg.*?</svg>|<style.*?</style>|<[^>]*>", " ", html, flags=re.DOTALL)
    check(page, has, *figures_shown, "days", "expected", "band", "of expected")
    assert "UTC" in markdown


def test_a_plans_numbers_are_the_same_in_the_verb_and_on_the_screen(tmp_path: Path, services: Services) -> None:
    words = ("plan", "-w", "nemotron4", "-s", "15b", "--gpu", "h100", "-d", "fp8", "--scale", "48")
    estimate = json.loads(answer(tmp_path / "json", (*words, "--json")).partition("\n")[2])["estimate"]
    has = expected_numbers(estimate) | {
        "tokens/s": (estimate["tokens_per_s"], quantities.tokens_per_s(estimate["tokens_per_s"])),
        "MFU": (estimate["mfu_pct"], quantities.percent_digits(estimate["mfu_pct"])),
    }
    check(answer(tmp_path / "text", words), has, *has)
    plan = services.runs.load(OTHER_LAYOUT).plan
    assert plan.estimate is not None
    shown = expected_numbers(
        {name: getattr(plan.estimate, name) for name in ("step_time_s", "low_s", "high_s", "method")}
    )
    check("\n".join(map(str, (*figures(plan, None, WIDE), *strip(plan, None)))), shown, "expected", "band")


@pytest.mark.parametrize("run_id", [OTHER_LAYOUT, SLOW])
def test_a_runs_numbers_are_the_same_on_the_screens(tmp_path: Path, services: Services, run_id: str) -> None:
    has = of_run(tmp_path, run_id)
    run, result = services.runs.load(run_id), services.history.result(run_id)
    state = services.feed.record(run_id).state
    jobs, results = row_from_record(RunRecord(run, state)), row_from_result(result)
    check(cells(make_row(run_columns("runs screen"), jobs)), has, "median", "of expected")
    check(cells(make_row(run_columns("results screen"), results)), has, "step time", "of expected")
    check("\n".join(map(str, about_run(result, NO_NOTE, NOW))), has, "step time", "expected")
    check("\n".join(" ".join(row) for row in metric_rows(state.progress, run.plan)), has, "median", "expected")
    check(str(verdict_card(state, "expected", "")), has, "step time", "of expected")
    compared = side_by_side(grouped([result], "none", {}), [result], [], [])
    text = "\n".join(row.text for row in rows(compared.make_blocks(), WIDE))
    check(text, has, "step time", "tokens/s", "TFLOPS", "MFU", "days", "of expected")


def test_a_suites_numbers_are_the_same_in_each_output(tmp_path: Path, services: Services) -> None:
    suite = services.suites.load(SUITE)
    progress = services.suites.progress(suite)
    has = {run_id: of_run(tmp_path / run_id, run_id) for run_id in suite.run_ids}
    outputs = [
        answer(tmp_path / "watch", ("suite", "watch", SUITE, "--once", "--offline")),
        answer(tmp_path / "results", ("results", SUITE)),
        answer(tmp_path / "report", ("report", SUITE)),
    ]
    rows = progress_things(progress, {row.planned.row.key: row.planned.row.key for row in progress.rows})
    for (_, numbers_of_run), row in zip(has.items(), rows.values(), strict=True):
        for text in (*outputs, cells(make_row(progress_columns(), row))):
            assert numbers_of_run["step time"][1] in text


def test_a_suites_run_reads_alike_in_each_verb_and_file(tmp_path: Path, services: Services) -> None:
    run_id = services.suites.load(SUITE).run_ids[0]

    def said(*words: str) -> str:
        return answer(tmp_path / "-".join(words), words).partition("\n")[2]

    (one,) = json.loads(said("results", run_id, "--json"))
    has, verdict = numbers(one), one["verdict"]["result"]
    report = said("report", SUITE)
    outputs = {
        "results": (line_of(run_id, said("results", SUITE)), ("step time", "expected", "MFU", "tokens/s")),
        "jobs": (line_of(run_id, said("jobs")), ("step time",)),
        "compare": (line_of(run_id, said("compare", SUITE)), ("step time", "MFU", "tokens/s")),
        "suite": (line_of(run_id, said("suite", "watch", SUITE, "--once", "--offline")), ("step time", "expected")),
        "watch": (line_of(run_id, said("watch", run_id, "--once")), ("step time",)),
        "report, the suite's run": (line_of(run_id, report), ("step time", "expected")),
        "report, all runs": (line_of(run_id, report.partition("All runs")[2]), ("step time", "expected", "MFU")),
    }
    for name, (line, shown) in outputs.items():
        check(line, has, *shown)
        assert verdict in line or f"verdict {verdict}" in report, name

    def row_of(*words: str) -> dict[str, str]:
        rows = csv.DictReader(io.StringIO(said(*words, "--format", "csv")))
        return next(row for row in rows if run_id in row.values())

    results, compared = row_of("results", SUITE), row_of("compare", SUITE)
    full = {name: repr(value) for name, (value, _) in has.items()}
    names = {"step time": "step_time_s", "expected": "expected_s", "MFU": "mfu_pct", "tokens/s": "tokens_per_s"}
    assert {name: results[key] for name, key in names.items()} == {name: full[name] for name in names}
    names = {"step time": "step s", "MFU": "MFU %", "tokens/s": "tokens/s"}
    assert {name: compared[key] for name, key in names.items()} == {name: full[name] for name in names}
    assert (results["result"], compared["verdict"]) == (verdict, verdict)
    (row,) = (row for row in json.loads(said("suite", "watch", SUITE, "--once", "--offline", "--json"))["rows"]
              if row["run"] == run_id)  # fmt: skip
    assert (row["step_time_s"], row["result"]) == (one["step_time_s"], verdict)
