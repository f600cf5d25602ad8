"""Crash reports and logs contain no text that the user typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual import constants

from llmb_tui.crash import report_of
from llmb_tui.errors import LlmbError
from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.background import run_in_thread
from llmb_tui.ui.dialogs import Secret
from tests.kit.pilot import loaded, on_top

CANARY = "canary7391"


class OddError(Exception):
    """An exception that no code catches."""


def _fail_with(password: str | None) -> None:
    typed = {"password": password}
    raise OddError(f"{password} in {typed}")


async def _fail_in_worker(password: str | None) -> None:
    _fail_with(password)


async def _type_secret(app: LlmbApp, then: Any) -> None:
    """Type the canary into the dialog of a login, and pass the answer to `then`."""
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        app.push_screen(Secret("Password: ", False), then)
        await on_top(pilot, Secret)
        await pilot.press(*CANARY, "enter")
        await pilot.pause()


@pytest.mark.parametrize("where", ["a handler", "a worker"])
async def test_the_crash_screen_shows_the_place_and_no_value(
    app: LlmbApp, where: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    in_worker = where == "a worker"
    with pytest.raises(Exception, match=CANARY):
        await _type_secret(app, (lambda text: app.run_worker(_fail_in_worker(text))) if in_worker else _fail_with)
    shown = "".join(capfd.readouterr())
    assert app.return_code == 2
    assert CANARY not in shown
    assert "_fail_with" in shown
    assert Path(__file__).name in shown
    assert "Odd" in shown
    assert "Report" in shown


def test_the_report_of_a_chain_names_each_place_and_the_words_of_the_system_only(tmp_path: Path) -> None:
    def fail() -> None:
        try:
            (tmp_path / CANARY / "x").mkdir()
        except OSError as error:
            raise RuntimeError(CANARY) from error

    with pytest.raises(RuntimeError) as caught:
        fail()
    report = report_of(caught.value)
    assert CANARY not in report
    assert report.index("FileNotFoundError: No such file or directory\n") < report.index("\nRuntimeError\n")
    assert "raise RuntimeError" in report


async def test_internal_error_in_a_thread_shows_its_place_and_no_value() -> None:
    with pytest.raises(LlmbError) as caught:
        await run_in_thread(_fail_with, CANARY)
    assert CANARY not in str(caught.value)
    assert "Odd" in str(caught.value)
    assert Path(__file__).name in str(caught.value)


async def test_typed_text_reaches_no_log_of_textual(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "textual.log"
    monkeypatch.setattr(constants, "LOG_FILE", str(log))
    monkeypatch.setattr(constants, "DEBUG", True)  # Textual would write keys.log
    answers: list[str | None] = []
    await _type_secret(LlmbApp(services), answers.append)
    assert answers == [CANARY]
    assert not log.exists()
    assert not constants.DEBUG
