"""Runs and states as the screens get them, and a host for one screen. Every time in them is fixed."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen

import llmb_tui.ui
from llmb_tui.catalog.recipe import ResultRule
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.job import Job
from llmb_tui.errors import Trouble
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.plan.plan import Estimate, Memory, Parallelism, Plan
from llmb_tui.plan.selection import Selection
from llmb_tui.services import Services
from llmb_tui.store.paths import Places
from llmb_tui.ui.screens.jobs import JobsScreen
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.watch.state import Progress, RunState, Verdict
from llmb_tui.watch.step import Step

CREATED_AT = 1_760_000_000.0

ESTIMATE = Estimate(
    step_time_s=1.98,
    low_s=1.90,
    high_s=2.06,
    method="published",
    anchor="nemotron4@25.04, 64 GPUs",
    tokens_per_s=529_584,
    mfu_pct=39.3,
    days_per_1t_tokens=21.9,
    tflops_per_gpu=777.0,
    model_flops_per_sample=3.85e14,
    peak_tflops=1979,
    flops_formula="grouped queries, full attention",
)


def make_run(run_id: str = "k3f9a2", **changes: Any) -> Run:
    """A nemotron4 15b run on 64 GPUs of a cluster named eos, submitted as job 48123."""
    plan = Plan(
        selection=Selection("nemotron4", "25.04", "15b", "h100", "fp8", 64),
        scaling="weak",
        nodes=8,
        gpus_per_node=8,
        parallelism=Parallelism(2, 1, 1, 1, 32, None, 2, 256, 4, 4096, 32),
        printed=None,
        published=None,
        estimate=ESTIMATE,
        memory=Memory(34.2, 70.8, 80.0, "fits"),
        checkpoint_gb=204.0,
        gpu_hours=1.8,
        steps=50,
        time_limit="00:15:00",
        container="nvidia/nemo:25.02.01",
        problems=(),
    )
    task = f"pretrain_nemotron4_15b_fp8_64_{run_id}"
    spec = LaunchSpec(
        run_id=run_id,
        experiment="pretrain_nemotron4_15b_fp8_64",
        task=task,
        experiment_dir="/lustre/llmb/workloads/pretrain_nemotron4/experiments/e/e_1",
        task_dir=f"/lustre/llmb/workloads/pretrain_nemotron4/experiments/e/e_1/{task}",
        job_name=f"acct-acct.{task}",
        account="acct",
        partition="batch",
        nodes=8,
        tasks_per_node=8,
        gpu_request="gpus-per-node",
        time_limit="00:15:00",
        container_image="/lustre/llmb/images/nvidia+nemo+25.02.01.sqsh",
        mounts=(),
        env=(),
        command=("python",),
    )
    run = Run(
        run_id,
        plan,
        spec,
        ResultRule("last", "README"),
        "nemo2",
        "direct",
        "eos",
        created_at=CREATED_AT,
        submission="submitted",
        job_ids=("48123",),
        submitted_at=CREATED_AT + 2,
        job_state="RUNNING",
    )
    return replace(run, **changes)


def step_times(count: int) -> tuple[tuple[int, float], ...]:
    """A run of that many steps: the first compiles, the second warms up, then a small wave around 2 s."""
    first = [45.2, 2.41, 2.08][:count]
    return tuple(enumerate([*first, *(2.0 + 0.012 * ((index * 7) % 5 - 2) for index in range(3, count))]))


def progress(count: int, total: int = 50) -> Progress:
    """What the log of a run says after that many steps."""
    times = step_times(count)
    last = Step(count - 1, total, times[-1][1], 12.1 - 0.075 * count, memory_peak_bytes=73.0e9)
    median = 2.0 if count > 5 else None
    rate = 521_700.0 if median else None
    return Progress(count, total, last, times, median, 0.004 if median else None, rate, 38.7 if median else None)


RUN = make_run()
RUNNING = Job("48123", "pretrain", "RUNNING", nodes=8, elapsed_s=252.0)
SO_FAR = "So far: median of 26 steps after 5 of warm-up, ± 0.4 %."
VERDICT = Verdict("PASS", 0.985, 2.01, "published 1.98 s, nemotron4@25.04", "last step", (SO_FAR,))

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
    verdict=replace(VERDICT, ratio=0.992, measured_s=1.996, reasons=()),
)
FAILED = RunState(
    "k3f9a2",
    "failed",
    replace(RUNNING, state="FAILED", elapsed_s=97.0, exit_code="1:0", reason="NonZeroExitCode"),
    replace(
        progress(3),
        failure="[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB.",
        failure_reason="A GPU ran out of memory.",
        failure_fix="Use more GPUs, a smaller micro batch, or the recipe's own parallelism for this scale.",
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


class Standing:
    """A monitor that publishes what it is given and then waits until it is stopped."""

    def __init__(self, states: tuple[RunState, ...]) -> None:
        self.states = states
        self.stopped = threading.Event()

    def watch(self, publish: Callable[[RunState], None], stop: threading.Event) -> RunState:
        for state in self.states:
            publish(state)
        stop.wait()
        self.stopped.set()
        return self.states[-1] if self.states else RunState("")


class LocalServices(Services):
    """The real services on directories of a test, with a monitor that asks no cluster."""

    def __init__(self, root: Path, *states: RunState) -> None:
        super().__init__(Places(root / "config", root / "state"))
        self.standing = Standing(states)
        self.notice: str | None = None

    def monitor(self, run_id: str) -> Any:  # noqa: ARG002
        return self.standing

    def session(self, profile_name: str) -> Any:
        raise Trouble(f"{profile_name} cannot be reached from a test.")

    def profiles(self) -> tuple[ClusterProfile, ...]:
        return (ClusterProfile("eos", "eos-login", "acct", "batch", "/lustre/llmb", notice=self.notice),)


class Host(App[None]):
    """An app with one screen over its own, and the program's own styles."""

    CSS_PATH = Path(llmb_tui.ui.__file__).with_name("app.tcss")

    def __init__(self, make_screen: Callable[[], Screen[None]]) -> None:
        super().__init__()
        self._make_screen = make_screen

    def on_mount(self) -> None:
        self.push_screen(self._make_screen())


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    """No animation, and no colour setting of who runs the tests."""
    monkeypatch.setattr("textual.constants.TEXTUAL_ANIMATIONS", "none")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
def a_run() -> Callable[..., Run]:
    """Makes a run; keywords change its fields."""
    return make_run


@pytest.fixture
def states() -> dict[str, RunState]:
    """A run at five moments."""
    return {"queued": QUEUED, "measuring": MEASURING, "done": DONE, "failed": FAILED, "lost": LOST}


@pytest.fixture
def steps() -> Callable[[int], Progress]:
    """Makes what the log says after so many steps."""
    return progress


@pytest.fixture
def log_of() -> Callable[[int], str]:
    """Makes the log of so many steps."""
    return log_text


@pytest.fixture
def services_of(tmp_path: Path) -> Callable[..., Services]:
    """Makes services that remember runs and whose monitor publishes the given states."""

    def make(runs: Sequence[Run], *published: RunState, log: str = "") -> Services:
        services = LocalServices(tmp_path, *published)
        for run in runs:
            services.runs().save(run)
            if log:
                (services.runs().folder(run.id) / "log").write_bytes(log.encode())
        return services

    return make


@pytest.fixture
def open_run(services_of: Callable[..., Services]) -> Callable[..., tuple[App[None], Services]]:
    """Makes an app that shows the screen of a run (`run=None`: of one that is not there), and its services."""

    def make(*published: RunState, run: Run | None = RUN, log: str = "") -> tuple[App[None], Services]:
        services = services_of([run] if run else [], *published, log=log)
        return Host(lambda: RunScreen(services, RUN.id)), services

    return make


# Id, Slurm's state, steps in the log, submission, seconds since it was submitted.
_LISTED = (
    ("aaa1", "RUNNING", 31, "submitted", 60),
    ("aaa2", "PENDING", 0, "submitted", 120),
    ("aaa3", "COMPLETED", 50, "submitted", 4_000),
    ("aaa4", "FAILED", 3, "submitted", 8_000),
    ("aaa5", "CANCELLED", 10, "submitted", 90_000),
    ("aaa6", None, 0, "unknown", 200_000),
)


@pytest.fixture
def open_jobs(services_of: Callable[..., Services]) -> Callable[..., tuple[App[None], Services]]:
    """Makes an app that lists six runs of every kind, or the given ones of them, and its services."""

    def make(runs: Sequence[str] = ("aaa1", "aaa2", "aaa3", "aaa4", "aaa5", "aaa6")) -> tuple[App[None], Services]:
        services = services_of([])
        for run_id, job_state, count, submission, ago in _LISTED:
            if run_id not in runs:
                continue
            job_ids = (run_id[-1],) if submission == "submitted" else ()
            at = CREATED_AT - ago
            run = make_run(run_id, job_state=job_state, submission=submission, job_ids=job_ids, created_at=at)
            services.runs().save(replace(run, submitted_at=at if job_ids else None))
            if count:
                (services.runs().folder(run_id) / "log").write_text(log_text(count))
        return Host(lambda: JobsScreen(services, clock=lambda: CREATED_AT)), services

    return make


@pytest.fixture
def until() -> Callable[..., Awaitable[None]]:
    """Waits for a condition, at most ten seconds."""

    async def wait(pilot: Pilot[Any], condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline, f"not within ten seconds: {what}"
            await pilot.pause(0.01)

    return wait
