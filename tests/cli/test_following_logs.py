"""`logs RUN -f`: each line of every start once, and notes about the connection. The monitor is a stand-in."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from llmb_tui.cli import main
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.runs_feed import RunsFeed
from llmb_tui.watch.state import RunState
from tests.kit.runs import make_run

Publish = Callable[[RunState], None]
Follow = Callable[[Callable[[Publish], RunState]], None]


@pytest.fixture
def folder(user_places: UserPaths) -> Path:
    """Folder of the active run `going`."""
    runs = Services(user_places).runs
    runs.save(make_run("going"))
    return runs.folder("going")


@pytest.fixture
def follow(monkeypatch: pytest.MonkeyPatch) -> Follow:
    """Sets the events of the followed run."""

    def let(happen: Callable[[Publish], RunState]) -> None:
        class Watched:
            def watch(self, publish: Publish, stop: threading.Event, prompter: Prompter | None = None) -> RunState:
                del stop, prompter
                return happen(publish)

        monkeypatch.setattr(RunsFeed, "monitor", lambda *_: Watched())

    return let


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_file_is_followed_until_the_user_interrupts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log, more = tmp_path / "train.out", iter(("o\n", "three\n"))
    append(log, "one\ntw")

    def waits(_: float) -> None:
        if (text := next(more, None)) is None:
            raise KeyboardInterrupt
        append(log, text)

    monkeypatch.setattr("llmb_tui.cli.logs.time.sleep", waits)
    assert main(["logs", str(log), "-f"]) == 130
    assert capsys.readouterr().out == "one\ntwo\nthree\n"


def test_all_lines_of_a_start_come_before_those_of_the_next(
    folder: Path, follow: Follow, capsys: pytest.CaptureFixture[str]
) -> None:
    def happen(publish: Publish) -> RunState:
        append(folder / "log", "one\ntw")
        publish(RunState("going", "measuring"))
        # All of this happens between two reads of the copies.
        append(folder / "log", "o\nthree")
        append(folder / "log.1", "four\nfi")
        append(folder / "log.1-1", "six\n")
        publish(RunState("going", "measuring", log_name="log.1-1"))
        append(folder / "log.1-1", "seven\neight")
        return RunState("going", "done", log_name="log.1-1")

    follow(happen)
    assert main(["logs", "going", "-f"]) == 0
    assert capsys.readouterr().out.split() == ["one", "two", "three", "four", "fi", "six", "seven", "eight"]


def test_it_begins_at_the_newest_start(folder: Path, follow: Follow, capsys: pytest.CaptureFixture[str]) -> None:
    append(folder / "log", "one\n")
    append(folder / "log.1", "two\n")
    follow(lambda _: RunState("going", "done", log_name="log.1"))
    assert main(["logs", "going", "-f"]) == 0
    assert capsys.readouterr().out == "two\n"


def test_a_refused_login_is_not_the_end_of_the_log(
    folder: Path, follow: Follow, capsys: pytest.CaptureFixture[str]
) -> None:
    append(folder / "log", "one\n")
    follow(lambda _: RunState("going", "start", link="closed", link_note="eos-login refused the login."))
    assert main(["logs", "going", "-f"]) == 2
    printed = capsys.readouterr()
    assert printed.out == "one\n"
    assert printed.err.count("eos-login refused the login.") == 1
    assert main(["logs", "going", "-f", "--json"]) == 2
    line, error = map(json.loads, capsys.readouterr().out.splitlines())
    assert (line, error["error"]["why"]) == ({"line": "one"}, "eos-login refused the login.")


def test_an_unreadable_log_is_a_failure(folder: Path, follow: Follow, capsys: pytest.CaptureFixture[str]) -> None:
    append(folder / "log", "one\n")
    note = "/lustre/log cannot be read: Permission denied."
    follow(lambda _: RunState("going", "failed", link="live", link_note=note, log_unread=True))
    assert main(["logs", "going", "-f"]) == 2
    printed = capsys.readouterr()
    assert printed.out == "one\n"
    assert printed.err.count(note) == 1


def test_a_job_without_a_line_is_reported(folder: Path, follow: Follow, capsys: pytest.CaptureFixture[str]) -> None:
    append(folder / "log", "")
    follow(lambda _: RunState("going", "failed", link="live"))
    assert main(["logs", "going", "-f"]) == 0
    assert "has no line of its log" in capsys.readouterr().err


def test_each_note_is_printed_once(folder: Path, follow: Follow, capsys: pytest.CaptureFixture[str]) -> None:
    append(folder / "log", "one\n")

    def happen(publish: Publish) -> RunState:
        for note in ("", "The line broke.", "The line broke.", "Connected again.", ""):
            publish(RunState("going", "measuring", link="lost", link_note=note, slurm_note=note and "Slurm is silent."))
        return RunState("going", "done", link="live")

    follow(happen)
    assert main(["logs", "going", "-f"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "eos: The line broke. Slurm is silent.",
        "eos: Connected again. Slurm is silent.",
    ]
