"""`explain`: a file, a run or stdin in, causes out; exit code 0 whenever the log could be read."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llmb_tui.cli import main

CASES = Path(__file__).parents[1] / "diagnosis" / "cases"
KEYS = ["file", "format", "steps", "starts", "causes", "notes", "last_lines"]
WATCH_CASES = CASES.parents[1] / "watch" / "cases"
CAUSE = ["what", "why", "fix", "stage", "line", "line_number", "rank", "node", "rule"]


@pytest.fixture(autouse=True)
def user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LLMB_TUI_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("LLMB_TUI_CONFIG_DIR", str(tmp_path / "config"))


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["explain", *arguments, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_a_file_is_explained_in_the_form_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(CASES / "40-elastic-indented-last-words.log")
    document = explained(capsys, path)
    assert list(document) == KEYS
    assert (document["file"], document["format"], document["steps"], document["starts"]) == (path, "nemo2", 1, 1)
    first = document["causes"][0]
    assert list(first) == CAUSE
    assert (first["line"], first["rank"], first["node"]) == ("NameError: name 'die' is not defined", 304, "cn039")
    assert (first["fix"], first["stage"]) == (None, "training")


def test_stdin_is_read_and_text_for_people_has_the_quotation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = io.BytesIO(b"gpu-07: 3: \x1b]52;c;eA==\x07[rank3]: ValueError: \x1b[31mbad\x1b[2J number")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=data))
    assert main(["explain", "-"]) == 0
    out = capsys.readouterr().out
    assert "Rank 3 on gpu-07: ValueError: bad number" in out
    assert "\x1b" not in out


def test_an_unknown_cause_is_called_unknown_with_the_last_lines(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = tmp_path / "x.log"
    log.write_text("".join(f"3: working on {number}\n" for number in range(40)))
    document = explained(capsys, str(log))
    assert document["causes"] == []
    assert document["last_lines"][-1] == "working on 39"
    assert main(["explain", str(log)]) == 0
    assert "The cause is unknown" in capsys.readouterr().out


def test_the_log_of_a_whole_run_has_no_cause(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(CASES / "15-run-whole-crash-at-exit.log")
    assert explained(capsys, path)["causes"] == []
    assert main(["explain", path]) == 0
    assert "nothing failed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("log", "starts", "notes"),
    [
        (
            "19-appended-after-requeue.log",
            2,
            ["Start 2 of the training began at step 30. Median step times: 2.9 s before, 2.1 s since then"],
        ),
        ("81-all-iterations-skipped.log", 1, ["None of the 50 steps trained the model"]),
        ("whole-but-nan.out", 1, ["None of the 50 steps trained the model"]),
        ("82-network-socket.log", 1, ["NCCL INFO Using network Socket`", "aws-ofi-nccl initialization failed`"]),
    ],
)
@pytest.mark.parametrize("verb", ["explain", "results"])
def test_what_a_whole_run_hides_is_reported(
    verb: str, log: str, starts: int, notes: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(WATCH_CASES / log)
    document = explained(capsys, path)
    assert (document["causes"], document["steps"], document["starts"]) == ([], 50, starts)
    assert len(document["notes"]) == len(notes)
    assert main([verb, path]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert all(note in out for note in notes)
    assert "nothing failed" not in out


@pytest.mark.parametrize("verb", ["explain", "results"])
@pytest.mark.parametrize("log", ["10-nemo2-without-step-time", "11-nemo-automodel-micro-batches"])
def test_a_log_without_step_times_says_so(verb: str, log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, str(CASES / f"{log}.log")]) == 0
    assert "no step time" in " ".join(capsys.readouterr().out.split())


def test_the_notes_of_a_sound_run_are_empty(capsys: pytest.CaptureFixture[str]) -> None:
    for log in ("15-run-whole-crash-at-exit", "18-nemo2-two-epochs", "03-megatron-lm-timestamp-throughput"):
        document = explained(capsys, str(CASES / f"{log}.log"))
        assert (document["causes"], document["notes"]) == ([], [])


def test_a_stage_chooses_its_rules(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "step.log"
    log.write_text("[INFO] Fetching image manifest\ncurl: (6) Could not resolve host: nvcr.io\n")
    (cause,) = explained(capsys, str(log), "--stage", "install")["causes"]
    assert (cause["stage"], cause["line_number"]) == ("install", 2)
    assert cause["rule"].startswith("install.toml: install[")


@pytest.mark.parametrize("name", ["nowhere.log", ".", "a\0b"])
def test_an_unreadable_file_is_a_usage_error(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["explain", name]) == 1
    assert capsys.readouterr().err


def test_a_log_without_step_lines_names_the_known_formats_and_the_cause(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", str(CASES / "21-nccl-gb200-oom-under-nccl.log"), "--json"]) == 0
    (reason,) = json.loads(capsys.readouterr().out)[0]["verdict"]["reasons"]
    assert "Megatron-LM" in reason
    assert "a GPU is full" in reason


def test_a_very_long_line_is_quoted_only_in_part(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "long.log"
    log.write_bytes(b"RuntimeError: CUDA out of memory. " + b"x" * (12 << 20))
    (cause,) = explained(capsys, str(log))["causes"]
    assert cause["what"] == "A GPU ran out of memory."
    assert len(cause["line"]) <= 4097
