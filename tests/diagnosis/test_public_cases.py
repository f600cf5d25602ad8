"""Logs after public reports: the first cause, its remedy and the quoted words are right, also in other guises."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.diagnosis.causes import Cause
from llmb_tui.watch.log_formats.registry import LOG_FORMATS
from llmb_tui.watch.parse import StepParser
from llmb_tui.watch.state import Step

TESTS = Path(__file__).parents[1]
ANSWERS: dict[str, dict[str, Any]] = tomllib.loads((TESTS / "diagnosis/cases/answers.toml").read_text())
FOLDERS = (TESTS / "diagnosis/cases", TESTS / "watch/cases")
FAILED = [name for name, answer in ANSWERS.items() if "what" in answer]
SOUND = [name for name, answer in ANSWERS.items() if "what" not in answer]


def log_of(name: str) -> bytes:
    data = next(path for folder in FOLDERS if (path := folder / f"{name}.log").is_file()).read_bytes()
    return data if data.endswith(b"\n") else data + b"\n"


def read(data: bytes, piece: int = 1 << 20) -> tuple[list[Step], tuple[Cause, ...]]:
    """Steps and causes of a log, in the format in which most steps are found."""
    found = []
    for log_format in LOG_FORMATS:
        parser, steps = StepParser(log_format, counts_lines=True), list[Step]()
        for at in range(0, len(data), piece):
            steps += parser.feed(data[at : at + piece])
        steps += parser.close()
        found.append((steps, parser.causes))
    return max(found, key=lambda pair: len(pair[0]))


def assert_explained(name: str, causes: tuple[Cause, ...]) -> Cause:
    answer = ANSWERS[name]
    assert causes, "no cause"
    first = causes[0]
    assert answer["what"] in first.what
    assert answer.get("fix", "") in first.fix
    assert ("fix" in answer) == bool(first.fix)
    assert answer["line"] in first.line
    return first


def test_each_log_has_an_answer() -> None:
    logs = {path.stem for path in FOLDERS[0].glob("*.log")}
    assert logs <= set(ANSWERS)


@pytest.mark.parametrize("piece", [997, 1 << 20])
@pytest.mark.parametrize("name", FAILED)
def test_the_first_cause_is_right(name: str, piece: int) -> None:
    steps, causes = read(log_of(name), piece)
    first = assert_explained(name, causes)
    answer = ANSWERS[name]
    assert len(steps) == answer.get("steps", 0)
    assert (first.rank, first.node) == (answer.get("rank", first.rank), answer.get("node"))
    quoted = log_of(name).decode().split("\n")[first.line_number - 1]
    assert first.line in quoted


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_run_has_no_cause(name: str) -> None:
    steps, causes = read(log_of(name))
    answer = ANSWERS[name]
    assert causes == ()
    assert len(steps) == answer["steps"]
    assert steps[-1].index == answer.get("last", steps[-1].index)
    assert not answer.get("counts_micro_batches") or (steps[-1].total, steps[-1].step_time_s) == (None, None)
    if "step_time_s" in answer:
        assert steps[-1].step_time_s == pytest.approx(answer["step_time_s"])


def _behind(prefix: str) -> Callable[[str], str]:
    return lambda log: "".join(f"{prefix}{line}\n" for line in log.splitlines())


VARIANTS: dict[str, Callable[[str], str]] = {
    "another host": lambda log: re.sub(r"\bcn0?(\d\d)\b", r"gpu-node-1\1", log),
    "another NCCL": lambda log: re.sub(r"NCCL version 2\.\d+\.\d+", "NCCL version 2.99.1", log),
    "srun --label": _behind("17: "),
    "a host": _behind("gpu-07: "),
    "a time stamp": _behind("2026-06-10T23:09:41.9428001Z "),
    "torchrun and NeMo-Run": _behind("job_1b/0 [default3]:"),
    "a pod": _behind("[pod/run-1-worker-3/pytorch] "),
    "all of them": _behind("2026-06-10 23:09:41,942 gpu-07: 17: "),
    "carriage returns": lambda log: log.replace("\n", "\r\n"),
    "colours": lambda log: "".join(f"\x1b[31m{line}\x1b[0m\n" for line in log.splitlines()),
    "lines of other ranks between": lambda log: "".join(
        f"{line}\n[rank{900 + at}]:[W1027 NCCL.cpp:1] warning of no account\n"
        for at, line in enumerate(log.splitlines())
    ),
    "the last words again from another rank": lambda log: (
        log + "[rank900]: torch.distributed.DistBackendError: NCCL error in: /x.cpp:3, remote process exited or there "
        "was a network error, NCCL version 2.28.9\nsrun: error: cn077: task 900: Exited with exit code 1\n"
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", FAILED)
def test_the_first_cause_is_the_same_in_another_guise(name: str, variant: str) -> None:
    data = VARIANTS[variant](log_of(name).decode()).encode()
    first = read(data)[1][0]
    answer = ANSWERS[name]
    assert answer["what"] in re.sub(r"gpu-node-1(\d\d)", r"cn0\1", first.what)
    assert answer.get("fix", "") in first.fix
    assert ("fix" in answer) == bool(first.fix)


@pytest.mark.parametrize("name", FAILED)
def test_no_remedy_is_wrong_if_the_first_half_of_a_log_is_missing(name: str) -> None:
    """Less is known then: the answer is the same, or the words of what followed, without another case's remedy."""
    lines = log_of(name).splitlines(keepends=True)
    causes = read(b"".join(lines[len(lines) // 2 :]))[1]
    answer = ANSWERS[name]
    known = (
        "",
        answer.get("fix", ""),
        "the rank that stopped first",
        "every mounted path",
        "Raise the time limit",
        "or /dev/shm",
    )
    assert all(any((part and part in cause.fix) or part == cause.fix for part in known) for cause in causes[:1])


@pytest.mark.parametrize("prefix", ["3: ", "[rank3]:", "2026-06-10T23:09:41Z ", "[default3]:"])
@pytest.mark.parametrize("name", SOUND)
def test_a_sound_run_has_no_cause_behind_a_prefix(name: str, prefix: str) -> None:
    assert read(_behind(prefix)(log_of(name).decode()).encode())[1] == ()


@pytest.mark.parametrize("log", sorted((TESTS / "watch/golden").glob("nemo-*.log")), ids=lambda log: str(log.stem))
def test_a_genuine_log_of_a_whole_run_has_no_cause(log: Path) -> None:
    steps, causes = read(log.read_bytes())
    assert not steps or causes == ()
