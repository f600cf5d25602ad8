"""Measure how fast the parser reads steps from a training log; compare it with simpler parsers and with `grep -c`.

Each parser reads the same log from memory and returns the same `Step`s. Ours also keeps lines for validity checks to
quote. grep reads a file and only counts.
"""

from __future__ import annotations

import random
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial

from bench._rounds import Row, children_cpu_s, measure
from llmb_tui.watch.parse import StepParser
from llmb_tui.watch.state import Step

PIECE = 1 << 18
_REASON = "Python needs some microseconds for a step, to read its numbers and make an object; grep only counts."
_HEAD = re.compile(r"Training epoch \d+, iteration (\d+)/(\d+) \|")
_KEY_VALUE = re.compile(r"(\w[\w ]*): ([\d.e+-]+)")
_NUMBER = r"([\d.e+-]+)"
_FIXED = re.compile(
    rf"iteration (\d+)/(\d+) .*global_batch_size: {_NUMBER} .*peak_memory_usage: {_NUMBER} "
    rf".*memory_allocated: {_NUMBER} .*reduced_train_loss: {_NUMBER} .*train_step_timing in s: {_NUMBER} "
    rf".*consumed_samples: {_NUMBER}"
)


def make_log(lines: int, share: float) -> bytes:
    """Return a log with this share of progress lines; all other lines are NCCL's."""
    rng = random.Random(7)
    texts = []
    steps = 0
    for _ in range(lines):
        if rng.random() < share:
            texts.append(
                f"Training epoch 0, iteration {steps}/{lines} | lr: {rng.uniform(1e-6, 3e-4):.3e} | "
                f"global_batch_size: 512 | global_step: {steps} | peak_memory_usage: 72972500992 | "
                f"memory_allocated: 34466545664 | reduced_train_loss: {rng.uniform(1, 13):.4} | "
                f"train_step_timing in s: {rng.uniform(2, 3):.4} | consumed_samples: {steps * 512 + 512}\n"
            )
            steps += 1
        else:
            texts.append(
                f"node{rng.randrange(64):03}:{rng.randrange(99999)} [{rng.randrange(8)}] NCCL INFO Channel "
                f"{rng.randrange(24):02}/0 : {rng.randrange(512)}[{rng.randrange(8)}] -> "
                f"{rng.randrange(512)}[{rng.randrange(8)}] [send] via NET/IB/{rng.randrange(8)}/GDRDMA\n"
            )
    return "".join(texts).encode()


def parse(log: bytes) -> list[Step]:
    """Parse with the program's parser, in pieces as the monitor reads them. It also searches for failure lines."""
    step_parser = StepParser("nemo2")
    return [step for start in range(0, len(log), PIECE) for step in step_parser.feed(log[start : start + PIECE])]


def agree(log: bytes) -> bool:
    """Return whether all parsers find the same steps, except for the lines that only ours keeps."""
    return parse_by_key(log) == parse_by_order(log) == [step._replace(line="") for step in parse(log)]


def parse_by_key(log: bytes) -> list[Step]:
    """Parse line by line, fields by name: as robust as ours if the order of the fields changes."""
    steps = []
    for line in log.decode("utf-8", "replace").split("\n"):
        if head := _HEAD.search(line):
            values = {key: float(value) for key, value in _KEY_VALUE.findall(line, head.end())}
            steps.append(
                Step(
                    int(head[1]),
                    int(head[2]) + 1,
                    values.get("train_step_timing in s"),
                    values.get("reduced_train_loss"),
                    values.get("consumed_samples"),
                    values.get("peak_memory_usage"),
                    values.get("memory_allocated"),
                    batch=values.get("global_batch_size"),
                )
            )
    return steps


def parse_by_order(log: bytes) -> list[Step]:
    """Parse line by line with one expression that requires the order of the fields."""
    steps = []
    for line in log.decode("utf-8", "replace").split("\n"):
        if match := _FIXED.search(line):
            batch, peak, allocated, loss, seconds, samples = map(float, match.groups()[2:])
            steps.append(Step(int(match[1]), int(match[2]) + 1, seconds, loss, samples, peak, allocated, batch=batch))
    return steps


def measure_parsing(share: float, goals: str, lines: int = 200_000) -> Row:
    """Measure parsing a log with this share of progress lines."""
    log = make_log(lines, share)
    ways: dict[str, Callable[[bytes], list[Step]]] = {"now": parse, "by key": parse_by_key, "by order": parse_by_order}
    if not agree(log):
        raise AssertionError("the parsers find different steps")
    with tempfile.NamedTemporaryFile() as file:
        file.write(log)
        file.flush()
        grep = partial(subprocess.run, ["grep", "-c", "train_step_timing", file.name], check=True, capture_output=True)
        values = measure(
            {
                **{name: partial(_cpu_s, partial(way, log)) for name, way in ways.items()},
                "grep -c": partial(_cpu_s, grep),
            }
        )
    return Row(
        f"steps of {lines:,} lines, {share:.1%} of which are progress lines", "CPU s", values, goals, 15, _REASON
    )


def _cpu_s(work: Callable[[], object]) -> float:
    """Call `work`; return the CPU seconds of this process and its children."""
    cpu_before = time.process_time() + children_cpu_s()
    work()
    return time.process_time() + children_cpu_s() - cpu_before


def cheap() -> Iterator[Row]:
    """Measure a log with the usual share of progress lines."""
    yield measure_parsing(0.01, "≤ 1 × grep -c")


def rows() -> Iterator[Row]:
    """Measure logs with few, the usual share of and mostly progress lines."""
    yield measure_parsing(0.002, "≤ 1 × grep -c")
    yield measure_parsing(0.01, "≤ 1 × grep -c")
    yield measure_parsing(0.4, "≤ 1/2 × by key; ≤ 1/2 × by order")
