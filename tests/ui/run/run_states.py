"""A run at five moments, and its log. All times are fixed."""

from __future__ import annotations

from dataclasses import replace

from llmb_tui.cluster.job import Job
from llmb_tui.diagnosis.rule import Diagnosis
from llmb_tui.watch.state import Progress, RunState, Step, Verdict


def step_times(count: int) -> tuple[tuple[int, float], ...]:
    """Step times of a run: the first step compiles, the second warms up, then a small wave around 2 s."""
    first = [45.2, 2.41, 2.08][:count]
    return tuple(enumerate([*first, *(2.0 + 0.012 * ((index * 7) % 5 - 2) for index in range(3, count))]))


def progress(count: int, total: int = 50) -> Progress:
    """Progress in the log of a run after that many steps."""
    times = step_times(count)
    last = Step(count - 1, total, times[-1][1], 12.1 - 0.075 * count, memory_peak_bytes=73.0e9)
    median = 2.0 if count > 5 else None
    rate = 521_700.0 if median else None
    return Progress(count, total, last, times, median, 0.004 if median else None, rate, 38.7 if median else None)


RUNNING = Job("48123", "pretrain", "RUNNING", nodes=8, elapsed_s=252.0)
SO_FAR = "So far: median of 26 steps after 5 warm-up steps, ± 0.4 %."
VERDICT = Verdict("PASS", 0.985, 2.01, "published 1.98 s, nemotron4@25.04", "last step", (SO_FAR,), by_rule=False)

QUEUED = RunState(
    "k3f9a2",
    "queued",
    replace(RUNNING, state="PENDING", reason="Priority", elapsed_s=0.0, nodes=8),
    link="live",
    no_verdict="No step yet. The verdict needs the last step.",
)
MEASURING = RunState(
    "k3f9a2",
    "measuring",
    RUNNING,
    progress(31),
    eta_s=38.0,
    log_bytes=8_000,
    silent_s=3.0,
    link="live",
    verdict=VERDICT,
)
DONE = RunState(
    "k3f9a2",
    "done",
    replace(RUNNING, state="COMPLETED", elapsed_s=311.0, exit_code="0:0"),
    progress(50),
    log_bytes=9_000,
    link="closed",
    verdict=replace(VERDICT, ratio=0.992, measured_s=1.996, reasons=(), by_rule=True),
)
FAILED = RunState(
    "k3f9a2",
    "failed",
    replace(RUNNING, state="FAILED", elapsed_s=97.0, exit_code="1:0", reason="NonZeroExitCode"),
    replace(
        progress(3),
        failure=Diagnosis(
            "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB.",
            "A GPU ran out of memory.",
            "Use more GPUs, a smaller micro batch, or the recipe's own parallelism for this scale.",
        ),
    ),
    log_bytes=9_000,
    link="closed",
    no_verdict="The run failed after 3 of 50 steps.",
)
LOST = replace(
    MEASURING, link="lost", link_note="no answer from eos-login for 12 s, connecting again", silent_s=12.0, eta_s=None
)

LOG_LINES = (
    "pyxis: imported docker image: nvidia/nemo:25.02.01",
    "[NeMo I 2025-04-02 10:00:00 exp_manager:394] Experiments will be logged at /nemo_run",
    "[NeMo W 2025-04-02 10:00:03 rerun_state_machine:1264] Implicit initialization of Rerun State Machine!",
    *(f"[rank{rank}]: eos{100 + rank}:334 [0] NCCL INFO Channel 00/0 : via P2P/CUMEM" for rank in range(8)),
)


def log_line(index: int, seconds: float) -> str:
    """A progress line of NeMo 2."""
    return (
        f"Training epoch 0, iteration {index}/49 | lr: 2.784e-06 | global_batch_size: 256 | global_step: {index} | "
        f"reduced_train_loss: {12.1 - 0.075 * index:.2f} | train_step_timing in s: {seconds:.3f}"
    )


def log_text(steps: int) -> str:
    """A log with that many steps."""
    lines = [*LOG_LINES, *(log_line(index, seconds) for index, seconds in step_times(steps))]
    return "".join(f"{line}\n" for line in lines)


STATES = {"queued": QUEUED, "measuring": MEASURING, "done": DONE, "failed": FAILED, "lost": LOST}
