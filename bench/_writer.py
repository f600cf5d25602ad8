"""A log that grows: lines at a steady rate, and each second a step. Run as a script, it writes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def streams(log: Path, per_s: int) -> Iterator[None]:
    """So many lines a second, by another process."""
    with subprocess.Popen([sys.executable, __file__, str(log), str(per_s)]) as writer:
        try:
            yield
        finally:
            writer.kill()


def lines_of(first: int, count: int) -> str:
    """What NCCL says, as most of a log's lines."""
    words = "NCCL INFO Channel {1:02}/0 : {0}[{2}] -> {0}[{2}] via P2P/CUMEM/read, communicator 0x9f6e0a1c0 nranks 64"
    return "".join(
        f"{at % 64}: node{at % 8:03}:71:93 [{at % 8}] {words.format(at % 64, at % 32, at % 8)}\n"
        for at in range(first, first + count)
    )


def write(path: str, per_s: int) -> None:
    """Until it is killed."""
    began, lines, steps = time.monotonic(), 0, 0
    with open(path, "ab", buffering=0) as log:
        while per_s:
            passed = time.monotonic() - began
            due = int(passed * per_s) - lines
            text = lines_of(lines, due)
            lines += due
            while steps < min(passed, 49):  # and never comes to its end
                text += f"Training epoch 0, iteration {steps}/49 | global_step: {steps} | reduced_train_loss: 9.81 | "
                text += f"train_step_timing in s: {1.9 + steps % 5 / 50:.3f} | consumed_samples: {256 * steps + 256}\n"
                steps += 1
            log.write(text.encode())
            time.sleep(0.02)


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]))
