"""Local times name their zone; times in files that leave this machine are in UTC."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from llmb_tui.language.instants import local_clock, local_day, local_time, utc_tick, utc_time

AT = 1_762_956_309.0
"""2025-11-12 14:05:09 UTC."""
HOUR, DAY = 3600.0, 86_400.0


@pytest.fixture(autouse=True)
def _berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_local_time_has_its_zone_and_a_date_unless_it_is_today() -> None:
    assert local_time(AT, AT + HOUR) == "15:05 CET"
    assert local_time(AT, AT + DAY) == "12 Nov 15:05 CET"
    assert local_time(AT, AT + 100 * DAY) == "12 Nov 2025 15:05 CET"
    assert local_clock(AT) == "15:05:09 CET"


def test_today_is_the_local_day() -> None:
    late = AT + 9 * HOUR  # 00:05 of the next day in Berlin, 23:05 of the same in UTC
    assert local_time(late, AT) == "13 Nov 00:05 CET"
    assert local_day(late, AT) == "13 Nov"


def test_a_zone_follows_the_season() -> None:
    assert local_clock(AT + 200 * DAY) == "16:05:09 CEST"


def test_a_day_has_its_year_unless_it_is_the_current_year() -> None:
    assert local_day(AT, AT) == "12 Nov"
    assert local_day(AT, AT + 100 * DAY) == "12 Nov 2025"
    assert local_day(AT - 9 * DAY, AT) == "3 Nov"


def test_a_report_is_in_utc() -> None:
    assert utc_time(AT) == "2025-11-12 14:05 UTC"
    assert [utc_tick(AT, step) for step in (HOUR, DAY, 91 * DAY)] == ["12 Nov 14:05", "12 Nov", "Nov 2025"]
