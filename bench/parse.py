"""Steps out of a training log: the parser against the ways one would write first, and against `grep -c`.

Every way gets the same log in memory and gives the same `Step`s. Ours also keeps lines that a validity check may
quote; grep only counts, and reads a file.
"""

from __future__ import annotations

import random
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial

from bench._rounds import Row, children_s, in_turns
from llmb_tui.watch.parse import StepParser
from llmb_tui.watch.state import Step

PIECE = 1 << 18
_WHY = "Python needs some microseconds for a step, to read its numbers and make an object; grep only counts."
_HEAD = re.compile(r"Training epoch \d+, iteration (\d+)/(\d+) \|")
_KEY_VALUE = re.compile(r"(\w[\w ]*): ([\d.e+-]+)")
_NUMBER = r"([\d.e+-]+)"
_FIXED = re.compile(
    rf"iteration (\d+)/(\d+) .*global_batch_size: {_NUMBER} .*peak_memory_usage: {_NUMBER} "
    rf".*memory_allocated: {_NUMBER} .*reduced_train_loss: {_NUMBER} .*train_step_timing in s: {_NUMBER} "
    rf".*consumed_samples: {_NUMBER}"
)


def make_log(lines: int, share: float) -> bytes:
    """A log with this share of progress lines; the others are NCCL's and NeMo's."""
    chance = random.Random(7)
    out = []
    steps = 0
    for _ in range(lines):
        if chance.random() < share:
            out.append(
                f"Training epoch 0, iteration {steps}/{lines} | lr: {chance.uniform(1e-6, 3e-4):.3e} | "
                f"global_batch_size: 512 | global_step: {steps} | peak_memory_usage: 72972500992 | "
                f"memory_allocated: 34466545664 | reduced_train_loss: {chance.uniform(1, 13):.4} | "
                f"train_step_timing in s: {chance.uniform(2, 3):.4} | consumed_samples: {steps * 512 + 512}\n"
            )
            steps += 1
        else:
            out.append(
                f"node{chance.randrange(64):03}:{chance.randrange(99999)} [{chance.randrange(8)}] NCCL INFO Channel "
                f"{chance.randrange(24):02}/0 : {chance.randrange(512)}[{chance.randrange(8)}] -> "
                f"{chance.randrange(512)}[{chance.randrange(8)}] [send] via NET/IB/{chance.randrange(8)}/GDRDMA\n"
            )
    return "".join(out).encode()


def parser(log: bytes) -> list[Step]:
    """Ours, in pieces as the monitor reads them from the local copy. It looks for failure lines as well."""
    steps = StepParser("nemo2")
    return [step for at in range(0, len(log), PIECE) for step in steps.feed(log[at : at + PIECE])]


def agree(log: bytes) -> bool:
    """All ways find the same steps; lines that are kept to be quoted are not compared."""
    return by_key(log) == by_order(log) == [step._replace(line="") for step in parser(log)]


def by_key(log: bytes) -> list[Step]:
    """Line by line, keyed by name: as robust as ours against another order of fields."""
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


def by_order(log: bytes) -> list[Step]:
    """Line by line with one expression that knows the order of the fields."""
    steps = []
    for line in log.decode("utf-8", "replace").split("\n"):
        if found := _FIXED.search(line):
            batch, peak, allocated, loss, seconds, samples = map(float, found.groups()[2:])
            steps.append(Step(int(found[1]), int(found[2]) + 1, seconds, loss, samples, peak, allocated, batch=batch))
    return steps


def steps(share: float, to_reach: str, lines: int = 200_000) -> Row:
    """All steps of a log of which so much is progress lines."""
    log = make_log(lines, share)
    ways: dict[str, Callable[[bytes], list[Step]]] = {"now": parser, "by key": by_key, "by order": by_order}
    if not agree(log):
        raise AssertionError("the ways disagree")
    with tempfile.NamedTemporaryFile() as file:
        file.write(log)
        file.flush()
        grep = partial(subprocess.run, ["grep", "-c", "train_step_timing", file.name], check=True, capture_output=True)
        taken = in_turns(
            {
                **{name: partial(_cpu_s, partial(way, log)) for name, way in ways.items()},
                "grep -c": partial(_cpu_s, grep),
            }
        )
    return Row(f"steps of {lines:,} lines, {share:.1%} of which are progress lines", "CPU s", taken, to_reach, 15, _WHY)


def _cpu_s(work: Callable[[], object]) -> float:
    """Of this process and of what it starts."""
    before = time.process_time() + children_s()
    work()
    return time.process_time() + children_s() - before


def cheap() -> Iterator[Row]:
    """A log as it is."""
    yield steps(0.01, "≤ 1 × grep -c")


def rows() -> Iterator[Row]:
    """A log as it is, and one of hardly anything but steps."""
    yield steps(0.002, "≤ 1 × grep -c")
    yield steps(0.01, "≤ 1 × grep -c")
    yield steps(0.4, "≤ 1/2 × by key; ≤ 1/2 × by order")
