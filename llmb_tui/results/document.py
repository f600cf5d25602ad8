"""The JSON objects of results, for other programs (docs/results.md): every number in full, times in seconds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from llmb_tui.plan.document import document as plan_document
from llmb_tui.results.log_facts import LogFacts
from llmb_tui.results.log_result import LogResult
from llmb_tui.results.losses import LossDifference
from llmb_tui.results.result import LossCheck, RunResult, figures_of, loss_check
from llmb_tui.results.statistics import Spread, spread
from llmb_tui.results.upstream_rules import UpstreamResult
from llmb_tui.text import plural
from llmb_tui.watch.progress import WARM_UP_STEPS
from llmb_tui.watch.verdict import rule_words

_ESTIMATE = ("step_time_s", "low_s", "high_s", "method", "anchor")
_FIGURES = ("tokens_per_s", "tflops_per_gpu", "mfu_pct", "days_per_1t_tokens")


def run_result(result: RunResult, against: tuple[str, LossDifference] | None = None) -> dict[str, Any]:
    """What the object of a run holds beside its other keys. `against`: the first run like it, and how losses differ."""
    nodes = result.job.node_list if result.job else ""
    return {**_result(result, against), "restarts": result.restarts, "earlier_logs": [], "nodes": nodes or None}


def log_document(result: LogResult) -> dict[str, Any]:
    """The object of a run of which there is a log; what that does not say is null."""
    log, verdict, run = result.log, result.verdict, result.log.run
    reasons = [*(verdict.reasons if verdict else (result.reason,)), log.note]
    return {
        "id": log.name,
        "selection": plan_document(result.plan)["selection"] if result.plan else None,
        "procedure": "llmb" if run else "direct" if log.plan else None,
        "cluster": None,
        "job_ids": [run.job_id] if run else [],
        "state": None,
        "submitted_at": (run.written_at or None) if run else None,
        "steps_done": result.steps_done,
        "steps_total": result.steps_total,
        "step_time_s": result.step_time_s,
        "median_step_time_s": result.median_s,
        "last_step_time_s": result.last_s,
        "rule": rule_words(result.rule),
        "cancel": None,
        "verdict": {
            "result": verdict.result if verdict else None,
            "ratio": verdict.ratio if verdict else None,
            "against": verdict.against if verdict else None,
            "reasons": [reason for reason in reasons if reason],
        },
        "result": {
            **_result(result),
            "restarts": len(result.earlier),
            "earlier_logs": list(result.earlier),
            "nodes": None,
        },
    }


def upstream_document(result: UpstreamResult) -> dict[str, Any]:
    """What one of NVIDIA's tools says."""
    time, tflops = result.step_time_s, result.tflops_per_gpu
    return {
        "rule": result.rule,
        "status": result.status,
        "step_time_mean_s": time.mean if time else None,
        "step_time_stdev_s": result.stdev_s,
        "tflops_per_gpu_mean": tflops.mean if tflops else None,
        "tflops_per_gpu_stdev": result.tflops_stdev,
        "samples": time.count if time else None,
        "highest_iteration": result.highest,
    }


def loss_words(check: LossCheck) -> str:
    """The loss check as people say it."""
    if check.not_finite:
        return (
            f"{plural(check.not_finite, 'step')} {'has' if check.not_finite == 1 else 'have'} a loss that is no number"
        )
    return f"{'falls' if check.falls else 'does not fall'}: {check.first:.4g} to {check.last:.4g}"


def _result(result: RunResult | LogResult, against: tuple[str, LossDifference] | None = None) -> dict[str, Any]:
    plan, step_time_s, facts = result.plan, result.step_time_s, result.facts
    figures = figures_of(plan, step_time_s) if plan is not None and step_time_s is not None else None
    known = plan_document(plan) if plan else {}
    estimate = known.get("estimate")
    return {
        "steady": _spread(result.steady),
        **(asdict(figures) if figures else dict.fromkeys(_FIGURES)),
        "logged_tflops_per_gpu": _spread(_logged(facts)),
        "estimate": {name: estimate[name] for name in _ESTIMATE} if estimate else None,
        "published": known.get("published"),
        "loss": _loss(facts, against),
        "checkpoints": [asdict(checkpoint) for checkpoint in facts.checkpoints] if facts else [],
    }


def _spread(found: Spread | None) -> dict[str, Any] | None:
    if found is None:
        return None
    names = ("count", "mean", "median", "stdev", "population_stdev", "low", "high")
    return {name: getattr(found, name) for name in names}


def _logged(facts: LogFacts | None) -> Spread | None:
    """Of the TFLOPS that the program itself wrote of its steps, but for the warm-up."""
    steps = facts.steps[WARM_UP_STEPS:] if facts else ()
    return spread([step.tflops_per_gpu for step in steps if step.tflops_per_gpu is not None])


def _loss(facts: LogFacts | None, against: tuple[str, LossDifference] | None) -> dict[str, Any] | None:
    check = loss_check(facts) if facts else None
    if check is None:
        return None
    first = {"run": against[0], **asdict(against[1])} if against else None
    return {**asdict(check), "words": loss_words(check), "against_first": first}
