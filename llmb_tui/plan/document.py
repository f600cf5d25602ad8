"""`document`: a plan as the JSON object that other programs rely on."""

from __future__ import annotations

from dataclasses import asdict
from operator import attrgetter
from typing import Any

from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import NOTHING_MORE, RunOptions

_PARALLELISM = tuple("tp pp cp ep dp vp mbs gbs ga seq_len layers".split())
_PUBLISHED = tuple("step_time_s tokens_per_s mfu_pct days_per_1t_tokens source note".split())
_ESTIMATE = tuple(
    "step_time_s low_s high_s method anchor tokens_per_s mfu_pct days_per_1t_tokens tflops_per_gpu"
    " model_flops_per_sample peak_tflops flops_formula".split()
)
_MEMORY = tuple("state_gb peak_gb capacity_gb verdict".split())
_PROBLEM = tuple("field severity reason fix".split())
_VALUES = {names: attrgetter(*names) for names in (_PARALLELISM, _PUBLISHED, _ESTIMATE, _MEMORY, _PROBLEM)}


def document(plan: Plan) -> dict[str, Any]:
    """The JSON object of a plan (CONTRIBUTING.md, "Verbs"): nothing is rounded but tokens per second.

    `options` is in it only where something is switched on, and holds that.
    """
    asked = plan.selection
    estimate = _object(plan.estimate, _ESTIMATE)
    if estimate:
        estimate["tokens_per_s"] = round(estimate["tokens_per_s"])
    return {
        "selection": {
            "workload": asked.workload,
            "release": asked.release,
            "size": asked.size,
            "gpu": asked.gpu,
            "dtype": asked.dtype,
            "scale": asked.scale,
            "scaling": plan.scaling,
        },
        "nodes": plan.nodes,
        "gpus_per_node": plan.gpus_per_node,
        "parallelism": _object(plan.parallelism, _PARALLELISM),
        "printed": _object(plan.printed, _PARALLELISM),
        "published": _object(plan.published, _PUBLISHED),
        "estimate": estimate,
        "memory": _object(plan.memory, _MEMORY),
        "checkpoint_gb": _plain(plan.checkpoint_gb),
        "gpu_hours": plan.gpu_hours,
        "problems": [_object(problem, _PROBLEM) for problem in plan.problems],
        **({} if plan.options == NOTHING_MORE else {"options": _given(plan.options)}),
    }


def _given(options: RunOptions) -> dict[str, Any]:
    return {name: value for name, value in asdict(options).items() if value is not None and value is not False}


def _object(part: object | None, names: tuple[str, ...]) -> dict[str, Any] | None:
    """The named fields of a dataclass; None for None."""
    if part is None:
        return None
    return dict(zip(names, map(_plain, _VALUES[names](part)), strict=True))


def _plain(value: Any) -> Any:
    """A whole number without a fraction, as tables print it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
