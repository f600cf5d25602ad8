"""Whether what a cluster's accounting said of a run goes with its record and its log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from llmb_tui.cluster.slurm.accounting import kept_rows
from llmb_tui.launch.run import Run
from llmb_tui.results.archive.findings import Finding, compared
from llmb_tui.results.result import RunResult

_WHAT = "accounting against record"
_WELL = "COMPLETED"
_PHASES = {"Completed": _WELL, "Failed": "FAILED"}
# A node's clock and the training's own are not the same, and the last step may be counted twice at a start.
_MARGIN = 1.02
_MARGIN_S = 5.0


@dataclass(frozen=True, slots=True)
class _Told:
    """What accounting says of the last start of one job."""

    state: str
    name: str
    nodes: int | None
    elapsed_s: float | None


def accounting_findings(run: Run, result: RunResult, text: str) -> Iterator[Finding]:
    """Nothing for a run without accounting, which is missing then."""
    if not text or not run.job_ids:
        return
    told = _told(text)
    last = told.get(run.job_ids[-1])
    if last is None:
        yield Finding(run.id, _WHAT, "differs", f"It does not name {run.words.job} {run.job_ids[-1]}.")
        return
    wrong = []
    # Of one bad end the queue and accounting may have different words.
    if run.job_state and (last.state == _WELL) is not (run.job_state == _WELL):
        wrong.append(f"it ended as {last.state}, the record says {run.job_state}")
    if not last.name.startswith(run.job_name):  # of NVIDIA's own scripts only how it begins is known beforehand
        wrong.append("it has another name")
    if last.nodes is not None and last.nodes != run.plan.nodes:
        wrong.append(f"it had {last.nodes} nodes, the plan has {run.plan.nodes}")
    trained_s = _trained_s(result)
    long = f", {trained_s:,.0f} s of steps in {last.elapsed_s:,.0f} s" if trained_s and last.elapsed_s else ""
    if trained_s and last.elapsed_s and trained_s > last.elapsed_s * _MARGIN + _MARGIN_S:
        wrong.append(f"it ran {last.elapsed_s:,.0f} s, and the steps of the log took {trained_s:,.0f} s")
    yield compared(run.id, _WHAT, ["; ".join(wrong)], "It says otherwise", f"{last.state}{long}.")


def _trained_s(result: RunResult) -> float | None:
    """What the steps of a single start took; None where there were several, of which accounting says less."""
    if result.facts is None or result.facts.starts != 1 or result.restarts:
        return None
    return sum(step.step_time_s or 0.0 for step in result.facts.steps)


def _told(text: str) -> dict[str, _Told]:
    """By job, the last line of each."""
    try:
        if text.startswith("["):
            return dict(_of_workloads(json.loads(text)))
        return {row.get("JobID", ""): _of_row(row) for row in kept_rows(text)}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _of_row(row: Mapping[str, str]) -> _Told:
    state, name = row.get("State", "").partition(" ")[0], row.get("JobName", "")
    nodes, elapsed = (int(cell) if (cell := row.get(key, "")).isdecimal() else None for key in ("NNodes", "ElapsedRaw"))
    return _Told(state, name, nodes, elapsed)


def _of_workloads(workloads: list[dict[str, Any]]) -> Iterator[tuple[str, _Told]]:
    for one in workloads:
        phase = str(one.get("phase"))
        ended = _PHASES.get(phase, "CANCELLED" if one.get("deletedAt") else phase)
        nodes = one.get("requestedPods", {}).get("number")
        elapsed = one.get("totalRunningTimeSeconds")
        yield (
            str(one.get("id")),
            _Told(ended, str(one.get("name")), int(nodes) if nodes else None, float(elapsed) if elapsed else None),
        )
