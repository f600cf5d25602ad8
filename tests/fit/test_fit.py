"""The fit gives the stored coefficients, uses every published row, and recovers known coefficients."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.rows import results
from llmb_tui.fit.solve import FITTED_ON, PRIORS, fit_model, fitted_rows
from llmb_tui.fit.store import document, inputs_sha256, write
from llmb_tui.plan.evidence import work_of
from llmb_tui.plan.physics import TIMES, Terms
from llmb_tui.plan.step_model import StepModel, step_model


def refitted(catalog: Catalog) -> StepModel:
    return fit_model(fitted_rows(catalog), catalog.chips[FITTED_ON])


def work(catalog: Catalog) -> list[Terms]:
    """Work of a step for each row of the fit."""
    return [work_of(each, catalog.chips[FITTED_ON]) for each in fitted_rows(catalog)]


def test_a_new_fit_reproduces_the_stored_coefficients(catalog: Catalog) -> None:
    assert catalog.coefficients is not None
    stored, used, chip = catalog.coefficients, fitted_rows(catalog), catalog.chips[FITTED_ON]
    assert stored.inputs_sha256 == inputs_sha256(used, chip), "other rows: run `make fit`"
    fitted = document(used, chip, refitted(catalog), stored.date)
    assert fitted["terms"] == pytest.approx(stored.terms, rel=1e-3), "another fit: run `make fit`"
    assert fitted["stragglers"] == pytest.approx(stored.stragglers, rel=1e-2, abs=1e-5)
    assert fitted["errors"] == pytest.approx(stored.errors, abs=0.02)
    assert fitted["rows"] == stored.rows


def test_no_coefficients_near_the_fit_are_better(catalog: Catalog) -> None:
    steps = list(zip(work(catalog), fitted_rows(catalog), strict=True))
    fitted, priors = refitted(catalog), [PRIORS[name] for name in (*TIMES, "stragglers")]

    def cost(weights: list[float]) -> float:
        model = StepModel(tuple(weights[:-1]), weights[-1])
        residuals = [math.log(model.seconds(terms) / row.step_time_s) for terms, row in steps]
        deviations = [(weight - prior.mean) / prior.deviation for weight, prior in zip(weights, priors, strict=True)]
        return sum((value / 0.05) ** 2 for value in residuals) + sum(value**2 for value in deviations)

    weights = [*fitted.weights, fitted.stragglers]
    best = cost(weights)
    for index, prior in enumerate(priors):
        for moved in (weights[index] * 1.01, max(weights[index] * 0.99, prior.least)):
            assert cost([*weights[:index], moved, *weights[index + 1 :]]) >= best


def test_no_published_row_of_the_gpu_is_missing(catalog: Catalog) -> None:
    assert catalog.coefficients is not None
    published = {
        recipe.id: count
        for recipe in catalog.recipes
        if (count := sum(row.gpu == FITTED_ON for row in results(recipe)))
    }
    assert catalog.coefficients.rows == published
    assert sum(published.values()) == 88


def test_the_stored_model_explains_the_rows(catalog: Catalog) -> None:
    assert catalog.coefficients is not None
    model = step_model(catalog.coefficients)
    errors = [
        abs(model.seconds(terms) / row.step_time_s - 1)
        for terms, row in zip(work(catalog), fitted_rows(catalog), strict=True)
        if row.model.experts == 1
    ]
    assert sum(errors) / len(errors) == pytest.approx(catalog.coefficients.errors["dense_mean_pct"] / 100, abs=2e-4)
    assert max(errors) == pytest.approx(catalog.coefficients.errors["dense_worst_pct"] / 100, abs=2e-4)


def test_every_coefficient_is_possible(catalog: Catalog) -> None:
    assert catalog.coefficients is not None
    assert set(PRIORS) == {*TIMES, "stragglers"}
    for name, value in catalog.coefficients.terms.items():
        assert value >= PRIORS[name].least, "no kernel beats the peak"


def test_the_fit_recovers_the_model_that_made_the_step_times(catalog: Catalog) -> None:
    true = StepModel(tuple(PRIORS[name].mean + 0.5 * PRIORS[name].deviation for name in TIMES), 0.004)
    steps = [true.seconds(terms) for terms in work(catalog)]
    rows = [replace(each, step_time_s=step) for each, step in zip(fitted_rows(catalog), steps, strict=True)]
    fitted = fit_model(rows, catalog.chips[FITTED_ON])
    for terms, step in zip(work(catalog), steps, strict=True):
        assert fitted.seconds(terms) == pytest.approx(step, rel=0.01)


def test_other_rows_make_another_fit_and_another_hash(catalog: Catalog) -> None:
    rows, chip = fitted_rows(catalog), catalog.chips[FITTED_ON]
    assert fit_model(rows[1:], chip) != fit_model(rows, chip)
    assert inputs_sha256(rows[1:], chip) != inputs_sha256(rows, chip)
    assert inputs_sha256(rows, replace(chip, hbm_gb_s=4800.0)) != inputs_sha256(rows, chip)


def test_the_written_file_has_the_form_that_the_catalog_reads(catalog: Catalog, tmp_path: Path) -> None:
    file = tmp_path / "coefficients.toml"
    write(file, document(fitted_rows(catalog), catalog.chips[FITTED_ON], refitted(catalog), "2026-01-31"))
    stored = Path(__file__).parents[2] / "presets" / "model" / "coefficients.toml"

    def without_day(text: str) -> list[str]:
        return [line for line in text.splitlines() if not line.startswith("date")]

    assert [line.partition(" = ")[0] for line in without_day(file.read_text())] == [
        line.partition(" = ")[0] for line in without_day(stored.read_text())
    ]
    assert 'date = "2026-01-31"' in file.read_text()


def test_a_prediction_does_not_import_the_fit() -> None:
    program = "import sys, llmb_tui.plan.make, llmb_tui.catalog.load; sys.exit('llmb_tui.fit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
