"""Steps out of a training log: the parser against the ways one would write first, and against `grep -c`.

Every way gets the same log in memory and gives the same `Step`s (grep only counts). The ways take turns,
round after round, and the ratio of medians is what counts; the times are those of this machine.
"""

from __future__ import annotations

import random
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable

from llmb_tui.watch.parse import StepParser
from llmb_tui.watch.state import Step

PIECE = 1 << 18
_ROUNDS = 5
_LINES = 200_000
_HEAD = re.compile(r"Training epoch \d+, iteration (\d+)/(\d+) \|")
_KEY_VALUE = re.compile(r"(\w[\w ]*): ([\d.e+-]+)")
_NUMBER = r"([\d.e+-]+)"
_FIXED = re.compile(
    rf"iteration (\d+)/(\d+) .*peak_memory_usage: {_NUMBER} .*memory_allocated: {_NUMBER} "
    rf".*reduced_train_loss: {_NUMBER} .*train_step_timing in s: {_NUMBER} .*consumed_samples: {_NUMBER}"
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
                )
            )
    return steps


def by_order(log: bytes) -> list[Step]:
    """Line by line with one expression that knows the order of the fields."""
    steps = []
    for line in log.decode("utf-8", "replace").split("\n"):
        if found := _FIXED.search(line):
            peak, allocated, loss, seconds, samples = map(float, found.groups()[2:])
            steps.append(Step(int(found[1]), int(found[2]) + 1, seconds, loss, samples, peak, allocated))
    return steps


def _measure(share: float) -> None:
    log = make_log(_LINES, share)
    ways: dict[str, Callable[[bytes], list[Step]]] = {"parser": parser, "by key": by_key, "by order": by_order}
    if not by_key(log) == by_order(log) == parser(log):
        raise AssertionError("the ways disagree")
    times: dict[str, list[float]] = {}
    with tempfile.NamedTemporaryFile() as file:
        file.write(log)
        file.flush()
        for _ in range(_ROUNDS):
            for name, way in ways.items():
                began = time.perf_counter()
                way(log)
                times.setdefault(name, []).append(time.perf_counter() - began)
            began = time.perf_counter()
            subprocess.run(["grep", "-c", "train_step_timing", file.name], check=True, capture_output=True)
            times.setdefault("grep -c", []).append(time.perf_counter() - began)
    base = statistics.median(times["parser"])
    print(f"\n{share:.1%} progress lines, {len(log) / 1e6:.0f} MB")
    print(f"{'way':10} {'M lines/s':>10} {'time / parser':>14}")
    for name, taken in times.items():
        median = statistics.median(taken)
        print(f"{name:10} {_LINES / median / 1e6:10.2f} {median / base:14.2f}")


def main() -> None:
    """Print one table for a log as it is, and one for a log of hardly anything but steps."""
    for share in (0.002, 0.01, 0.4):
        _measure(share)


if __name__ == "__main__":
    main()
