"""A generated history: finished runs with their logs, as on the disk. Every call generates the same history."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from llmb_tui.cluster.job import Job
from llmb_tui.launch.runs import Runs
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from tests.kit.runs import CATALOG, NEMOTRON, make_run

_DAY_S = 86_400.0
_LINE = (
    "Training epoch 0, iteration {step}/{last} | lr: 1e-4 | global_batch_size: {gbs} | global_step: {step} | "
    "reduced_train_loss: {loss:.3f} | train_step_timing in s: {seconds:.4g}\n"
)


@dataclass(frozen=True, slots=True)
class PastRun:
    """One run of the history."""

    id: str
    selection: Selection
    days_ago: float
    step_time_s: float
    cluster: str = "eos"
    state: str = "COMPLETED"
    nodes: str = ""


def remember(runs: Runs, past: PastRun, now: float) -> None:
    """Write the run to the disk, with a log of all its steps, or of three steps if the run failed."""
    run_plan, submitted_at = plan(CATALOG, past.selection), now - past.days_ago * _DAY_S
    recipe = CATALOG.recipe(past.selection.workload, past.selection.release)
    run = make_run(
        past.id,
        plan=run_plan,
        rule=recipe.rule,
        log_format=recipe.launch.kind,
        cluster=past.cluster,
        created_at=submitted_at,
        submitted_at=submitted_at + 2,
        job_state=past.state,
        job=Job("48123", "job", past.state, nodes=run_plan.nodes, node_list=past.nodes),
        log_read=True,
    )
    runs.save(run)
    random = Random(past.id)
    steps = run_plan.steps if past.state == "COMPLETED" else 3
    times = [past.step_time_s * (random.gauss(1, 0.002) if step < steps - 1 else 1) for step in range(steps)]
    text = "".join(
        _LINE.format(
            step=step, last=run_plan.steps - 1, gbs=run_plan.parallelism.gbs, loss=12 - 0.08 * step, seconds=seconds
        )
        for step, seconds in enumerate(times)
    )
    log = runs.folder(past.id) / "log"
    log.write_text(text, encoding="utf-8")
    os.utime(log, (submitted_at + 900, submitted_at + 900))


def weeks() -> list[PastRun]:
    """Twelve weeks on two clusters: one configuration becomes slower, one fails the rule, and some runs fail."""
    random = Random(14)
    return [PastRun(f"r{index:03}", *fields) for index, fields in enumerate(_weeks(random))]


def _weeks(random: Random) -> Iterator[tuple[Selection, float, float, str, str, str]]:
    def times(  # noqa: PLR0917
        selection: Selection, expected: float, cluster: str, count: int, noise: float, slower_from: int = 1000
    ) -> Iterator[tuple[Selection, float, float, str, str, str]]:
        nodes = selection.scale // 8
        for index in range(count):
            factor = 1.09 if index >= slower_from else 1.0
            begin = 1 + index % 3
            node_list = f"cn[{begin:03}-{begin + nodes - 1:03}]"
            days = 82 - index * 80 / max(count - 1, 1) + random.random()
            yield selection, days, expected * factor * random.gauss(1, noise), cluster, "COMPLETED", node_list

    yield from times(NEMOTRON, 2.01, "eos", 12, 0.004)
    yield from times(NEMOTRON, 2.06, "selene", 5, 0.006)
    yield from times(_nemotron("15b", 16), 1.93, "eos", 4, 0.004)
    yield from times(_nemotron("15b", 128), 2.04, "eos", 3, 0.004)
    yield from times(_nemotron("15b", 256), 2.13, "eos", 3, 0.006)
    yield from times(_nemotron("340b", 256), 3.75, "eos", 11, 0.004, slower_from=8)
    yield from times(Selection("llama3.1", "25.04", "405b", "h100", "fp8", 512), 14.1, "eos", 3, 0.01)
    yield NEMOTRON, 5.5, 2.0, "eos", "FAILED", "cn[001-008]"
    yield NEMOTRON, 3.2, 2.0, "selene", "CANCELLED", "sn[001-008]"


def _nemotron(size: str, scale: int) -> Selection:
    return Selection("nemotron4", "25.04", size, "h100", "fp8", scale)
