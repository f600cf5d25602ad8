"""`Observations`: the rows that the fit uses, as physics and step times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan.measurements import Measurement, measurements
from llmb_tui.plan.physics import Machine, Terms, terms

FITTED_ON = "h100"
"""The only GPU type that more than one model is published on. The others are reached by anchors: a factor that a fit
found for a type with one model would be that model's."""


@dataclass(frozen=True, slots=True)
class Observations:
    """The rows and the work of each, in the same order."""

    rows: tuple[Measurement, ...]
    work: tuple[Terms, ...]

    def without(self, left_out: Iterable[Measurement]) -> Observations:
        """The observations but for these rows."""
        away = set(left_out)
        indices = [index for index, row in enumerate(self.rows) if row not in away]
        return Observations(tuple(self.rows[k] for k in indices), tuple(self.work[k] for k in indices))


def published_rows(catalog: Catalog) -> tuple[Measurement, ...]:
    """Every row of every result table; worked examples are none."""
    return tuple(each for each in measurements(catalog) if each.result is not None)


def observations(catalog: Catalog) -> Observations:
    """All published rows of the GPU type that the model is fitted on."""
    rows = tuple(each for each in published_rows(catalog) if each.row.gpu == FITTED_ON)
    return Observations(rows, tuple(_work(catalog, each) for each in rows))


def _work(catalog: Catalog, each: Measurement) -> Terms:
    row = each.row
    machine = Machine(each.recipe.gpus[row.gpu], catalog.chips[row.gpu], row.dtype)
    return terms(each.model, machine, row.gpus, row)
