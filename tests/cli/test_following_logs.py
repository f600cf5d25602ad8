"""`logs RUN -f`: each line of every start once, and what is the matter while none comes. The monitor is made up."""

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
    """Of a run that goes on, `going`."""
    runs = Services(user_places).runs
    runs.save(make_run("going"))
    return runs.folder("going")


@pytest.fixture
def follow(monkeypatch: pytest.MonkeyPatch) -> Follow:
    """Lets this happen to the run that is followed."""

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


def test_a_file_is_followed_until_somebody_ends_it(
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


def test_the_lines_of_a_start_before_come_whole_before_those_of_the_next(
    folder: Path, follow: Follow, capsys: pytest.CaptureFixture[str]
) -> None:
    def happen(publish: Publish) -> RunState:
        append(folder / "log", "one\ntw")
        publish(RunState("going", "measuring"))
        # All of this between two looks at the copies.
        append(folder / "log", "o\nthree")
        append(folder / "log.1", "four\nfi")
        append(folder / "log.1-1", "six\n")
        publish(RunState("going", "measuring", log_name="log.1-1"))
        append(folder / "log.1-1", "seven\neight")
        return RunState("going", "done", log_name="log.1-1")

    follow(happen)
    assert main(["logs", "going", "-f"]) == 0
    assert capsys.readouterr().out.split() == ["one", "two", "three", "four", "fi", "six", "seven", "eight"]


def test_it_begins_with_the_newest_start(folder: Path, follow: Follow, capsys: pytest.CaptureFixture[str]) -> None:
    append(folder / "log", "one\n")
    append(folder / "log.1", "two\n")
    follow(lambda _: RunState("going", "done", log_name="log.1"))
    assert main(["logs", "going", "-f"]) == 0
    assert capsys.readouterr().out == "two\n"


def test_a_cluster_that_lets_nobody_in_is_no_end_of_the_log(
    folder: Path, follow: Follow, capsys: pytest.CaptureFixture[str]
) -> None:
    append(folder / "log", "one\n")
    follow(lambda _: RunState("going", "start", link="closed", link_note="eos-login refused the login."))
    assert main(["logs", "going", "-f"]) == 2
    said = capsys.readouterr()
    assert said.out == "one\n"
    assert said.err.count("eos-login refused the login.") == 1
    assert main(["logs", "going", "-f", "--json"]) == 2
    line, error = map(json.loads, capsys.readouterr().out.splitlines())
    assert (line, error["error"]["why"]) == ({"line": "one"}, "eos-login refused the login.")


def test_a_log_that_was_not_read_to_its_end_is_none_either(
    folder: Path, follow: Follow, capsys: pytest.CaptureFixture[str]
) -> None:
    append(folder / "log", "one\n")
    note = "/lustre/log cannot be read: Permission denied."
    follow(lambda _: RunState("going", "failed", link="live", link_note=note, log_unread=True))
    assert main(["logs", "going", "-f"]) == 2
    said = capsys.readouterr()
    assert said.out == "one\n"
    assert said.err.count(note) == 1


def test_a_job_that_ended_without_a_line_is_not_passed_over_in_silence(
    folder: Path, follow: Follow, capsys: pytest.CaptureFixture[str]
) -> None:
    append(folder / "log", "")
    follow(lambda _: RunState("going", "failed", link="live"))
    assert main(["logs", "going", "-f"]) == 0
    assert "no line of its log is here" in capsys.readouterr().err


def test_what_is_the_matter_is_said_meanwhile_and_once(
    folder: Path, follow: Follow, capsys: pytest.CaptureFixture[str]
) -> None:
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
