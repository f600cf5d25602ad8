"""Writer of a growing log: NCCL lines at a steady rate, and one training step a second. Also a script."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def stream_lines(log: Path, per_s: int) -> Iterator[None]:
    """Append `per_s` lines a second to the log, in another process."""
    with subprocess.Popen([sys.executable, __file__, str(log), str(per_s)]) as writer:
        try:
            yield
        finally:
            writer.kill()


def nccl_lines(first: int, count: int) -> str:
    """Lines of NCCL, numbered from `first`; most lines of a real log are of this kind."""
    text = "NCCL INFO Channel {1:02}/0 : {0}[{2}] -> {0}[{2}] via P2P/CUMEM/read, communicator 0x9f6e0a1c0 nranks 64"
    return "".join(
        f"{number % 64}: node{number % 8:03}:71:93 [{number % 8}] {text.format(number % 64, number % 32, number % 8)}\n"
        for number in range(first, first + count)
    )


def write(path: str, per_s: int) -> None:
    """Append `per_s` lines a second until the process is killed."""
    started_at, lines, steps = time.monotonic(), 0, 0
    with open(path, "ab", buffering=0) as log:
        while per_s:
            elapsed = time.monotonic() - started_at
            new_lines = int(elapsed * per_s) - lines
            text = nccl_lines(lines, new_lines)
            lines += new_lines
            while steps < min(elapsed, 49):  # step 49, the last one, is never written
                text += f"Training epoch 0, iteration {steps}/49 | global_step: {steps} | reduced_train_loss: 9.81 | "
                text += f"train_step_timing in s: {1.9 + steps % 5 / 50:.3f} | consumed_samples: {256 * steps + 256}\n"
                steps += 1
            log.write(text.encode())
            time.sleep(0.02)


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]))
