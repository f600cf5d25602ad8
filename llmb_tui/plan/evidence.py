"""`Evidence`: all that an estimate may rest on. With rows left out it says how well the others predict them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.hardware import Chip
from llmb_tui.catalog.recipe import Gpu
from llmb_tui.plan.measurements import Curve, Key, Measurement, architecture, curves_of, key_of, measurements
from llmb_tui.plan.physics import Machine, Terms, has_terms, terms
from llmb_tui.plan.step_model import StepModel, step_model


@dataclass(frozen=True, slots=True)
class Anchor:
    """A step time that others are measured against, and what the model has to be corrected by to give it."""

    measurement: Measurement
    correction: float
    """Logarithm of measured over modelled step time."""


@dataclass(frozen=True, slots=True)
class Anchors:
    """Anchors that differ in scale alone: one release's step times of one configuration."""

    architecture: Key
    first: Measurement
    at: tuple[Anchor, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Curves for scales; the model, with anchors, for everything else."""

    curves: Mapping[Key, tuple[Curve, ...]]
    """By what their points share; newest release first."""
    anchors: Mapping[str, tuple[Anchors, ...]]
    """By GPU type; empty without a model."""
    chips: Mapping[str, Chip]
    model: StepModel | None
    fitted_on: str | None
    """The GPU type whose rows the model was fitted on."""
    levels: Mapping[str, float]
    """By GPU type: mean correction of its dense models, which says how far the type is from its peaks."""

    def machine(self, name: str, gpu: Gpu, dtype: str) -> Machine | None:
        """A GPU type at work; None for a type or precision of which too little is known."""
        chip = self.chips.get(name)
        return Machine(gpu, chip, dtype) if chip and has_terms(gpu, dtype) else None


@lru_cache(maxsize=8)
def evidence_of(catalog: Catalog) -> Evidence:
    """Everything that a catalog has; cached."""
    model = step_model(catalog.coefficients) if catalog.coefficients else None
    return evidence(catalog, measurements(catalog), model)


def evidence(catalog: Catalog, measurements: Iterable[Measurement], model: StepModel | None) -> Evidence:
    """Only these step times, and a model that may have been fitted without the others."""
    measurements = tuple(measurements)
    fitted_on = catalog.coefficients.gpu if catalog.coefficients else None
    bare = Evidence(curves_of(measurements), {}, catalog.chips, model, fitted_on, {})
    groups: dict[Key, list[Anchor]] = {}
    for each in measurements:
        row = each.row
        machine = bare.machine(row.gpu, each.recipe.gpus[row.gpu], row.dtype)
        if model and machine:
            correction = math.log(each.step_time_s / model.seconds(work_of(each, machine.chip)))
            same = (each.recipe, each.release, each.variant, key_of(each))
            groups.setdefault(same, []).append(Anchor(each, correction))
    anchors: dict[str, list[Anchors]] = {}
    for at in groups.values():
        first = at[0].measurement
        anchors.setdefault(first.row.gpu, []).append(Anchors(architecture(first.model), first, tuple(at)))
    by_gpu = {gpu: tuple(group) for gpu, group in anchors.items()}
    levels = {gpu: level for gpu, group in by_gpu.items() if (level := _level(group)) is not None}
    return Evidence(bare.curves, by_gpu, catalog.chips, model, fitted_on, levels)


@lru_cache(maxsize=4096)
def work_of(each: Measurement, chip: Chip) -> Terms:
    """The work of the step that was measured, on a GPU of these data rates; cached, for accuracy asks often."""
    row = each.row
    return terms(each.model, Machine(each.recipe.gpus[row.gpu], chip, row.dtype), row.gpus, row)


def _level(anchors: Iterable[Anchors]) -> float | None:
    """Mean correction of the dense models of a GPU type."""
    dense = [anchor.correction for group in anchors if group.first.model.experts == 1 for anchor in group.at]
    return fmean(dense) if dense else None
