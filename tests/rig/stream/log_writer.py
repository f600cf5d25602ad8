"""A writer of a reproducible log that looks random; runs on the login node as `python3 - PATH SEED SECONDS`."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator

STEP = (
    "Training epoch 0, iteration {i}/99999 | lr: 4.491e-06 | global_batch_size: 256 | global_step: {i} | "
    "reduced_train_loss: 12.81 | train_step_timing in s: {seconds:.3f} | consumed_samples: {samples}\n"
)


def pieces(seed: int) -> Iterator[bytes]:
    """Endless output of a training job: steps, bars, bursts, bytes that are not text, lines that end later."""
    chance = random.Random(seed)
    step = 0
    while True:
        kind = chance.randrange(8)
        if kind < 3:
            seconds = chance.uniform(1, 3)
            yield STEP.format(i=step, seconds=seconds, samples=256 * step + 256).encode()
            step += 1
        elif kind == 3:
            bar = "█" * chance.randrange(40)
            yield f"\rimporting {chance.randrange(100):3}%|{bar}| ".encode()
        elif kind == 4:
            yield b"[NeMo W] " + "größer, 日本語, 🙂 ".encode() * chance.randrange(5) + b"\n"
        elif kind == 5:
            yield chance.randbytes(chance.randrange(1, 300)) + b"\0\0\x1b[31m"
        elif kind == 6:
            yield b"".join(
                b"%d: NCCL INFO Channel %d\n" % (chance.randrange(64), n) for n in range(chance.randrange(90))
            )
        else:
            yield b"a line that goes on later"


def write(path: str, seed: int, seconds: float) -> None:
    """Write for so many seconds, in bursts and pauses, flushed as a job's output is."""
    chance = random.Random(seed + 1)
    ends = time.monotonic() + seconds
    source = pieces(seed)
    with open(path, "ab", buffering=0) as file:
        while time.monotonic() < ends:
            for _ in range(chance.choice((1, 1, 3, 30, 200))):
                file.write(next(source))
            time.sleep(chance.choice((0.0, 0.01, 0.05)))
        file.write(b"\nno newline at the end")


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
