"""Whether what a cluster's accounting said of a run goes with its record and its log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from llmb_tui.analysis.result import RunResult
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.slurm.kept_accounting import kept_rows
from llmb_tui.evidence.findings import Finding, compared
from llmb_tui.language.quantities import whole_seconds
from llmb_tui.launch.run import Run

_WHAT = "accounting against record"
_WELL = "COMPLETED"
_PHASES = {"Completed": _WELL, "Failed": "FAILED"}
# A node's clock and the training's own are not the same, and the last step may be counted twice at a start.
_MARGIN = 1.02
_MARGIN_S = 5.0
_LONGEST = 15
"""Digits of a number."""


def accounting_findings(run: Run, result: RunResult, text: str) -> Iterator[Finding]:
    """Nothing for a run without accounting, which is missing then."""
    if not text or not run.job_ids:
        return
    last = _jobs(text).get(run.job_ids[-1])
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
    long = ""
    if trained_s and last.elapsed_s:
        trained, elapsed = whole_seconds(trained_s), whole_seconds(last.elapsed_s)
        long = f", {trained} of steps in {elapsed}"
        if trained_s > last.elapsed_s * _MARGIN + _MARGIN_S:
            wrong.append(f"it ran {elapsed}, and the steps of the log took {trained}")
    yield compared(run.id, _WHAT, ["; ".join(wrong)], "It says otherwise", f"{last.state}{long}.")


def _trained_s(result: RunResult) -> float | None:
    """What the steps of a single start took; None where there were several, of which accounting says less."""
    if result.facts is None or result.facts.starts != 1 or result.restarts:
        return None
    return sum(step.step_time_s or 0.0 for step in result.facts.steps)


def _jobs(text: str) -> dict[str, Job]:
    """By their ids, each as its last start was."""
    try:
        found = map(_of_workload, json.loads(text)) if text.startswith("[") else map(_of_row, kept_rows(text))
        return {job.id: job for job in found}
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return {}


def _of_row(row: Mapping[str, str]) -> Job:
    state = row.get("State", "").partition(" ")[0]
    nodes, elapsed = (_number(row.get(key, "")) for key in ("NNodes", "ElapsedRaw"))
    return Job(row.get("JobID", ""), row.get("JobName", ""), state, nodes=nodes, elapsed_s=elapsed)


def _number(cell: str) -> int | None:
    if cell.isdecimal() and len(cell) > _LONGEST:
        raise ValueError("no accounting has such numbers")
    return int(cell) if cell.isdecimal() else None


def _of_workload(one: dict[str, Any]) -> Job:
    phase = str(one.get("phase"))
    ended = _PHASES.get(phase, "CANCELLED" if one.get("deletedAt") else phase)
    pods, elapsed = one.get("requestedPods", {}).get("number"), one.get("totalRunningTimeSeconds")
    nodes, elapsed_s = int(pods) if pods else None, float(elapsed) if elapsed else None
    return Job(str(one.get("id")), str(one.get("name")), ended, nodes=nodes, elapsed_s=elapsed_s)
