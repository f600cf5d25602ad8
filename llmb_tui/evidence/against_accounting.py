"""Comparison of a run's accounting on the cluster with its record and its log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llmb_tui.analysis.result import RunResult
from llmb_tui.cluster.job import END_UNKNOWN, Job
from llmb_tui.cluster.kind import ClusterKind
from llmb_tui.evidence.findings import Finding, compared
from llmb_tui.language.quantities import whole_seconds
from llmb_tui.launch.cluster_kind import kind_of
from llmb_tui.launch.run import Run

_WHAT = "accounting against record"
_WELL = "COMPLETED"
# A node's clock differs from the training's own, and the last step may be counted twice at a start.
_MARGIN = 1.02
_MARGIN_S = 5.0


def accounting_findings(run: Run, result: RunResult, text: str) -> Iterator[Finding]:
    """Compare the accounting with record and log; yield nothing without accounting, which then counts as missing."""
    if not text or not run.job_ids:
        return
    last = _jobs(kind_of(run), text).get(run.job_ids[-1])
    if last is None:
        yield Finding(run.id, _WHAT, "differs", f"It does not name {run.words.job} {run.job_ids[-1]}.")
        return
    wrong = []
    # The queue and accounting may have different words for the same failure.
    if run.job_state not in (None, END_UNKNOWN) and (last.state == _WELL) is not (run.job_state == _WELL):
        wrong.append(f"it ended as {last.state}, but the record has {run.job_state}")
    if not last.name.startswith(run.job_name):  # for NVIDIA's scripts only its beginning is known
        wrong.append("it has another name")
    if last.nodes is not None and last.nodes != run.plan.nodes:
        wrong.append(f"it had {last.nodes} nodes, the plan has {run.plan.nodes}")
    trained_s = _trained_s(result)
    long = ""
    if trained_s and last.elapsed_s:
        trained, elapsed = whole_seconds(trained_s), whole_seconds(last.elapsed_s)
        long = f", {trained} of steps in {elapsed}"
        if trained_s > last.elapsed_s * _MARGIN + _MARGIN_S:
            wrong.append(f"it ran for {elapsed}, but the steps in the log took {trained}")
    yield compared(run.id, _WHAT, ["; ".join(wrong)], "The accounting differs", f"{last.state}{long}.")


def _trained_s(result: RunResult) -> float | None:
    """Total time of the steps of a single start, seconds; None for several starts, of which accounting has only one."""
    if result.facts is None or result.facts.starts != 1 or result.restarts:
        return None
    return sum(step.step_time_s or 0.0 for step in result.facts.steps)


def _jobs(kind: ClusterKind[Any], text: str) -> dict[str, Job]:
    """Jobs by id, each in the state of its last start."""
    try:
        return {job.id: job for job in kind.accounted(text)}
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return {}
