"""`Evidence`: measurements and model behind estimates; rows can be left out to test the prediction of the others."""

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
    """A measured step time, and the correction of the model for it."""

    measurement: Measurement
    correction: float
    """Logarithm of measured over modelled step time."""


@dataclass(frozen=True, slots=True)
class Anchors:
    """Anchors that differ only in scale: step times of one configuration in one release."""

    architecture: Key
    first: Measurement
    at: tuple[Anchor, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Curves over scales, and the model with its anchors."""

    curves: Mapping[Key, tuple[Curve, ...]]
    """By configuration without scale; newest release first."""
    anchors: Mapping[str, tuple[Anchors, ...]]
    """By GPU type; empty without a model."""
    chips: Mapping[str, Chip]
    model: StepModel | None
    fitted_on: str | None
    """GPU type of the rows of the fit."""
    levels: Mapping[str, float]
    """Mean correction of the dense models by GPU type: the distance of the type from its peaks."""

    def machine(self, name: str, gpu: Gpu, dtype: str) -> Machine | None:
        """A GPU type in a precision; None if facts are missing."""
        chip = self.chips.get(name)
        return Machine(gpu, chip, dtype) if chip and has_terms(gpu, dtype) else None


@lru_cache(maxsize=8)
def evidence_of(catalog: Catalog) -> Evidence:
    """The evidence of a catalog; cached."""
    model = step_model(catalog.coefficients) if catalog.coefficients else None
    return evidence(catalog, measurements(catalog), model)


def evidence(catalog: Catalog, measurements: Iterable[Measurement], model: StepModel | None) -> Evidence:
    """Evidence of these step times; the model may be fitted on them only."""
    measurements = tuple(measurements)
    fitted_on = catalog.coefficients.gpu if catalog.coefficients else None
    bare = Evidence(curves_of(measurements), {}, catalog.chips, model, fitted_on, {})
    groups: dict[Key, list[Anchor]] = {}
    for measurement in measurements:
        row, recipe = measurement.row, measurement.recipe
        machine = bare.machine(row.gpu, recipe.gpus[row.gpu], row.dtype)
        if model and machine:
            correction = math.log(measurement.step_time_s / model.seconds(work_of(measurement, machine.chip)))
            key = (recipe, measurement.release, measurement.variant, key_of(measurement))
            groups.setdefault(key, []).append(Anchor(measurement, correction))
    anchors: dict[str, list[Anchors]] = {}
    for at in groups.values():
        first = at[0].measurement
        anchors.setdefault(first.row.gpu, []).append(Anchors(architecture(first.model), first, tuple(at)))
    by_gpu = {gpu: tuple(group) for gpu, group in anchors.items()}
    levels = {gpu: level for gpu, group in by_gpu.items() if (level := _level(group)) is not None}
    return Evidence(bare.curves, by_gpu, catalog.chips, model, fitted_on, levels)


@lru_cache(maxsize=4096)
def work_of(measurement: Measurement, chip: Chip) -> Terms:
    """The work of a measured step on a GPU with these data rates; cached, because `accuracy` asks often."""
    row = measurement.row
    return terms(measurement.model, Machine(measurement.recipe.gpus[row.gpu], chip, row.dtype), row.gpus, row)


def _level(anchors: Iterable[Anchors]) -> float | None:
    """Mean correction of the dense models of a GPU type."""
    dense = [anchor.correction for group in anchors if group.first.model.experts == 1 for anchor in group.at]
    return fmean(dense) if dense else None
