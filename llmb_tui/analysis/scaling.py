"""`scaling_curves`: how step time and throughput go over scales, as efficiency against the smallest one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from llmb_tui.analysis.compare import Group, Measure, contrast, group
from llmb_tui.analysis.result import RunResult
from llmb_tui.language.labels import workload_label
from llmb_tui.plan.plan import Scaling
from llmb_tui.plan.throughput import tokens_per_s


@dataclass(frozen=True, slots=True)
class ScalePoint:
    """All comparable runs at one scale."""

    gpus: int
    group: Group
    tokens_per_s: float
    """Of all GPUs."""
    efficiency_pct: float
    """Tokens/s of one GPU in per cent of that at the smallest scale of the curve; for weak and strong scaling alike."""
    efficiency_half_width_pct: float | None
    """Half of its 95 % interval in the same unit; None where no noise is known, and at the smallest scale."""
    published_s: float | None
    """Printed step time."""
    published_efficiency_pct: float | None
    """The same efficiency of the printed step times; None where this scale or the smallest has none."""


@dataclass(frozen=True, slots=True)
class ScalingCurve:
    """One configuration but for its scale, on one cluster by one procedure."""

    label: str
    scaling: Scaling
    points: tuple[ScalePoint, ...]
    """Two or more, by GPUs."""

    @property
    def runs(self) -> tuple[RunResult, ...]:
        """Those of all points."""
        return tuple(run for point in self.points for run in point.group.runs)


def scaling_curves(runs: Iterable[RunResult], measure: Measure = "rule") -> tuple[ScalingCurve, ...]:
    """Every curve of two scales or more among the comparable runs; of several layouts at one scale the fastest."""
    found: dict[tuple[object, ...], dict[int, Group]] = {}
    for one in group(runs, measure):
        at, scale = found.setdefault(_curve(one), {}), one.configuration.scale
        if scale not in at or one.gpu_token_s < at[scale].gpu_token_s:
            at[scale] = one
    curves = ([at[scale] for scale in sorted(at)] for at in found.values() if len(at) > 1)
    return tuple(_scaling_curve(groups) for groups in curves)


def _scaling_curve(groups: Sequence[Group]) -> ScalingCurve:
    first = groups[0]
    what = first.configuration
    name = workload_label(f"{what.workload}@{what.release}", what.size, what.dtype)
    label = f"{name} · {what.gpu.upper()}, {first.cluster}"
    return ScalingCurve(label, what.scaling, tuple(_point(one, first) for one in groups))


def _point(one: Group, first: Group) -> ScalePoint:
    layout, gpus = one.configuration.layout, one.configuration.scale
    efficiency = 100 * first.gpu_token_s / one.gpu_token_s
    half = None if one is first else contrast(first, one).half_width_pct
    published = _published_gpu_token_s(one)
    base = _published_gpu_token_s(first)
    return ScalePoint(
        gpus,
        one,
        tokens_per_s(layout.gbs, layout.seq_len, one.mean_s),
        efficiency,
        # The interval is one of time; efficiency is its inverse.
        None if half is None else half * (efficiency / 100) ** 2,
        one.published_s,
        100 * base / published if base and published else None,
    )


def _published_gpu_token_s(one: Group) -> float | None:
    """Printed, as `gpu_token_s` is measured."""
    return None if one.published_s is None else one.gpu_token_s * one.published_s / one.mean_s


def _curve(one: Group) -> tuple[object, ...]:
    """What all points of a curve have in common."""
    what, layout = one.configuration, one.configuration.layout
    names = (what.workload, what.release, what.size, what.gpu, what.dtype, what.precision_variant, what.scaling)
    return (*names, layout.seq_len, layout.layers, what.options, one.cluster, one.procedure)
