"""Remote text in terminal output and JSON, and streams that accept no output."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import unicodedata
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.answers.plan import plan_answer
from llmb_tui.cli import main
from llmb_tui.cli.output import print_json, print_line, print_status, write
from llmb_tui.language.text import clean, escaped_json
from llmb_tui.plan.plan import Problem
from tests.kit.runs import PLAN

HOSTILE = "a\x1b]52;c;eA==\x07b\x9b31mc\u202ed\u200fe\u200bf\U000e0041g\ufeffh\u2066i\ud800j\x1b[2Jk"


def test_invisible_characters_are_shown() -> None:
    chars = [chr(code) for code in range(0x110000) if chr(code) != "\n"]
    shown = clean("\n".join(chars)).split("\n")  # one character per line, so that none continues a sequence of another
    texts = ["\n", *(char for char, one in zip(chars, shown, strict=True) if char == one)]
    unseen = [char for char in texts if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    # Visible characters of Arabic, Syriac and other scripts; tab and newline.
    assert [
        char for char in unseen if unicodedata.bidirectional(char) in ("LRE", "RLE", "LRO", "RLO", "PDF", "BN")
    ] == []
    assert {"\t", "\n"} <= set(unseen)
    assert len(unseen) < 40
    assert all(char in texts for char in "äßé€–漢字 हिन्दी ไทย עברית العربية 🙂")


def test_marks_do_not_climb() -> None:
    assert clean("Z" + "\u0301" * 500 + "a\u0301") == "Z" + "\u0301" * 4 + "a\u0301"
    assert clean("ที่นี่ ệ") == "ที่นี่ ệ"


def test_output_is_cleaned_on_stdout_and_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    print_line(HOSTILE)
    print_status(HOSTILE)
    printed = capsys.readouterr()
    for text in (printed.out, printed.err):
        assert text == "ab\ufffd31mc\ufffdd\ufffde\ufffdf\ufffdg\ufffdh\ufffdi\ufffdjk\n"


def test_json_escapes_invisible_characters_and_keeps_the_value(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"note": HOSTILE, "é": "漢"})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"note": HOSTILE, "é": "漢"}
    assert "漢" in printed
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs") for char in printed.rstrip("\n"))
    assert json.loads(escaped_json(json.dumps(HOSTILE, ensure_ascii=False))) == HOSTILE


def test_a_note_of_a_preset_cannot_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    plan = replace(PLAN, problems=(Problem("size", "note", HOSTILE, HOSTILE),), container=HOSTILE)
    write(plan_answer(plan), Namespace(json=False))
    printed = capsys.readouterr().out
    assert "note: ab" in printed
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs") for char in printed.replace("\n", ""))


def test_an_ascii_terminal_gets_only_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(raw := io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    print_line("– 漢")
    print_json({"a": "– 漢"})
    line, document = raw.getvalue().splitlines()
    assert line == b"? ?"
    assert json.loads(document) == {"a": "– 漢"}


@pytest.mark.parametrize(
    ("how", "code", "printed"),
    [
        ("config path >&-", 2, "could not be written"),
        ("config path --json >/dev/full", 2, "could not be written"),
        ("--help >/dev/full", 2, "No space left on device"),
        ("--version >/dev/full", 2, "No space left on device"),
        ("watch --help >/dev/full", 2, "No space left on device"),
        ("--help >&-", 2, "stdout is closed"),
        ("config path 2>&-", 0, ""),
        ("nothing 2>&-", 1, ""),
        ("plan --from - <&-", 1, "stdin is closed"),
        ("submit --cluster eos <&-", 1, "workload"),
        ("<&-", 1, "needs a terminal"),
    ],
)
def test_streams_that_are_closed_or_full(how: str, code: int, printed: str, tmp_path: Path) -> None:
    result = _sh(how, tmp_path)
    assert result.returncode == code, result.stderr
    assert printed in result.stderr
    assert not re.search("Traceback|internal error", result.stderr + result.stdout)
    assert "Exception ignored" not in result.stderr
    assert not ("2>&-" in how and "llmb-tui:" in result.stdout), "messages are not answers"


def test_help_is_printed_in_every_encoding(tmp_path: Path) -> None:
    helped, plainly = (_sh("--help", tmp_path, PYTHONIOENCODING=encoding) for encoding in ("utf-8", "ascii"))
    assert (helped.returncode, plainly.returncode, plainly.stderr) == (0, 0, "")
    assert "--host …" in helped.stdout
    assert plainly.stdout == helped.stdout.replace("…", "?")


def test_directories_that_cannot_be_found(tmp_path: Path) -> None:
    result = _sh("config path", tmp_path, LLMB_TUI_STATE_DIR="~nosuchuser/x")
    assert (result.returncode, "The directory ~nosuchuser/x does not exist." in result.stderr) == (1, True)
    gone = tmp_path / "gone"
    gone.mkdir()
    result = _sh("config path", gone, before="rmdir ../gone &&", LLMB_TUI_STATE_DIR="state")
    assert (result.returncode, "The directory state does not exist." in result.stderr) == (1, True)


def _sh(how: str, folder: Path, before: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "LLMB_TUI_STATE_DIR": str(folder),
    }
    return subprocess.run(
        ["sh", "-c", f"{before} exec {sys.executable} -m llmb_tui {how}"],
        capture_output=True, text=True, check=False, timeout=60, cwd=folder, env={**environment, **more},
    )  # fmt: skip


def test_a_key_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    for flag in ("--give", "--forget"):
        assert main(["secrets", "eos", flag, "hf_verysecret", "--json"]) == 1
        printed = capsys.readouterr()
        assert "hf_verysecret" not in printed.out + printed.err
        assert "hugging-face" in printed.err
