"""`Configuration`: what a run trained, without where and by which procedure. Runs of the same one are repeats."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.catalog.recipe import Variant
from llmb_tui.plan.plan import Parallelism, Plan, Scaling
from llmb_tui.plan.selection import RunOptions


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything on which a step time depends, but the cluster and the procedure."""

    workload: str
    release: str
    size: str
    gpu: str
    dtype: str
    precision_variant: Variant | None
    scale: int
    """Number of GPUs."""
    scaling: Scaling
    layout: Parallelism
    options: RunOptions
    """What it did beside the benchmark itself."""

    @property
    def label(self) -> str:
        """In a few words, such as `nemotron4 15b fp8 · 64 × H100`."""
        return f"{self.workload} {self.size} {self.dtype} · {self.scale} × {self.gpu.upper()}"


def configuration_of(plan: Plan) -> Configuration:
    """That of a plan."""
    what, of_plan = plan.selection, (plan.scaling, plan.parallelism, plan.options)
    names = (what.workload, what.release, what.size, what.gpu, what.dtype)
    return Configuration(*names, plan.precision_variant, what.scale, *of_plan)
