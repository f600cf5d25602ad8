"""The JSON objects of comparisons and of nodes, for other programs (docs/results.md): every number in full. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from llmb_tui.results.compare import Comparison, Contrast, Group
from llmb_tui.results.comparison_tables import of_published_pct
from llmb_tui.results.difference import RunDifference
from llmb_tui.results.document import run_result
from llmb_tui.results.likeness import Remark
from llmb_tui.results.result import RunResult
from llmb_tui.results.scaling import ScalingCurve
from llmb_tui.results.slow_nodes import RULE, SlowNodes

_CONFIGURATION = ("workload", "release", "size", "gpu", "dtype", "precision_variant", "scale", "scaling")


def comparison_document(
    comparison: Comparison, curves: Sequence[ScalingCurve], changed: RunDifference | None
) -> dict[str, Any]:
    """What `compare` answers. `changed`: what else differs between two runs, where two are held against each other."""
    places = {id(one): at for at, one in enumerate(comparison.groups)}
    left_out = dict(comparison.left_out)
    return {
        "purpose": comparison.likeness.purpose,
        "comparable": comparison.likeness.comparable,
        "refusals": [_remark(remark) for remark in comparison.likeness.refusals],
        "warnings": [_remark(remark) for remark in comparison.likeness.warnings],
        "measure": comparison.measure,
        "runs": [_run(run, left_out.get(run.id)) for run in comparison.runs],
        "groups": [_group(one, name) for one, name in zip(comparison.groups, comparison.names, strict=True)],
        "differences": [_contrast(one, places) for one in comparison.contrasts],
        "unpaired": list(comparison.unpaired),
        "scaling": [_curve(curve) for curve in curves],
        "changed": asdict(changed) if changed else None,
    }


def nodes_document(nodes: SlowNodes) -> dict[str, Any]:
    """What `compare --nodes` answers."""
    return {
        "runs": nodes.runs,
        "passed_over": nodes.passed_over,
        "suspected": list(nodes.suspected),
        "exclude": nodes.exclude,
        "words": nodes.words,
        "rule": RULE,
        "nodes": [asdict(found) | {"words": found.words} for found in nodes.findings],
    }


def _remark(remark: Remark) -> dict[str, str]:
    return {"aspect": remark.aspect, "words": remark.words}


def _run(run: RunResult, left_out: str | None) -> dict[str, Any]:
    verdict = run.verdict
    return {
        "id": run.id,
        **_configuration(run),
        "state": run.state,
        "left_out": left_out,
        "step_time_s": run.step_time_s,
        "rule": run.rule_words,
        "of_published_pct": of_published_pct(run),
        "verdict": {"result": verdict.result, "ratio": verdict.ratio} if verdict else None,
        "result": run_result(run),
    }


def _configuration(run: RunResult) -> dict[str, Any]:
    what = run.configuration
    layout = asdict(what.layout)
    return {
        "configuration": {name: getattr(what, name) for name in _CONFIGURATION} | {"parallelism": layout},
        "cluster": run.cluster,
        "procedure": run.procedure,
    }


def _group(one: Group, name: str) -> dict[str, Any]:
    return {
        "name": name,
        **_configuration(one.runs[0]),
        "runs": [run.id for run in one.runs],
        "mean_s": one.mean_s,
        "noise_pct": one.noise_pct,
        "half_width_pct": one.half_width_pct,
        "within_run_pct": one.within_pct,
        "published_s": one.published_s,
        "of_published_pct": one.of_published_pct,
    }


def _contrast(one: Contrast, places: dict[int, int]) -> dict[str, Any]:
    return {
        "base": places[id(one.base)],
        "other": places[id(one.other)],
        "difference_pct": one.difference_pct,
        "half_width_pct": one.half_width_pct,
        "basis": one.basis,
        "outcome": one.outcome,
        "words": one.words,
    }


def _curve(curve: ScalingCurve) -> dict[str, Any]:
    points = [
        {
            "gpus": point.gpus,
            "runs": [run.id for run in point.group.runs],
            "step_time_s": point.group.mean_s,
            "tokens_per_s": point.tokens_per_s,
            "efficiency_pct": point.efficiency_pct,
            "efficiency_half_width_pct": point.efficiency_half_pct,
            "published_s": point.published_s,
            "published_efficiency_pct": point.published_efficiency_pct,
        }
        for point in curve.points
    ]
    return {"label": curve.label, "scaling": curve.scaling, "points": points}
