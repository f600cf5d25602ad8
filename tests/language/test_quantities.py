"""Each quantity as text: digits, units and the values at which they change."""

from __future__ import annotations

import pytest
from hypothesis import given as example_of
from hypothesis import strategies as st

from llmb_tui.language import quantities
from llmb_tui.language.quantities import (
    age,
    byte_size,
    clock,
    days,
    duration,
    four_digits,
    percent,
    percent_digits,
    plain_number,
    share,
    short_age,
    step_time,
    step_time_range,
    two_digits,
)


@pytest.mark.parametrize(
    ("step_time_s", "text"),
    [
        (0.51234, "0.512 s"),
        (1.9836, "1.984 s"),
        (1.98, "1.98 s"),
        (2.0, "2 s"),
        (9.99961, "10 s"),
        (12.344, "12.34 s"),
        (123.44, "123.4 s"),
        (1234.4, "1,234 s"),
        (-0.0123, "-0.012 s"),
        (0.0, "0 s"),
    ],
)
def test_a_step_time_has_four_digits_and_three_decimals_at_most(step_time_s: float, text: str) -> None:
    assert step_time(step_time_s) == text


@example_of(st.floats(min_value=0.001, max_value=9_999))
def test_the_rounding_of_a_step_time_is_within_its_last_digit(step_time_s: float) -> None:
    number = quantities.step_time_digits(step_time_s).replace(",", "")
    whole, _, decimals = number.partition(".")
    assert len(decimals) <= 3
    assert len(whole.lstrip("0") + decimals) <= 4
    assert float(number) == pytest.approx(step_time_s, abs=max(0.000501, 0.000501 * step_time_s))


def test_a_range_of_step_times_names_its_unit_once() -> None:
    assert step_time_range(1.9008, 2.0592) == "1.901–2.059 s"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (999.6, "1 kB"),
        (1_980_000_000, "1.98 GB"),
        (999_600_000, "1 GB"),
        (2.4e12, "2.4 TB"),
        (1.2345e15, "1,234 TB"),
    ],
)
def test_bytes_have_three_digits_and_a_decimal_unit(size: float, text: str) -> None:
    assert byte_size(size) == text


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (-3, "0 s"),
        (12.4, "12 s"),
        (59.5, "1 min"),
        (1200, "20 min"),
        (3599, "1 h"),
        (23_400, "6 h 30 min"),
        (86_400, "24 h"),
        (273_600, "3 d 4 h"),
        (345_600, "4 d"),
    ],
)
def test_a_duration_has_two_units_at_most(duration_s: float, text: str) -> None:
    assert duration(duration_s) == text


def test_percentages() -> None:
    assert [percent(39.296), percent(100), percent_digits(-0.04)] == ["39.3 %", "100.0 %", "0.0"]
    assert [share(0), share(0.004), share(0.336), share(0.996), share(1)] == ["0 %", "< 1 %", "34 %", "> 99 %", "100 %"]
    assert [two_digits(0.0123), two_digits(4.56, "+"), two_digits(250)] == ["0.012", "+4.6", "250"]
    assert [two_digits(0.00011), two_digits(-2.5e-5, "+"), two_digits(0.0)] == ["0.00011", "0", "0"]


def test_a_given_number_keeps_its_digits() -> None:
    assert [plain_number(21.542), plain_number(24.0), plain_number(44.35), plain_number(2_288_843)] == [
        "21.542",
        "24",
        "44.35",
        "2,288,843",
    ]


def test_other_numbers() -> None:
    assert [four_digits(number) for number in (11.2345, 12_345.6, 0.00001, 1.5e308)] == [
        "11.23",
        "12,346",
        "1e-05",
        "1.5e+308",
    ]
    assert [days(21.86), days(1.234), days(None)] == ["21.9 days", "1.23 days", "not meaningful for a reduced model"]
    assert [clock(59), clock(3661), clock(90_061)] == ["00:59", "1:01:01", "1d 01:01:01"]
    assert [age(240), short_age(240), short_age(7_200)] == ["4 min", "4m", "2h"]
