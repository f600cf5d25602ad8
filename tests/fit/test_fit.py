"""The fit: the stored coefficients are those that it finds, from every published row, and it finds what is there."""

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
    """What each step of the fit's rows has to do."""
    return [work_of(each, catalog.chips[FITTED_ON]) for each in fitted_rows(catalog)]


def test_a_fit_gives_what_is_stored(catalog: Catalog) -> None:
    assert catalog.coefficients is not None
    stored, used, chip = catalog.coefficients, fitted_rows(catalog), catalog.chips[FITTED_ON]
    assert stored.inputs_sha256 == inputs_sha256(used, chip), "other rows: run `make fit`"
    found = document(used, chip, refitted(catalog), stored.date)
    assert found["terms"] == pytest.approx(stored.terms, rel=1e-3), "another fit: run `make fit`"
    assert found["stragglers"] == pytest.approx(stored.stragglers, rel=1e-2, abs=1e-5)
    assert found["errors"] == pytest.approx(stored.errors, abs=0.02)
    assert found["rows"] == stored.rows


def test_nothing_near_a_fit_is_better(catalog: Catalog) -> None:
    steps = list(zip(work(catalog), fitted_rows(catalog), strict=True))
    found, priors = refitted(catalog), [PRIORS[name] for name in (*TIMES, "stragglers")]

    def cost(weights: list[float]) -> float:
        model = StepModel(tuple(weights[:-1]), weights[-1])
        off = [math.log(model.seconds(w) / each.step_time_s) for w, each in steps]
        held = [(weight - prior.mean) / prior.deviation for weight, prior in zip(weights, priors, strict=True)]
        return sum((one / 0.05) ** 2 for one in off) + sum(one**2 for one in held)

    weights = [*found.weights, found.stragglers]
    best = cost(weights)
    for at, prior in enumerate(priors):
        for moved in (weights[at] * 1.01, max(weights[at] * 0.99, prior.least)):
            assert cost([*weights[:at], moved, *weights[at + 1 :]]) >= best


def test_no_published_row_of_the_gpu_is_missing(catalog: Catalog) -> None:
    assert catalog.coefficients is not None
    there = {
        recipe.id: count
        for recipe in catalog.recipes
        if (count := sum(row.gpu == FITTED_ON for row in results(recipe)))
    }
    assert catalog.coefficients.rows == there
    assert sum(there.values()) == 88


def test_the_stored_model_explains_the_rows(catalog: Catalog) -> None:
    assert catalog.coefficients is not None
    model = step_model(catalog.coefficients)
    errors = [
        abs(model.seconds(one) / each.step_time_s - 1)
        for one, each in zip(work(catalog), fitted_rows(catalog), strict=True)
        if each.model.experts == 1
    ]
    assert sum(errors) / len(errors) == pytest.approx(catalog.coefficients.errors["dense_mean_pct"] / 100, abs=2e-4)
    assert max(errors) == pytest.approx(catalog.coefficients.errors["dense_worst_pct"] / 100, abs=2e-4)


def test_every_coefficient_is_possible(catalog: Catalog) -> None:
    assert catalog.coefficients is not None
    assert set(PRIORS) == {*TIMES, "stragglers"}
    for name, value in catalog.coefficients.terms.items():
        assert value >= PRIORS[name].least, "no kernel beats the peak"


def test_it_finds_a_model_that_made_the_steps(catalog: Catalog) -> None:
    true = StepModel(tuple(PRIORS[name].mean + 0.5 * PRIORS[name].deviation for name in TIMES), 0.004)
    steps = [true.seconds(one) for one in work(catalog)]
    rows = [replace(each, step_time_s=step) for each, step in zip(fitted_rows(catalog), steps, strict=True)]
    found = fit_model(rows, catalog.chips[FITTED_ON])
    for one, step in zip(work(catalog), steps, strict=True):
        assert found.seconds(one) == pytest.approx(step, rel=0.01)


def test_other_rows_make_another_fit_and_another_hash(catalog: Catalog) -> None:
    rows, chip = fitted_rows(catalog), catalog.chips[FITTED_ON]
    assert fit_model(rows[1:], chip) != fit_model(rows, chip)
    assert inputs_sha256(rows[1:], chip) != inputs_sha256(rows, chip)
    assert inputs_sha256(rows, replace(chip, hbm_gb_s=4800.0)) != inputs_sha256(rows, chip)


def test_what_is_written_is_what_the_catalog_reads(catalog: Catalog, tmp_path: Path) -> None:
    file = tmp_path / "coefficients.toml"
    write(file, document(fitted_rows(catalog), catalog.chips[FITTED_ON], refitted(catalog), "2026-01-31"))
    stored = Path(__file__).parents[2] / "presets" / "model" / "coefficients.toml"

    def without_day(text: str) -> list[str]:
        return [line for line in text.splitlines() if not line.startswith("date")]

    assert [line.partition(" = ")[0] for line in without_day(file.read_text())] == [
        line.partition(" = ")[0] for line in without_day(stored.read_text())
    ]
    assert 'date = "2026-01-31"' in file.read_text()


def test_the_fit_is_not_loaded_by_what_predicts() -> None:
    program = "import sys, llmb_tui.plan.make, llmb_tui.catalog.load; sys.exit('llmb_tui.fit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
