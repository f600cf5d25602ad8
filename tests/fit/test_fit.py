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
from llmb_tui.fit.observations import FITTED_ON, observations
from llmb_tui.fit.solve import PRIORS, fit_model
from llmb_tui.fit.store import document, inputs_sha256, write
from llmb_tui.plan.physics import TIMES
from llmb_tui.plan.step_model import StepModel, step_model


def refitted(catalog: Catalog) -> StepModel:
    used = observations(catalog)
    return fit_model(used.work, [each.step_time_s for each in used.rows])


def test_a_fit_gives_what_is_stored(catalog: Catalog) -> None:
    assert catalog.coefficients is not None
    stored, used = catalog.coefficients, observations(catalog)
    assert stored.inputs_sha256 == inputs_sha256(catalog, used), "other rows: run `make fit`"
    found = document(catalog, used, refitted(catalog), stored.date)
    assert found["terms"] == pytest.approx(stored.terms, rel=1e-3), "another fit: run `make fit`"
    assert found["stragglers"] == pytest.approx(stored.stragglers, rel=1e-2, abs=1e-5)
    assert found["errors"] == pytest.approx(stored.errors, abs=0.02)
    assert found["rows"] == stored.rows


def test_nothing_near_a_fit_is_better(catalog: Catalog) -> None:
    used = observations(catalog)
    found, priors = refitted(catalog), [PRIORS[name] for name in (*TIMES, "stragglers")]

    def cost(weights: list[float]) -> float:
        model = StepModel(tuple(weights[:-1]), weights[-1])
        off = [math.log(model.seconds(w) / each.step_time_s) for w, each in zip(used.work, used.rows, strict=True)]
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
    model, used = step_model(catalog.coefficients), observations(catalog)
    errors = [
        abs(model.seconds(work) / each.step_time_s - 1)
        for work, each in zip(used.work, used.rows, strict=True)
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
    used = observations(catalog)
    true = StepModel(tuple(PRIORS[name].mean + 0.5 * PRIORS[name].deviation for name in TIMES), 0.004)
    steps = [true.seconds(work) for work in used.work]
    found = fit_model(used.work, steps)
    for work, step in zip(used.work, steps, strict=True):
        assert found.seconds(work) == pytest.approx(step, rel=0.01)


def test_other_rows_make_another_fit_and_another_hash(catalog: Catalog) -> None:
    used = observations(catalog)
    fewer = used.without(used.rows[:1])
    assert len(fewer.rows) == len(fewer.work) == 87
    assert used.rows[0] not in fewer.rows
    assert inputs_sha256(catalog, fewer) != inputs_sha256(catalog, used)
    faster = {**catalog.chips, FITTED_ON: replace(catalog.chips[FITTED_ON], hbm_gb_s=4800.0)}
    assert inputs_sha256(replace(catalog, chips=faster), used) != inputs_sha256(catalog, used)


def test_what_is_written_is_what_the_catalog_reads(catalog: Catalog, tmp_path: Path) -> None:
    file = tmp_path / "coefficients.toml"
    write(file, document(catalog, observations(catalog), refitted(catalog), "2026-01-31"))
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
