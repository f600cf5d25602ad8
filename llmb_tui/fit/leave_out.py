"""`Trial`: published rows, predicted as the preview does it, but from rows and a fit that have not seen them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.fit.observations import observations, published
from llmb_tui.fit.solve import fitted
from llmb_tui.plan.draft import Draft, draft_of
from llmb_tui.plan.estimate import Expectation, expect
from llmb_tui.plan.evidence import Evidence, evidence
from llmb_tui.plan.measured import Measured, measured
from llmb_tui.plan.selection import Selection
from llmb_tui.plan.step_model import StepModel

Group = Callable[[Measured], Hashable]


@dataclass(frozen=True, slots=True)
class Prediction:
    """A published row, what was expected of it, and the rows that were known."""

    row: Measured
    expected: Expectation
    known: tuple[Measured, ...]


class Trial:
    """The published rows of a catalog, and how well some are predicted from the others."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.rows = published(catalog)
        self.used = observations(catalog)
        self._models: dict[frozenset[Measured], StepModel] = {}

    def leave_out(self, rows: Iterable[Measured], group: Group) -> list[Prediction]:
        """Each row from all of other groups, worked examples too. Rows that get no estimate are passed over."""
        asked: dict[Hashable, list[Measured]] = {}
        for row in rows:
            asked.setdefault(group(row), []).append(row)
        predictions = []
        for name, members in asked.items():
            known = tuple(each for each in measured(self.catalog) if group(each) != name)
            found = self._evidence(known)
            tables = tuple(each for each in known if each.result)
            for row in members:
                expected = expect(self._draft(row), found)
                if isinstance(expected, Expectation):
                    predictions.append(Prediction(row, expected, tables))
        return predictions

    def model(self, left_out: frozenset[Measured] = frozenset()) -> StepModel:
        """The fit without some rows."""
        if left_out not in self._models:
            used = self.used.without(left_out)
            self._models[left_out] = fitted(used.work, [each.step_time_s for each in used.rows])
        return self._models[left_out]

    def _evidence(self, known: tuple[Measured, ...]) -> Evidence:
        there = set(known)
        left_out = frozenset(each for each in self.used.rows if each not in there)
        return evidence(self.catalog, known, self.model(left_out))

    def _draft(self, asked: Measured) -> Draft:
        """The selection of a published configuration, as a person would make it."""
        row, recipe = asked.row, asked.recipe
        names = (recipe.workload, recipe.release, row.size, row.gpu, row.dtype)
        return draft_of(self.catalog, Selection(*names, row.gpus, row.scaling == "strong"))
