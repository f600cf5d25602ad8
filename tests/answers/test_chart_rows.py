"""Charts in cells: all elements of a chart, at every size, without colours."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from llmb_tui.analysis.chart import Chart
from llmb_tui.analysis.charts import history_chart, scale_chart
from llmb_tui.analysis.result import RunResult
from llmb_tui.answers.writers.chart_rows import LEAST_SIZE, chart_rows
from llmb_tui.answers.writers.plot import ASCII, UNICODE, Glyphs
from tests.kit.results import make_result
from tests.kit.runs import CREATED_AT, NEMOTRON


def runs() -> list[RunResult]:
    times = (2.0, 2.01, 1.99, 2.0, 2.2, 2.19, 2.21)
    return [
        make_result(f"s{week}", seconds, submitted_at=CREATED_AT + week * 7 * 86_400)
        for week, seconds in enumerate(times)
    ]


def history() -> Chart:
    chart = history_chart(runs())
    assert chart is not None
    return chart


def drawn(chart: Chart, size: tuple[int, int], glyphs: Glyphs = UNICODE) -> list[str]:
    return ["".join(text for text, _ in row) for row in chart_rows(chart, size, glyphs)]


@pytest.mark.parametrize("size", [(120, 16), (78, 12), (31, 6), (29, 6), (80, 5)])
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_every_row_has_the_requested_width(size: tuple[int, int], glyphs: Glyphs) -> None:
    rows = drawn(history(), size, glyphs)
    assert [len(row) for row in rows] == [size[0]] * size[1]
    assert glyphs is UNICODE or all(row.isascii() for row in drawn(history(), size, ASCII)[1:-1])
    if size[0] < LEAST_SIZE[0] or size[1] < LEAST_SIZE[1]:
        assert not "".join(rows).strip()


def test_runs_over_time_have_the_published_row_the_band_and_the_change() -> None:
    rows = drawn(history(), (100, 14))
    text = "\n".join(rows)
    assert text.count("■") == 7 + 1  # each run, and the legend
    assert "published 1.98 s" in text
    assert "┊ 10 % slower" in text
    assert "2.21 s" in text
    assert "░ expected" in rows[-1]
    slow, published = (
        next(index for index, row in enumerate(rows) if words in row) for words in ("·■···", "published 1.98")
    )
    assert slow < published  # slower is higher


def test_over_scales_this_run_has_its_value_and_repeats_are_bars() -> None:
    larger = replace(NEMOTRON, scale=128)
    measured = [make_result(f"p{seconds}", seconds, larger) for seconds in (2.0, 2.2, 2.4)]
    chart = scale_chart((), measured, make_result("own", 2.1))
    assert chart is not None
    rows = drawn(chart, (100, 14))
    text = "\n".join(rows)
    assert "◆ this run" in rows[0]
    assert any("◆" in row for row in rows[1:])
    assert "2.1 s" in text or "2.100 s" in text
    assert text.count("│") > 14 / 2  # the bar in addition to the edge


def test_the_run_under_the_cursor_is_marked_and_has_its_value() -> None:
    rows = ["".join(text for text, _ in row) for row in chart_rows(history(), (100, 14), this="s1")]
    assert "◆ this run" in rows[0]
    assert "2.01 s" in "\n".join(rows)
    assert "2.21 s" not in "\n".join(rows)
    assert sum(row.count("◆") for row in rows) == 2
    assert drawn(history(), (100, 14)) == [
        "".join(t for t, _ in row) for row in chart_rows(history(), (100, 14), this="x")
    ]


def test_times_are_in_utc_in_files_and_local_on_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ticks of a chart are at midnight of the zone that it names."""
    monkeypatch.setenv("TZ", "XYZ-9")  # nine hours ahead
    time.tzset()
    try:
        chart = history()
        paper, screen = (
            "\n".join("".join(text for text, _ in row) for row in chart_rows(chart, (100, 14), local=local))
            for local in (False, True)
        )
        assert "submitted, UTC" in paper
        assert "submitted, XYZ" in screen
        utc, local = chart.x.ticks(8), chart.x.ticks(8, local=True)
        assert {tick.at % 86_400 for tick in utc} == {0.0}
        assert {tick.at % 86_400 for tick in local} == {86_400.0 - 9 * 3600}
        assert all(chart.x.low <= tick.at <= chart.x.high for tick in local)
    finally:
        monkeypatch.undo()
        time.tzset()
