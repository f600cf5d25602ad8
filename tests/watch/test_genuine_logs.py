"""Tests of the parser with logs of real runs; `golden/README.md` lists their sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from llmb_tui.watch.locallog import only_container_lines
from llmb_tui.watch.parse import StepParser
from llmb_tui.watch.state import Step

GOLDEN = Path(__file__).parent / "golden"


def log(name: str) -> bytes:
    return (GOLDEN / f"{name}.log").read_bytes()


def parsed(data: bytes) -> tuple[StepParser, list[Step]]:
    parser = StepParser("nemo2")
    return parser, parser.feed(data) + parser.close()


@pytest.mark.parametrize(
    ("name", "count"), [("nemo-2.2.1", 30), ("nemo-2.4.0-flops", 30), ("nemo-2.2.1-save", 6), ("nemo-2.2.1-load", 1)]
)
def test_every_step_is_found_with_nemos_values(name: str, count: int) -> None:
    parser, steps = parsed(log(name))
    assert [(step.index, step.total) for step in steps] == [(index, count) for index in range(count)]
    assert parser.complete
    assert parser.failure is None
    for step in steps:
        assert step.step_time_s
        assert step.loss == pytest.approx(6.24, abs=0.02)
        assert step.memory_peak_bytes == 0
    assert [step.consumed_samples for step in steps] == [None, *((index + 1) * 16 for index in range(1, count))]


def test_the_last_step() -> None:
    _, steps = parsed(log("nemo-2.2.1"))
    assert steps[-1]._replace(line="") == Step(
        index=29,
        total=30,
        step_time_s=0.07297,
        loss=6.243,
        consumed_samples=480,
        memory_peak_bytes=0,
        memory_allocated_bytes=0,
        batch=16,
    )


def test_peak_gpu_memory_is_read_under_the_names_of_both_versions() -> None:
    """Both logs are from one H200, with NeMo 2.2.1 and 2.5.0."""
    older, newer = parsed(log("nemo-2.2.1-gpu"))[1], parsed(log("nemo-2.5.0-gpu"))[1]
    assert ([step.index for step in older], [step.index for step in newer]) == ([*range(20)], [*range(8)])
    assert (older[-1].step_time_s, newer[-1].step_time_s) == (1.391, 1.398)
    assert (older[-1].memory_peak_bytes, newer[-1].memory_peak_bytes) == (63_063_457_792, 67_335_356_416)
    assert (older[-1].memory_allocated_bytes, newer[-1].memory_allocated_bytes) == (50_661_187_584, None)


def test_tflops_are_those_of_the_callback() -> None:
    _, steps = parsed(log("nemo-2.4.0-flops"))
    assert all(step.tflops_per_gpu for step in steps)
    assert steps[-1].tflops_per_gpu == 0.1429
    assert {step.tflops_per_gpu for step in parsed(log("nemo-2.2.1"))[1]} == {None}


@pytest.mark.parametrize(
    ("name", "reason", "line"),
    [
        (
            "nemo-2.2.1-no-checkpoint",
            "cannot see the checkpoint",
            "Checkpoint file not found: /lustre/",
        ),
        ("nemo-2.2.1-unknown-field", "NeMo does not know a setting", "model.config.num_layer: nemo.collections.llm"),
        ("nemo-2.2.1-gpu-oom", "A GPU ran out of memory", "Tried to allocate 16.00 GiB"),
        ("nemo-2.2.1-no-gpu", "or the job sees no GPU", "Exception: No supported gpu backend found!"),
        ("nemo-2.2.1-no-interface", "no network interface", "Bootstrap : no socket interface found"),
    ],
)
def test_why_a_run_failed(name: str, reason: str, line: str) -> None:
    parser, steps = parsed(log(name))
    assert steps == []
    assert parser.failure is not None
    assert reason in parser.failure.reason
    assert line in parser.failure.line


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.log")), ids=lambda file: str(file.stem))
@pytest.mark.parametrize("seed", range(3))
def test_a_genuine_log_gives_the_same_steps_in_any_chunks(
    file: Path, seed: int, pieces: Callable[[bytes, int], Iterator[bytes]]
) -> None:
    whole, expected = parsed(file.read_bytes())
    parser = StepParser("nemo2")
    steps = [step for piece in pieces(file.read_bytes(), seed) for step in parser.feed(piece)]
    assert steps == expected
    assert (parser.failure, parser.complete) == (whole.failure, whole.complete)


def test_the_program_has_started_when_its_first_line_is_there() -> None:
    notice, first, *_ = log("nemo-2.2.1-save").splitlines()
    assert only_container_lines(notice)
    assert not only_container_lines(first)
