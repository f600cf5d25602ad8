"""JSON objects of results for other programs (docs/results.md): numbers in full precision, times in seconds. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from llmb_tui.analysis.compare import Comparison, Group
from llmb_tui.analysis.difference import RunDifference
from llmb_tui.analysis.result import Figures, LossDifference, RunResult, figures_of, loss_check, steady_of
from llmb_tui.analysis.scaling import ScalePoint, ScalingCurve
from llmb_tui.analysis.slow_nodes import RULE, SlowNodes
from llmb_tui.analysis.statistics import SampleStatistics, spread
from llmb_tui.analysis.upstream_rules import UpstreamResult
from llmb_tui.plan.document import document as plan_document
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import DEFAULT_PROCEDURE
from llmb_tui.watch.log_facts import LogFacts
from llmb_tui.watch.log_result import LAST_STEP, LogResult
from llmb_tui.watch.progress import WARM_UP_STEPS
from llmb_tui.watch.report import validity_document
from llmb_tui.watch.verdict import rule_words

_ESTIMATE = ("step_time_s", "low_s", "high_s", "method", "anchor")
_VERDICT = ("result", "ratio", "against")
_CONFIGURATION = ("workload", "release", "size", "gpu", "dtype", "precision_variant", "scale", "scaling")
_GROUP = ("mean_s", "noise_pct", "half_width_pct", "within_run_pct", "published_s", "of_published_pct")
_REMARK = ("aspect", "words")
_CONTRAST = ("difference_pct", "half_width_pct", "basis", "outcome", "words")
_POINT = (
    "gpus", "tokens_per_s", "efficiency_pct", "efficiency_half_width_pct", "published_s", "published_efficiency_pct"
)  # fmt: skip


def run_result(result: RunResult, against: LossDifference | None = None) -> dict[str, Any]:
    """Additional keys of a run's object. `against`: difference of its losses from the configuration's first run."""
    nodes = result.job.node_list if result.job else ""
    figures = _figures(result.plan, result.step_time_s, result.steady, result.facts, against)
    return {**figures, "restarts": result.restarts, "earlier_logs": [], "nodes": nodes or None}


def log_document(result: LogResult) -> dict[str, Any]:
    """JSON object of a run that is known by its log; facts that the log lacks are null."""
    log, verdict, run = result.log, result.verdict, result.log.run
    reasons = [*(verdict.reasons if verdict else (result.reason,)), log.note]
    last, times = (result.facts.steps or (None,))[-1], result.facts.step_times_s
    after_warm_up = steady_of(LAST_STEP, times)
    return {
        "id": log.name,
        "selection": plan_document(result.plan)["selection"] if result.plan else None,
        # Runs of the default procedure leave their plan with the log.
        "procedure": run.procedure if run else DEFAULT_PROCEDURE if log.plan and result.plan else None,
        "cluster": None,
        "job_ids": [run.job_id] if run else [],
        "state": None,
        "submitted_at": (run.written_at or None) if run else None,
        "steps_done": last.index + 1 if last else 0,
        "steps_total": last.total if last else None,
        "step_time_s": result.step_time_s,
        "median_step_time_s": after_warm_up.median if after_warm_up else None,
        "last_step_time_s": last.step_time_s if last else None,
        "rule": rule_words(result.rule),
        "cancel": None,
        "starts": result.facts.starts + len(result.earlier),
        "validity": validity_document(result.validity),
        "verdict": {
            **(_of(verdict, *_VERDICT) if verdict else dict.fromkeys(_VERDICT)),
            "reasons": [reason for reason in reasons if reason],
        },
        "result": {
            **_figures(result.plan, result.step_time_s, steady_of(result.rule, times), result.facts),
            "restarts": len(result.earlier),
            "earlier_logs": list(result.earlier),
            "nodes": None,
        },
    }


def upstream_document(result: UpstreamResult) -> dict[str, Any]:
    """JSON object of the result by one of NVIDIA's tools."""
    time, tflops = result.step_time_s, result.tflops_per_gpu
    return {
        **_of(result, "rule", "status"),
        "step_time_mean_s": time.mean if time else None,
        "step_time_stdev_s": result.deviation(time),
        "tflops_per_gpu_mean": tflops.mean if tflops else None,
        "tflops_per_gpu_stdev": result.deviation(tflops),
        "samples": time.count if time else None,
        "highest_iteration": result.highest,
    }


def comparison_document(
    comparison: Comparison, curves: Sequence[ScalingCurve], changed: RunDifference | None
) -> dict[str, Any]:
    """JSON object of `compare`. `changed`: other differences between the two runs or sides that are compared."""
    places = {id(member): index for index, member in enumerate(comparison.groups)}
    left_out = dict(comparison.left_out)
    return {
        **_of(comparison.comparability, "purpose", "comparable"),
        "refusals": [_of(remark, *_REMARK) for remark in comparison.comparability.refusals],
        "warnings": [_of(remark, *_REMARK) for remark in comparison.comparability.warnings],
        "measure": comparison.measure,
        "runs": [_compared(run, left_out.get(run.id)) for run in comparison.runs],
        "groups": [_group(member, name) for member, name in zip(comparison.groups, comparison.names, strict=True)],
        "differences": [
            {"base": places[id(contrast.base)], "other": places[id(contrast.other)], **_of(contrast, *_CONTRAST)}
            for contrast in comparison.contrasts
        ],
        "unpaired": list(comparison.unpaired),
        "scaling": [curve_document(curve) for curve in curves],
        "changed": asdict(changed) if changed else None,
    }


def curve_document(curve: ScalingCurve) -> dict[str, Any]:
    """A scaling curve."""
    return {**_of(curve, "label", "scaling"), "points": [_point(point) for point in curve.points]}


def nodes_document(nodes: SlowNodes) -> dict[str, Any]:
    """JSON object of `compare --nodes`."""
    return {
        **_of(nodes, "runs", "passed_over", "suspected", "exclude", "words"),
        "rule": RULE,
        "nodes": [asdict(found) | {"words": found.words} for found in nodes.findings],
    }


def _of(value: object, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def _figures(
    plan: Plan | None,
    step_time_s: float | None,
    steady: SampleStatistics | None,
    facts: LogFacts | None,
    against: LossDifference | None = None,
) -> dict[str, Any]:
    figures = figures_of(plan, step_time_s) if plan is not None and step_time_s is not None else None
    known = plan_document(plan) if plan else {}
    estimate = known.get("estimate")
    logged = _logged(facts) if facts else None
    return {
        "steady": asdict(steady) if steady else None,
        **(asdict(figures) if figures else dict.fromkeys(field.name for field in fields(Figures))),
        "logged_tflops_per_gpu": asdict(logged) if logged else None,
        "estimate": {name: estimate[name] for name in _ESTIMATE} if estimate else None,
        "published": known.get("published"),
        "loss": _loss(facts, against) if facts else None,
        "checkpoints": [asdict(checkpoint) for checkpoint in facts.checkpoints] if facts else [],
    }


def _logged(facts: LogFacts) -> SampleStatistics | None:
    """Statistics of the TFLOPS that the program itself logged, without the warm-up."""
    return spread([step.tflops_per_gpu for step in facts.steps[WARM_UP_STEPS:] if step.tflops_per_gpu is not None])


def _loss(facts: LogFacts, against: LossDifference | None) -> dict[str, Any] | None:
    check = loss_check(facts)
    if check is None:
        return None
    return {**asdict(check), "words": check.words, "against_first": asdict(against) if against else None}


def _compared(run: RunResult, left_out: str | None) -> dict[str, Any]:
    return {
        "id": run.id,
        **_configuration(run),
        "state": run.state,
        "left_out": left_out,
        "step_time_s": run.step_time_s,
        "rule": run.rule_words,
        "of_published_pct": run.of_published_pct,
        "verdict": _of(run.verdict, "result", "ratio") if run.verdict else None,
        "result": run_result(run),
    }


def _configuration(run: RunResult) -> dict[str, Any]:
    what = run.configuration
    return {
        "configuration": {**_of(what, *_CONFIGURATION), "parallelism": asdict(what.layout)},
        **_of(run, "cluster", "procedure"),
    }


def _group(group: Group, name: str) -> dict[str, Any]:
    runs = [run.id for run in group.runs]
    return {"name": name, **_configuration(group.runs[0]), "runs": runs, **_of(group, *_GROUP)}


def _point(point: ScalePoint) -> dict[str, Any]:
    runs = [run.id for run in point.group.runs]
    return {**_of(point, *_POINT), "runs": runs, "step_time_s": point.group.mean_s}
