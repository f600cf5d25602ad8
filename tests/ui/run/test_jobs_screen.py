"""The list of runs: rows from the local data, one query for each cluster, and a cursor that stays."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

import pytest
from textual.app import App
from textual.events import Key
from textual.widgets import Static

from llmb_tui.answers.run_columns import run_columns
from llmb_tui.answers.run_row import row_from_record
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.errors import LlmbError
from llmb_tui.launch.policy import Policy
from llmb_tui.launch.run import Cancel, Run
from llmb_tui.ui.dialogs import ConfirmDialog, Failure
from llmb_tui.ui.screens.jobs import JobsScreen, JobTable
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.widgets.keyed_table import fit_columns, make_row
from llmb_tui.watch.job_poller import JobPoller
from llmb_tui.watch.report import label_of
from llmb_tui.watch.state import RunRecord, RunState
from tests.kit.frames import Frames
from tests.kit.pilot import SIZE, on_screen, on_top, rows, text_of, until
from tests.kit.runs import CREATED_AT, PLAN, make_run
from tests.ui.run.run_states import log_line, log_text

OpenJobs = Callable[..., tuple[App[None], Any]]


def cells(app: App[None]) -> list[list[str]]:
    table = app.screen.query_one(JobTable)
    return [[str(cell).strip() for cell in table.get_row_at(row)] for row in range(table.row_count)]


async def listed(pilot: Any, app: App[None], count: int) -> None:
    await until(pilot, lambda: len(app.screen.query(JobTable)) == 1 and len(cells(app)) == count, f"{count} rows")
    done = {"31/50", "50/50", "3/50", "10/50"} if count == 6 else set()
    await until(pilot, lambda: done <= {cell for row in cells(app) for cell in row}, "every log read")
    await pilot.pause()


async def test_frames_of_the_list_add_up_to_the_whole_screen(
    open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, _ = open_jobs()
    frames = Frames(app, monkeypatch)
    async with app.run_test(size=(80, 24)) as pilot:
        await listed(pilot, app, 6)
        for key in ("down", "down", "right", "right", "end", "space", "home", "up"):
            await pilot.press(key)
            await pilot.pause()
            assert frames.cells == frames.whole(), key


@pytest.mark.parametrize("longest", [len("● measuring"), len("○ not submitted")])
@pytest.mark.parametrize(
    ("terminal", "further"), [(80, set()), (120, {"bar", "speed"}), (160, {"procedure", "speed", "note"})]
)
def test_the_columns_have_room_for_their_longest_cells(
    open_jobs: OpenJobs, terminal: int, further: set[str], longest: int
) -> None:
    _, services = open_jobs()
    columns = JobsScreen(services, NonInteractivePrompter()).columns
    widest = {column.key: longest if column.key == "state" else len(column.heading) for column in columns}
    width = {column.key: width for column, width in fit_columns(columns, widest, terminal - 2)}
    assert sum(width.values()) + len(width) - 1 <= terminal - 2
    assert {"mark", "state", "workload", "gpus", "cluster", "steps", "median_step_time_s", "verdict"} <= width.keys()
    assert further <= width.keys()
    assert width.get("speed", 99) >= len("100.0 % of published")
    assert width["steps"] >= len("1000/1000")
    assert width["state"] == longest


@pytest.mark.parametrize("size", [(80, 24), SIZE])
async def test_cells_that_are_too_long_do_not_run_into_the_next(open_jobs: OpenJobs, size: tuple[int, int]) -> None:
    app, services = open_jobs(runs=())
    for number, total in enumerate((1000, 12_000_000)):
        run = make_run(f"aaa{number}", plan=replace(PLAN, steps=total), created_at=CREATED_AT - number)
        services.runs.save(run)
        log = log_line(total - 2, 1.98).replace("/49 ", f"/{total - 1} ")
        (services.runs.folder(run.id) / "log").write_text(f"{log}\n")
    async with app.run_test(size=size) as pilot:
        await listed(pilot, app, 2)
        await until(pilot, lambda: "1199999" in on_screen(app), "both logs read")
        first, second = (row for row in rows(app) if "nemotron4" in row)
        assert " 999/1000 " in first
        assert re.search(r" 11999999(/12000000|\S*…) ", second)


async def test_each_run_has_a_row_with_its_figures(open_jobs: OpenJobs) -> None:
    app, _ = open_jobs()
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 6)
        assert cells(app)[0] == [
            *("", "● measuring", "nemotron4 15b fp8", "64×H100", "eos", "31/50", "██▍", "2"),
            *("99.0 % of published", "✓ PASS", "1m", ""),
        ]
        assert [row[1] for row in cells(app)] == [
            "● measuring",
            "◌ queued",
            "✓ done",
            "✗ failed",
            "■ cancelled",
            "? unknown",
        ]
        assert text_of(app, "#list-head").startswith("Runs   3 active · 3 finished")


async def test_a_simulated_cluster_has_a_notice(open_jobs: OpenJobs) -> None:
    app, services = open_jobs()
    services.clusters.notice = "simulated, clock x30"
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "eos: simulated, clock x30" in text_of(app, "#list-head"), "the notice")
        for width in (160, 80):
            await pilot.resize_terminal(width, 24)
            await until(pilot, lambda at=width: at - 4 < len(text_of(app, "#list-head")) <= at, "the whole line")
            assert text_of(app, "#list-head").rstrip().endswith("clock x30")


async def test_a_narrow_terminal_shows_every_row_whole(open_jobs: OpenJobs) -> None:
    app, _ = open_jobs()
    async with app.run_test(size=(80, 24)) as pilot:
        await listed(pilot, app, 6)
        table = app.screen.query_one(JobTable)
        assert sum(column.get_render_width(table) for column in table.ordered_columns) <= table.size.width


async def test_a_row_turns_when_the_log_has_an_error_that_ends_the_run(open_jobs: OpenJobs) -> None:
    app, services = open_jobs(("aaa1",))
    log = services.runs.folder("aaa1") / "log"
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 1)
        assert cells(app)[0][1] == "● measuring"
        with log.open("a") as file:
            file.write("[rank3]: ValueError: first of all\nsrun: error: cn014: task 3: Exited with exit code 1\n")
        await until(pilot, lambda: cells(app)[0][1] == "✗ failing", "the error")
        with log.open("a") as file:
            file.write(f"{log_line(31, 2.1)}\n")
        await until(pilot, lambda: cells(app)[0][1] == "● measuring", "the next step, after which no error counts")
        assert services.feed.record("aaa1").state.stage == "measuring"


async def test_an_empty_list_explains_how_to_submit_a_run(open_jobs: OpenJobs) -> None:
    app, _ = open_jobs(runs=())
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "none yet" in text_of(app, "#list-head"), "the empty list")


async def test_the_cursor_stays_on_its_run_when_rows_change_and_come(open_jobs: OpenJobs) -> None:
    app, services = open_jobs()
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 6)
        table = app.screen.query_one(JobTable)
        await pilot.press("down")
        assert table.cursor_key == "aaa2"
        (services.runs.folder("aaa2") / "log").write_text(log_text(7))
        services.runs.save(make_run("aaa0", created_at=2e9))
        await until(pilot, lambda: len(cells(app)) == 7, "the new row")
        await until(pilot, lambda: cells(app)[2][5] == "7/50", "the steps of the queued run")
        assert table.cursor_key == "aaa2"
        assert table.cursor_row == 2


async def test_enter_opens_the_run_and_coming_back_finds_the_cursor(open_jobs: OpenJobs) -> None:
    app, _ = open_jobs()
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 6)
        await pilot.press("j", "j", "enter")
        await on_top(pilot, RunScreen)
        await until(pilot, lambda: app.screen.training_run is not None, "loaded")  # type: ignore[attr-defined]
        assert app.screen.training_run.id == "aaa3"  # type: ignore[attr-defined]
        await pilot.press("q")
        await on_top(pilot, JobsScreen)
        assert app.screen.query_one(JobTable).cursor_key == "aaa3"


async def test_a_run_removed_while_the_list_was_covered_leaves_the_list(open_jobs: OpenJobs) -> None:
    app, services = open_jobs()
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 6)
        await pilot.press("enter")
        await on_top(pilot, RunScreen)
        shutil.rmtree(services.runs.folder("aaa3"))
        await pilot.press("q")
        await on_top(pilot, JobsScreen)
        await until(pilot, lambda: len(cells(app)) == 5, "five runs")
        assert text_of(app, "#list-head").startswith("Runs   3 active · 2 finished")


async def test_after_a_failed_first_poll_only_removed_runs_leave_the_list(open_jobs: OpenJobs) -> None:
    app, services = open_jobs()
    folder = services.runs.directory
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 6)
        await pilot.press("enter")
        await on_top(pilot, RunScreen)
        shutil.rmtree(services.runs.folder("aaa3"))
        away = folder.rename(folder.with_name("away"))
        folder.write_text("no folder")
        await pilot.press("q")
        await on_top(pilot, JobsScreen)
        await until(pilot, lambda: "This machine" in text_of(app, "#list-status"), "the failed look")
        folder.unlink()
        away.rename(folder)
        await until(pilot, lambda: "This machine" not in text_of(app, "#list-status"), "a look that did not fail")
        assert text_of(app, "#list-head").startswith("Runs   3 active · 2 finished")
        assert len(cells(app)) == 5


async def test_space_peeks_at_the_last_lines_and_follows_the_cursor(open_jobs: OpenJobs) -> None:
    app, _ = open_jobs()
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 6)
        await pilot.press("space")
        await until(pilot, lambda: "iteration 30/49" in text_of(app, "#jobs-peek"), "the last line")
        await pilot.press("down")
        await until(pilot, lambda: "No log here yet" in text_of(app, "#jobs-peek"), "the missing log")
        await pilot.press("slash", *"zzz")
        await until(pilot, lambda: text_of(app, "#jobs-peek") == "", "the empty result")
        await pilot.press("escape")
        await until(pilot, lambda: "iteration 30/49" in text_of(app, "#jobs-peek"), "the first run")
        await pilot.press("down")
        await until(pilot, lambda: "No log here yet" in text_of(app, "#jobs-peek"), "the missing log")
        await pilot.press("space")
        assert text_of(app, "#jobs-peek") == ""


async def test_a_filter_keeps_rows_with_all_words_and_escape_ends_it(open_jobs: OpenJobs) -> None:
    app, _ = open_jobs()
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 6)
        await pilot.press("slash", *"pass measuring")
        assert [row[1] for row in cells(app)] == ["● measuring"]
        await pilot.press("enter")
        assert app.screen.query_one(JobTable).has_focus
        await pilot.press("escape")
        assert len(cells(app)) == 6
        assert isinstance(app.screen, JobsScreen)


async def test_keys_typed_in_one_burst_go_to_the_filter(open_jobs: OpenJobs) -> None:
    app, _ = open_jobs()
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 6)
        for key, character in (("slash", "/"), ("c", "c"), ("x", "x"), ("enter", "\r")):
            app.post_message(Key(key, character))
        await until(pilot, lambda: len(cells(app)) == 0, "the empty filter")
        assert isinstance(app.screen, JobsScreen)


async def test_cancel_confirms_and_cancels_the_marked_runs(
    open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled: list[str] = []
    app, services = open_jobs()
    monkeypatch.setattr(services.feed, "cancel", lambda run, _: (cancelled.append(run.id), *run.job_ids)[1:])  # type: ignore[func-returns-value]
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 6)
        await pilot.press("x", "down", "x")
        assert text_of(app, "#list-head").endswith("2 marked")
        await pilot.press("c")
        await until(pilot, lambda: not isinstance(app.screen, JobsScreen), "the question")
        await pilot.press("enter")  # No is the default
        await on_top(pilot, JobsScreen)
        assert cancelled == []
        await pilot.press("c")
        await until(pilot, lambda: not isinstance(app.screen, JobsScreen), "the question")
        await pilot.press("y")
        await until(pilot, lambda: cancelled == ["aaa1", "aaa2"], "the cancelling")


async def test_all_confirmed_runs_are_cancelled_after_the_list_is_closed(
    open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled: list[str] = []
    left = threading.Event()

    def cancel(run: Run, _prompter: object) -> tuple[str, ...]:
        left.wait(60)
        cancelled.append(run.id)
        return run.job_ids

    app, services = open_jobs()
    monkeypatch.setattr(services.feed, "cancel", cancel)
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 6)
        await pilot.press("x", "down", "x", "c")
        await on_top(pilot, ConfirmDialog)
        await pilot.press("y")
        await on_top(pilot, JobsScreen)
        await pilot.press("c")
        assert isinstance(app.screen, JobsScreen)
        texts = [note.message for note in app._notifications]
        assert texts == ["The confirmed runs are being cancelled."]
        await pilot.press("q")
        await until(pilot, lambda: not isinstance(app.screen, JobsScreen), "the list is left")
        left.set()
        await until(pilot, lambda: len(app._notifications) == 2, "the notification of the outcome")
        assert cancelled == ["aaa1", "aaa2"]
        assert "asked to cancel 2 jobs" in [note.message for note in app._notifications][1]


async def test_a_run_that_is_not_submitted_has_a_note_and_can_be_withdrawn(open_jobs: OpenJobs) -> None:
    app, services = open_jobs(())
    for run_id in ("bbb1", "bbb2"):
        services.runs.save(make_run(run_id, submission="intended", job_ids=(), job_state=None))
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 2)
        await until(
            pilot,
            lambda: "not submitted to submit it, or withdraw it" in text_of(app, "#list-status"),
            "the remedy",
        )
        assert text_of(app, "#list-head") == "Runs   0 active · 0 finished · 2 not submitted"
        await pilot.press("x", "c")
        await until(pilot, lambda: not isinstance(app.screen, JobsScreen), "the question")
        assert "Withdraw 1 run not submitted yet?" in on_screen(app)
        await pilot.press("y")
        await until(
            pilot, lambda: text_of(app, "#list-head") == "Runs   0 active · 1 finished · 1 not submitted", "withdrawn"
        )
    assert {services.runs.load(run_id).submission for run_id in ("bbb1", "bbb2")} == {"intended", "withdrawn"}


async def test_an_ended_run_cannot_be_marked(open_jobs: OpenJobs) -> None:
    app, _ = open_jobs()
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 6)
        await pilot.press("j", "j", "x", "c")
        await pilot.pause()
        assert isinstance(app.screen, JobsScreen)
        assert all(row[0] == "" for row in cells(app))


@pytest.mark.parametrize("by", ["flag", "profile"])
async def test_on_a_read_only_cluster_cancel_is_grey_and_the_heading_shows_the_reason(
    open_jobs: OpenJobs, by: str
) -> None:
    app, services = open_jobs()
    services.policy, services.clusters.observed = Policy(read_only=by == "flag"), by == "profile"
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 6)
        assert "eos: read-only" in text_of(app, "#list-head")
        keys = app.screen.active_bindings.values()
        assert {"mark", "cancel"} == {active.binding.action for active in keys if not active.enabled}
        await pilot.press("x", "c")
        await pilot.pause()
        assert isinstance(app.screen, JobsScreen)
        assert all(row[0] == "" for row in cells(app))


async def test_one_query_for_a_cluster_updates_the_stored_job_states(
    open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[list[str]] = []

    def look(job_ids: list[str]) -> dict[str, Job]:
        looks.append(job_ids)
        return {"2": Job("2", "n", "RUNNING")}

    app, services = open_jobs(("aaa1", "aaa2", "aaa3"))
    monkeypatch.setattr(
        services.clusters,
        "poller",
        cache(lambda _name: JobPoller(cast("SlurmCluster", SimpleNamespace(query_jobs=look)))),
    )
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 3)
        await until(pilot, lambda: cells(app)[1][1] == "● running", "the new state")
        assert looks == [["1", "2"]]
        assert services.runs.load("aaa2").job_state == "RUNNING"
        assert services.runs.load("aaa1").job_state == "RUNNING"


async def test_a_cluster_that_does_not_answer_is_named_and_changes_nothing(open_jobs: OpenJobs) -> None:
    app, services = open_jobs()
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 6)
        await until(pilot, lambda: "Jobs on eos could not be read" in text_of(app, "#list-status"), "the note")
        assert services.runs.load("aaa2").job_state == "PENDING"


async def test_a_failed_cancel_reports_the_reason(open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_run: Run, _prompter: object) -> tuple[str, ...]:
        raise LlmbError("scancel failed.", "[/x] denied", "Ask.")

    app, services = open_jobs()
    monkeypatch.setattr(services.feed, "cancel", refuse)
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 6)
        await pilot.press("c")
        await until(pilot, lambda: not isinstance(app.screen, JobsScreen), "the question")
        await pilot.press("y")
        await until(
            pilot,
            lambda: any("[/x] denied" in str(part.render()) for part in app.screen.query(Static)),
            "the reason",
        )


async def test_failed_cancels_are_reported_in_one_error(open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(run: Run, _prompter: object) -> tuple[str, ...]:
        raise LlmbError("scancel failed.", f"{run.id} is not yours.", "Ask.")

    app, services = open_jobs()
    monkeypatch.setattr(services.feed, "cancel", refuse)
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 6)
        await pilot.press("x", "down", "x", "c")
        await on_top(pilot, ConfirmDialog)
        await pilot.press("y")
        await on_top(pilot, Failure)
        text = on_screen(app)
        assert all(f"{run_id} is not yours." in text for run_id in ("aaa1", "aaa2"))
        await pilot.press("escape")
        await on_top(pilot, JobsScreen)
        assert not app._notifications


async def test_an_unconfirmed_cancel_is_shown_above_the_rows(open_jobs: OpenJobs) -> None:
    app, services = open_jobs(("aaa1",))
    services.runs.save(replace(services.runs.load("aaa1"), cancel=Cancel("1", 0.0)))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "Slurm was asked to cancel job 1" in text_of(app, "#list-status"), "the note")


def test_names_from_a_cluster_are_not_parsed_as_markup() -> None:
    record = RunRecord(make_run(cluster="[/x] [red]"), RunState("k3f9a2"))
    row = make_row(run_columns("runs screen"), row_from_record(record))
    assert row["cluster"][0] == "[/x] [red]"


@pytest.mark.parametrize(
    ("job_state", "word"),
    [
        ("PENDING", "◌ queued"),
        ("TIMEOUT", "✗ timeout"),
        ("RUNNING", "● running"),
        ("CANCELLED", "■ cancelled"),
        (None, "● submitted"),
    ],
)
def test_without_a_log_the_job_state_of_slurm_is_shown(job_state: str | None, word: str) -> None:
    assert label_of(make_run(job_state=job_state), RunState("k3f9a2")).text == word


async def test_a_note_is_added_shown_and_found_by_the_filter(open_jobs: OpenJobs) -> None:
    app, services = open_jobs()
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 6)
        await pilot.press("down", "n", *"slow node", "tab", *"after 570", "enter")
        await until(pilot, lambda: text_of(app, "#list-about") == "#after #570 slow node", "the note")
        assert [row[0] for row in cells(app)] == ["", "•", "", "", "", ""]
        assert services.notes.of("aaa2").tags == ("after", "570")
        await pilot.press("up")
        assert text_of(app, "#list-about") == ""
        await pilot.press("slash", *"#after", "enter")
        assert [row[1] for row in cells(app)] == ["◌ queued"]
        await pilot.press("n", "tab", *"after", "enter")
        await until(pilot, lambda: text_of(app, "#list-about") == "#after slow node", "the removed tag")
        await pilot.press("n", *"gone", "escape")
        await on_top(pilot, JobsScreen)
        assert services.notes.of("aaa2").text == "slow node"


async def test_an_invalid_tag_is_reported_below_the_typed_text(open_jobs: OpenJobs) -> None:
    app, services = open_jobs()
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 6)
        await pilot.press("n", *"slow", "tab", *"driver;570", "enter")
        assert "cannot be a tag" in text_of(app, "#note-fault")
        await pilot.press(*["backspace"] * 4, *"-570", "enter")
        await on_top(pilot, JobsScreen)
        await until(pilot, lambda: text_of(app, "#list-about") == "#driver-570 slow", "the note")
    assert services.notes.of("aaa1").text == "slow"


async def test_a_note_file_is_shown_without_control_characters_or_markup(open_jobs: OpenJobs) -> None:
    app, services = open_jobs(runs=("aaa1",))
    (services.runs.folder("aaa1") / "note.json").write_text('{"note": "[/red] \\u001b[2J[bold"}')
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: text_of(app, "#list-about") == "[/red] [bold", "the note")
