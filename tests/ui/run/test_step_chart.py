"""The step chart as text."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llmb_tui.answers.writers.plot import ASCII
from llmb_tui.ui.widgets.step_chart import chart_lines, columns, expected_caption, make_scale
from tests.kit.runs import make_run
from tests.ui.run.run_states import progress

BAND = (1.90, 2.06)
SECONDS = st.floats(min_value=1e-3, max_value=1e4)
BANDS = st.none() | st.tuples(SECONDS, st.floats(1.01, 3)).map(lambda pair: (pair[0], pair[0] * pair[1]))


def drawn(
    step_times_s: Sequence[tuple[int, float]],
    expected: tuple[float, float] | None = BAND,
    size: tuple[int, int] = (60, 8),
    total: int | None = 50,
) -> list[str]:
    return ["".join(text for text, _ in line) for line in chart_lines(step_times_s, expected, total, size)]


def test_a_run_inside_its_band_is_drawn_inside_it() -> None:
    assert drawn(progress(31).step_times_s, size=(60, 8)) == [
        "2.16 ┤▲▲╮                                                   ",
        "     │  ╰╮                                                  ",
        "2.04 ┤░░░│╭╮╭╮╭╮░╭╮╭╮░╭╮░░╭╮╭╮░╭╮╭╮░░░░░░░░░░░░░░░░░░░░░░░░░",
        "     │░░░╰╯╰╯╰╯╰─╯╰╯╰─╯╰──╯╰╯╰─╯╰╯╰ ← 1.976░░░░░░░░░░░░░░░░░",
        "1.92 ┤░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░",
        "     │                                                      ",
        "1.80 ┤                                                      ",
        "      iteration 0       20        30       40               ",
    ]


@pytest.mark.parametrize("size", [(40, 8), (80, 20), (38, 4), (118, 7)])
def test_every_line_has_the_width(size: tuple[int, int]) -> None:
    lines = drawn(progress(31).step_times_s, size=size)
    assert [len(line) for line in lines] == [size[0]] * size[1]


@given(
    st.lists(SECONDS, max_size=200),
    BANDS,
    st.none() | st.integers(1, 1000),
    st.tuples(st.integers(1, 120), st.integers(1, 30)),
)
def test_any_values_fill_exactly_the_space(
    values: list[float], expected: tuple[float, float] | None, total: int | None, size: tuple[int, int]
) -> None:
    lines = drawn(list(enumerate(values)), expected, size, total)
    assert [len(line) for line in lines] == [size[0]] * size[1]


@given(SECONDS, st.floats(1.01, 1.5), st.floats(0, 1), st.integers(3, 30))
def test_a_value_in_the_band_gets_a_row_of_the_band(low: float, factor: float, part: float, rows: int) -> None:
    high = low * factor
    value = low + (high - low) * part
    scale = make_scale([value], (low, high), rows)
    assert scale.row(low) <= scale.row(value) <= scale.row(high)


@given(st.lists(SECONDS, min_size=1, max_size=50), BANDS, st.integers(2, 30))
@example([10000.0, 9999.999999999998], None, 3)
def test_labels_differ_from_row_to_row(values: list[float], expected: tuple[float, float] | None, rows: int) -> None:
    scale = make_scale(values, expected, rows)
    labels = [float(scale.label(row).replace(",", "")) for row in range(rows)]
    assert labels == sorted(set(labels))


def test_a_slow_first_step_is_an_arrow_and_does_not_flatten_the_other_steps() -> None:
    lines = drawn([(0, 45.0), (1, 2.0), (2, 2.0)])
    assert lines[0].count("▲") == 1
    assert not any("45" in line for line in lines)


def test_a_run_slower_than_its_band_stays_in_view() -> None:
    lines = drawn([(index, 3.1) for index in range(50)])
    line_row = next(row for row, line in enumerate(lines) if "← 3.1 " in line)
    band_rows = [row for row, line in enumerate(lines) if "░" in line]
    assert line_row < min(band_rows)


def test_without_an_estimate_the_chart_has_no_band_and_the_caption_the_reason() -> None:
    assert not any("░" in line for line in drawn([(0, 2.0)], expected=None))
    assert expected_caption(None, 60) == "no expected step time"
    estimate = make_run().plan.estimate
    assert expected_caption(estimate, 60) == "░ expected 1.9–2.06 s, published"
    assert expected_caption(estimate, 30) == "░ expected 1.9–2.06 s"


def test_a_chart_without_steps_and_estimate_shows_a_text() -> None:
    assert any("no steps yet" in line for line in drawn([], expected=None))


def test_many_steps_in_a_column_are_their_median() -> None:
    values = columns([(0, 1.0), (1, 9.0), (2, 1.0), (99, 2.0)], last_step=99, width=10)
    assert values[0] == 1.0
    assert values[-1] == 2.0


def test_an_ascii_chart_has_only_ascii_characters() -> None:
    lines = chart_lines([(index, 2.0 + index % 2) for index in range(50)], BAND, 50, (60, 12), ASCII)
    assert all(text.isascii() for line in lines for text, _ in line)
