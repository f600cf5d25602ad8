"""The list of runs: rows from what is here, one look for each cluster, and a cursor that stays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.events import Key
from textual.widgets import Static

from llmb_tui.cluster.slurm.job import Job
from llmb_tui.errors import Trouble
from llmb_tui.launch.run import Run
from llmb_tui.ui.screens.jobs import JobsScreen, last_lines
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.widgets.job_table import JobTable, job_row, state_cell
from llmb_tui.watch.state import RunState

Until = Callable[..., Awaitable[None]]
OpenJobs = Callable[..., tuple[App[None], Any]]


def cells(app: App[None]) -> list[list[str]]:
    table = app.screen.query_one(JobTable)
    return [[str(cell) for cell in table.get_row_at(row)] for row in range(table.row_count)]


def words_of(app: App[None], selector: str) -> str:
    shown = app.screen.query_one(selector, Static)
    return str(shown.render()) if shown.display else ""


async def listed(pilot: Any, app: App[None], until: Until, count: int) -> None:
    await until(pilot, lambda: len(app.screen.query(JobTable)) == 1 and len(cells(app)) == count, f"{count} rows")
    await until(pilot, lambda: not app.screen._reading, "every log read")  # type: ignore[attr-defined]
    await pilot.pause()


async def test_each_run_has_a_row_with_what_is_known_of_it(open_jobs: OpenJobs, until: Until) -> None:
    app, _ = open_jobs()
    async with app.run_test(size=(120, 36)) as pilot:
        await listed(pilot, app, until, 6)
        assert cells(app)[0] == [
            *("", "● measuring", "nemotron4 15b fp8", "64×H100", "eos", "direct", "31/50", "██▍", "2.00"),
            *("99.0 % of published", "✓ PASS", "1m"),
        ]
        assert [row[1] for row in cells(app)] == [
            "● measuring",
            "◐ queued",
            "✓ done",
            "✗ failed",
            "■ cancelled",
            "? unknown",
        ]
        assert words_of(app, "#jobs-head").startswith("Runs   3 going · 3 ended")


async def test_a_simulated_cluster_is_called_so(open_jobs: OpenJobs, until: Until) -> None:
    app, services = open_jobs()
    services.notice = "simulated, clock x30"
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "eos: simulated, clock x30" in words_of(app, "#jobs-head"), "the notice")


async def test_a_narrow_terminal_shows_every_row_whole(open_jobs: OpenJobs, until: Until) -> None:
    app, _ = open_jobs()
    async with app.run_test(size=(80, 24)) as pilot:
        await listed(pilot, app, until, 6)
        table = app.screen.query_one(JobTable)
        assert sum(column.get_render_width(table) for column in table.ordered_columns) <= table.size.width


async def test_no_runs_says_where_they_come_from(open_jobs: OpenJobs, until: Until) -> None:
    app, _ = open_jobs(runs=())
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "none yet" in words_of(app, "#jobs-head"), "the words")


async def test_the_cursor_stays_on_its_run_when_rows_change_and_come(
    open_jobs: OpenJobs, until: Until, a_run: Callable[..., Run], log_of: Callable[[int], str]
) -> None:
    app, services = open_jobs()
    async with app.run_test(size=(120, 36)) as pilot:
        await listed(pilot, app, until, 6)
        table = app.screen.query_one(JobTable)
        await pilot.press("down")
        assert table.chosen == "aaa2"
        (services.runs().folder("aaa2") / "log").write_text(log_of(7))
        services.runs().save(a_run("aaa0", created_at=2e9))
        await until(pilot, lambda: len(cells(app)) == 7, "the new row")
        await until(pilot, lambda: cells(app)[2][6] == "7/50", "the steps of the queued run")
        assert table.chosen == "aaa2"
        assert table.cursor_row == 2


async def test_enter_opens_the_run_and_coming_back_finds_the_cursor(open_jobs: OpenJobs, until: Until) -> None:
    app, _ = open_jobs()
    async with app.run_test(size=(120, 36)) as pilot:
        await listed(pilot, app, until, 6)
        await pilot.press("j", "j", "enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")
        await until(pilot, lambda: app.screen.training_run is not None, "loaded")  # type: ignore[attr-defined]
        assert app.screen.training_run.id == "aaa3"  # type: ignore[attr-defined]
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the list")
        assert app.screen.query_one(JobTable).chosen == "aaa3"


async def test_space_peeks_at_the_last_lines_and_follows_the_cursor(open_jobs: OpenJobs, until: Until) -> None:
    app, _ = open_jobs()
    async with app.run_test(size=(120, 36)) as pilot:
        await listed(pilot, app, until, 6)
        await pilot.press("space")
        await until(pilot, lambda: "iteration 30/49" in words_of(app, "#peek"), "the last line")
        await pilot.press("down")
        await until(pilot, lambda: "no log here yet" in words_of(app, "#peek"), "no log")
        await pilot.press("space")
        assert words_of(app, "#peek") == ""


async def test_a_filter_keeps_rows_with_all_words_and_escape_ends_it(open_jobs: OpenJobs, until: Until) -> None:
    app, _ = open_jobs()
    async with app.run_test(size=(120, 36)) as pilot:
        await listed(pilot, app, until, 6)
        await pilot.press("slash", *"pass measuring")
        assert [row[1] for row in cells(app)] == ["● measuring"]
        await pilot.press("enter")
        assert app.screen.query_one(JobTable).has_focus
        await pilot.press("escape")
        assert len(cells(app)) == 6
        assert isinstance(app.screen, JobsScreen)


async def test_keys_that_come_in_one_burst_are_the_filters(open_jobs: OpenJobs, until: Until) -> None:
    app, _ = open_jobs()
    async with app.run_test(size=(120, 36)) as pilot:
        await listed(pilot, app, until, 6)
        for key, character in (("slash", "/"), ("c", "c"), ("x", "x"), ("enter", "\r")):
            app.post_message(Key(key, character))
        await until(pilot, lambda: len(cells(app)) == 0, "no row has these letters")
        assert isinstance(app.screen, JobsScreen)


async def test_cancel_asks_and_takes_the_marked_ones(
    open_jobs: OpenJobs, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled: list[str] = []
    app, services = open_jobs()
    monkeypatch.setattr(services, "cancel", lambda run: cancelled.append(run.id))
    async with app.run_test(size=(120, 36)) as pilot:
        await listed(pilot, app, until, 6)
        await pilot.press("x", "down", "x")
        assert words_of(app, "#jobs-head").endswith("2 marked")
        await pilot.press("c")
        await until(pilot, lambda: not isinstance(app.screen, JobsScreen), "the question")
        await pilot.press("enter")  # No is the default
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the answer")
        assert cancelled == []
        await pilot.press("c")
        await until(pilot, lambda: not isinstance(app.screen, JobsScreen), "the question")
        await pilot.press("y")
        await until(pilot, lambda: cancelled == ["aaa1", "aaa2"], "the cancelling")


async def test_an_ended_run_cannot_be_marked(open_jobs: OpenJobs, until: Until) -> None:
    app, _ = open_jobs()
    async with app.run_test(size=(120, 36)) as pilot:
        await listed(pilot, app, until, 6)
        await pilot.press("j", "j", "x", "c")
        await pilot.pause()
        assert isinstance(app.screen, JobsScreen)
        assert all(row[0] == "" for row in cells(app))


async def test_one_look_for_a_cluster_and_what_it_says_is_remembered(
    open_jobs: OpenJobs, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[list[str]] = []

    def look(_session: object, job_ids: list[str]) -> dict[str, Job]:
        looks.append(job_ids)
        return {"2": Job("2", "n", "RUNNING")}

    monkeypatch.setattr("llmb_tui.watch.lookout.look", look)
    app, services = open_jobs()
    monkeypatch.setattr(services, "session", lambda _name: object())
    async with app.run_test(size=(120, 36)) as pilot:
        await listed(pilot, app, until, 6)
        await until(pilot, lambda: cells(app)[1][1] == "● running", "the new state")
        assert looks == [["1", "2"]]
        assert services.runs().load("aaa2").job_state == "RUNNING"
        assert services.runs().load("aaa1").job_state == "RUNNING"


async def test_a_cluster_that_does_not_answer_is_named_and_changes_nothing(open_jobs: OpenJobs, until: Until) -> None:
    app, services = open_jobs()
    async with app.run_test(size=(120, 36)) as pilot:
        await listed(pilot, app, until, 6)
        await until(pilot, lambda: "eos could not be asked" in words_of(app, "#jobs-note"), "the note")
        assert services.runs().load("aaa2").job_state == "PENDING"


async def test_a_cancel_that_fails_says_why(open_jobs: OpenJobs, until: Until, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_run: Run) -> None:
        raise Trouble("scancel failed.", "[/x] denied", "Ask.")

    app, services = open_jobs()
    monkeypatch.setattr(services, "cancel", refuse)
    async with app.run_test(size=(120, 36)) as pilot:
        await listed(pilot, app, until, 6)
        await pilot.press("c")
        await until(pilot, lambda: not isinstance(app.screen, JobsScreen), "the question")
        await pilot.press("y")
        await until(
            pilot,
            lambda: any("[/x] denied" in str(part.render()) for part in app.screen.query(Static)),
            "the reason",
        )


def test_names_from_outside_are_no_markup_in_a_cell(a_run: Callable[..., Run]) -> None:
    row = job_row(a_run(cluster="[/x] [red]"), RunState("k3f9a2"), marked=False, now=0.0)
    assert row["where"][0] == "[/x] [red]"


@pytest.mark.parametrize(
    ("job_state", "word"),
    [("PENDING", "◐ queued"), ("TIMEOUT", "✗ failed"), ("CANCELLED", "■ cancelled"), (None, "○ submitted")],
)
def test_without_a_log_slurms_word_counts(job_state: str | None, word: str, a_run: Callable[..., Run]) -> None:
    assert state_cell(a_run(job_state=job_state), RunState("k3f9a2"))[0] == word


def test_last_lines_are_clean_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 100_000 + b"\na\n\x1b[31mb\n 1%\r100%\nlast")
    assert last_lines(path, 3) == ["b", "100%", "last"]
    assert last_lines(path, 9) == ["a", "b", "100%", "last"]
    assert last_lines(tmp_path / "none", 3) == []
