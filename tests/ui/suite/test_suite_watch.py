"""A submitted suite: a row for each run, the totals, and the user's actions on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from textual.app import App
from textual.coordinate import Coordinate
from textual.pilot import Pilot
from textual.widgets import Input

from llmb_tui.errors import LlmbError
from llmb_tui.language.states import Stage, Submission, state_label
from llmb_tui.launch.policy import Policy
from llmb_tui.suites.submissions import SuiteSubmissionProgress
from llmb_tui.suites.suite_progress import log_to_read
from llmb_tui.ui.dialogs import ConfirmDialog, ExportDialog, Failure
from llmb_tui.ui.screens.report import ReportScreen
from llmb_tui.ui.screens.result_view import ResultView
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.screens.suite_watch import SuiteRows, SuiteWatchScreen
from llmb_tui.ui.widgets.keyed_table import fit_columns
from llmb_tui.ui.widgets.suite_texts import progress_columns, progress_sums
from tests.kit.pilot import SIZE, actions, by_head, on_screen, on_top, text_of, until
from tests.ui.run.run_states import log_text
from tests.ui.suite.conftest import SUITE_ID, SuiteServices

OpenWatch = Callable[..., tuple[App[None], SuiteServices]]


async def read(pilot: Pilot[Any]) -> SuiteWatchScreen:
    """The screen, once every row shows the state of its run."""
    await on_top(pilot, SuiteWatchScreen)
    screen = pilot.app.screen
    assert isinstance(screen, SuiteWatchScreen)
    await until(pilot, lambda: "1 of 5 runs done" in text_of(pilot.app, "#watch-sums"), "the state of the suite")
    await until(pilot, lambda: screen.query_one(SuiteRows).row_count == 5, "the rows")
    return screen


@pytest.mark.parametrize("terminal", [80, 120])
def test_the_columns_have_room_for_their_longest_cells(terminal: int) -> None:
    longest = max(len(state_label(state).text) for state in (*get_args(Stage), *get_args(Submission)))
    columns = progress_columns()
    widest = {column.key: longest if column.key == "state" else len(column.heading) for column in columns}
    width = {column.key: width for column, width in fit_columns(columns, widest, terminal - 2)}
    assert {"row", "gpus", "state", "steps", "step_time_s", "verdict"} <= width.keys()
    assert sum(width.values()) + len(width) - 1 <= terminal - 2
    assert width["state"] == longest
    assert width["steps"] >= len("1000/1000")


def column(app: App[None], key: str) -> list[str]:
    return [str(cell).strip() for cell in app.screen.query_one(SuiteRows).get_column(key)]


async def test_each_run_has_a_row_and_the_suite_has_sums(open_watch: OpenWatch) -> None:
    app, _ = open_watch()
    async with app.run_test(size=SIZE) as pilot:
        await read(pilot)
        assert column(app, "state") == ["✓ done", "● measuring", "◌ queued", "✗ failed", "○ not submitted"]
        assert column(app, "steps") == ["50/50", "31/50", "0/50", "3/50", "–"]
        assert column(app, "verdict")[0] == "✓ PASS"
        assert column(app, "gpus") == ["64", "64", "16", "32", "128"]
        assert column(app, "step_time_s")[-1].startswith("~")
        sums = text_of(app, "#watch-sums")
        assert "1 of 5 runs done: 1 PASS · 1 failed · 1 running · 1 queued · 1 not submitted" in sums
        assert "GPU-hours" in sums
        assert "s: submit" in sums


async def test_a_changed_run_repaints_only_its_row(open_watch: OpenWatch, monkeypatch: pytest.MonkeyPatch) -> None:
    app, services = open_watch()
    async with app.run_test(size=SIZE) as pilot:
        screen = await read(pilot)
        written: list[int] = []
        whole = SuiteRows.update_cell_at

        def update(table: SuiteRows, at: Coordinate, *arguments: Any) -> None:
            written.append(at.row)
            whole(table, at, *arguments)

        monkeypatch.setattr(SuiteRows, "update_cell_at", update)
        assert screen.progress is not None
        running = screen.progress.plan.suite.run_ids[1]
        (services.runs.folder(running) / "log").write_text(log_text(40))
        await until(pilot, lambda: column(app, "steps")[1] == "40/50", "the new step")
        assert set(written) == {1}


async def test_a_submitted_run_can_be_opened(open_watch: OpenWatch) -> None:
    app, _ = open_watch()
    async with app.run_test(size=SIZE) as pilot:
        await read(pilot)
        await pilot.press("j", "j", "j", "j", "enter")
        await pilot.pause()
        assert isinstance(app.screen, SuiteWatchScreen)
        await pilot.press("k", "k", "k", "k", "enter")
        await on_top(pilot, RunScreen)
        await pilot.press("q")
        await read(pilot)
        assert column(app, "state")[0] == "✓ done"


async def test_an_unreadable_run_is_unknown_and_shows_its_error(open_watch: OpenWatch) -> None:
    app, services = open_watch()
    (services.runs.folder("25100908533aaa3") / "run.json").write_text("{")
    async with app.run_test(size=SIZE) as pilot:
        await read(pilot)
        assert column(app, "state")[3:] == ["? unknown", "○ not submitted"]
        await pilot.press("j", "j", "j", "enter")
        await on_top(pilot, Failure)
        assert "run.json" in on_screen(app)


async def test_a_suite_is_cancelled_after_a_confirmation(open_watch: OpenWatch) -> None:
    app, services = open_watch()
    async with app.run_test(size=SIZE) as pilot:
        screen = await read(pilot)
        for answer in ("n", "y"):
            assert services.sender.cancelled == []
            await pilot.press("c")
            await on_top(pilot, ConfirmDialog)
            assert "2 active runs and 1 run not submitted" in on_screen(app)
            await pilot.press(answer)
            await on_top(pilot, SuiteWatchScreen)
        await until(pilot, lambda: "1 run will not be submitted" in text_of(app, "#watch-sums"), "the run's state")
        assert [suite.id for suite in services.sender.cancelled] == [SUITE_ID]
        assert "resume" not in actions(screen)


@pytest.mark.parametrize("refuses", [None, LlmbError("It is not known yet whether there is a job of: mine.")])
async def test_the_result_of_a_cancel_is_reported(open_watch: OpenWatch, refuses: LlmbError | None) -> None:
    app, services = open_watch()
    services.sender.refuses = refuses
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await read(pilot)
        await pilot.press("c")
        await on_top(pilot, ConfirmDialog)
        await pilot.press("y")
        await on_top(pilot, Failure if refuses else SuiteWatchScreen)
        text = "not known yet" if refuses else "2 runs cancelled"
        await until(pilot, lambda: text in on_screen(app), "the outcome")
        assert "is cancelled" not in on_screen(app)


async def test_the_remaining_runs_are_submitted_by_a_key(open_watch: OpenWatch) -> None:
    app, services = open_watch()
    async with app.run_test(size=SIZE) as pilot:
        screen = await read(pilot)
        await pilot.press("s")
        await until(pilot, lambda: "checking eos" in text_of(app, "#watch-sums"), "the current check")
        assert "resume" not in actions(screen)
        await pilot.press("s")
        services.sender.released.set()
        await until(pilot, lambda: "s: submit" in text_of(app, "#watch-sums"), "the end of the submission")
        assert [suite.id for suite in services.sender.sent] == [SUITE_ID]


async def test_a_rejected_run_can_be_submitted_again_or_cancelled(open_watch: OpenWatch) -> None:
    app, services = open_watch()
    *others, last = services.suites.load(SUITE_ID).run_ids
    for run_id in others:
        services.keep_run(run_id, "COMPLETED", 50)
    services.keep_run(last, "")
    services.runs.save(replace(services.runs.load(last), submission="refused", job_ids=(), job_state=None))
    async with app.run_test(size=SIZE) as pilot:
        await on_top(pilot, SuiteWatchScreen)
        screen = pilot.app.screen
        await until(pilot, lambda: "1 run · s: submit again" in text_of(app, "#watch-sums"), "the key that submits")
        assert {"resume", "cancel"} <= actions(screen)
        await pilot.press("c")
        await on_top(pilot, ConfirmDialog)
        assert "0 active runs and 1 run not submitted" in on_screen(app)
        await pilot.press("y")
        await on_top(pilot, SuiteWatchScreen)
        await until(pilot, lambda: not {"resume", "cancel"} & actions(screen), "the end of the suite")
        assert [suite.id for suite in services.sender.cancelled] == [SUITE_ID]


async def test_on_a_read_only_cluster_a_suite_is_only_watched(open_watch: OpenWatch) -> None:
    app, _ = open_watch(Policy(read_only=True))
    async with app.run_test(size=SIZE) as pilot:
        screen = await read(pilot)
        assert not {"resume", "cancel"} & actions(screen)


async def test_a_suite_has_a_report_and_an_export(
    open_watch: OpenWatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app, _ = open_watch()
    async with app.run_test(size=SIZE) as pilot:
        await read(pilot)
        await pilot.press("r")
        await on_top(pilot, ReportScreen)
        assert "scales" in on_screen(app)
        await pilot.press("q")
        await read(pilot)
        await pilot.press("e")
        await on_top(pilot, ExportDialog)
        assert app.screen.query_one(Input).value == str(tmp_path / "scales.tar.zst")
        await pilot.press("enter")
        await on_top(pilot, ResultView)
        await until(
            pilot, lambda: "is active and was not exported" in on_screen(app), "an active suite is not exported"
        )
        assert not list(tmp_path.glob("*.zst"))


def test_logs_are_copied_one_at_a_time(open_watch: OpenWatch) -> None:
    _, services = open_watch()
    progress = services.suites.progress(services.suites.load(SUITE_ID))
    done, running, _, failed, _ = progress.plan.suite.run_ids
    unread = {row.record.run.id for row in progress.rows if row.record and row.record.state.log_unread}
    assert log_to_read(progress, "", unread) == running
    assert log_to_read(progress, running, unread) == running
    assert log_to_read(progress, "", set()) in {done, failed, running}


def test_a_suite_at_its_limit_shows_the_limit(open_watch: OpenWatch) -> None:
    _, services = open_watch()
    suite = replace(services.suites.load(SUITE_ID), at_most=2)
    progress = services.suites.progress(suite)
    for text, shown in (
        (progress.words, "waiting to submit the next run (at most 2 at a time)"),
        ("checking eos", "checking eos"),
        ("", "connecting"),
    ):
        assert by_head(progress_sums(progress, SuiteSubmissionProgress(text)))["submitting"] == shown


def test_the_error_that_stopped_a_submission_is_shown(open_watch: OpenWatch) -> None:
    _, services = open_watch()
    progress = services.suites.progress(services.suites.load(SUITE_ID))
    sending = SuiteSubmissionProgress(
        "job 1", is_active=False, error=LlmbError("eos is not ready.", "No image.", "Install.")
    )
    parts = by_head(progress_sums(progress, sending))
    assert parts["✗ stopped"] == "eos is not ready. Install."
    assert parts["next"] == "1 run not submitted · s: submit"
