"""`scaling_curves`: step time and throughput over scales, with the efficiency against the smallest scale. Pure."""

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
    """Throughput of all GPUs together."""
    efficiency_pct: float
    """Tokens/s of one GPU in per cent of the value at the smallest scale of the curve, for weak and strong scaling."""
    efficiency_half_width_pct: float | None
    """Half of its 95 % interval, in the same unit; None without known noise, and at the smallest scale."""
    published_s: float | None
    """Published step time."""
    published_efficiency_pct: float | None
    """Efficiency by the published step times; None if this scale or the smallest one has none."""


@dataclass(frozen=True, slots=True)
class ScalingCurve:
    """Runs that differ only in their scale, on one cluster by one procedure."""

    label: str
    scaling: Scaling
    points: tuple[ScalePoint, ...]
    """Two or more points, in order of GPUs."""

    @property
    def runs(self) -> tuple[RunResult, ...]:
        """Runs of all points."""
        return tuple(run for point in self.points for run in point.group.runs)


def scaling_curves(runs: Iterable[RunResult], measure: Measure = "rule") -> tuple[ScalingCurve, ...]:
    """Every curve of at least two scales among the comparable runs; of several layouts at one scale the fastest."""
    curves: dict[tuple[object, ...], dict[int, Group]] = {}
    for repeats in group(runs, measure):
        curve, scale = curves.setdefault(_curve(repeats), {}), repeats.configuration.scale
        if scale not in curve or repeats.gpu_token_s < curve[scale].gpu_token_s:
            curve[scale] = repeats
    by_scale = ([curve[scale] for scale in sorted(curve)] for curve in curves.values() if len(curve) > 1)
    return tuple(_scaling_curve(groups) for groups in by_scale)


def _scaling_curve(groups: Sequence[Group]) -> ScalingCurve:
    first = groups[0]
    configuration = first.configuration
    name = workload_label(f"{configuration.workload}@{configuration.release}", configuration.size, configuration.dtype)
    label = f"{name} · {configuration.gpu.upper()}, {first.cluster}"
    return ScalingCurve(label, configuration.scaling, tuple(_point(repeats, first) for repeats in groups))


def _point(repeats: Group, first: Group) -> ScalePoint:
    layout, gpus = repeats.configuration.layout, repeats.configuration.scale
    efficiency = 100 * first.gpu_token_s / repeats.gpu_token_s
    half = None if repeats is first else contrast(first, repeats).half_width_pct
    published = _published_gpu_token_s(repeats)
    base = _published_gpu_token_s(first)
    return ScalePoint(
        gpus,
        repeats,
        tokens_per_s(layout.gbs, layout.seq_len, repeats.mean_s),
        efficiency,
        # The interval is one of time, and efficiency is its inverse.
        None if half is None else half * (efficiency / 100) ** 2,
        repeats.published_s,
        100 * base / published if base and published else None,
    )


def _published_gpu_token_s(repeats: Group) -> float | None:
    """Published time of a GPU for a token, comparable with the measured `gpu_token_s`."""
    return None if repeats.published_s is None else repeats.gpu_token_s * repeats.published_s / repeats.mean_s


def _curve(repeats: Group) -> tuple[object, ...]:
    """Key of the properties that all points of a curve have in common."""
    config, layout = repeats.configuration, repeats.configuration.layout
    names = (config.workload, config.release, config.size, config.gpu, config.dtype, config.precision_variant)
    common = (config.scaling, layout.seq_len, layout.layers, config.options, repeats.cluster, repeats.procedure)
    return (*names, *common)
