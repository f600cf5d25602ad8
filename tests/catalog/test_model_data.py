"""The data behind the modelled estimate: facts of the hardware, and the coefficients of the fit."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from llmb_tui.catalog import load
from llmb_tui.catalog.load import PresetError, load_presets
from llmb_tui.catalog.rows import rows

MODEL = Path(__file__).parents[2] / "presets" / "model"


@pytest.fixture
def own_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder, which is read in place of the original."""
    folder = tmp_path / "model"
    shutil.copytree(MODEL, folder)
    monkeypatch.setattr(load, "model_dir", lambda: folder)
    return folder


def test_every_gpu_type_of_the_recipes_has_chip_data_with_a_source() -> None:
    catalog = load_presets()
    assert set(catalog.gpu_types()) <= set(catalog.chips)
    assert all(len(chip.source) > 20 for chip in catalog.chips.values())


def test_a_node_is_inside_an_nvlink_domain() -> None:
    catalog = load_presets()
    for recipe in catalog.recipes:
        for name, gpu in recipe.gpus.items():
            assert catalog.chips[name].nvlink_domain % gpu.gpus_per_node == 0
            assert catalog.chips[name].hbm_gb_s > catalog.chips[name].nvlink_gb_s > catalog.chips[name].nic_gb_s


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("hardware.toml", "nvlink_domain = 8", "nvlink_domain = 0"),
        ("hardware.toml", "hbm_gb_s", "hbm_gbs"),
        ("coefficients.toml", "attention = ", "attention = -"),
        ("coefficients.toml", "stragglers = ", "stragglers = ["),
    ],
)
def test_a_spoilt_file_is_named_with_its_line(own_model: Path, file: str, old: str, new: str) -> None:
    text = (own_model / file).read_text()
    assert old in text
    (own_model / file).write_text(text.replace(old, new, 1))
    with pytest.raises(PresetError) as caught:
        load_presets()
    assert caught.value.file == own_model / file
    assert caught.value.line


def test_before_the_first_fit_there_are_no_coefficients(own_model: Path) -> None:
    (own_model / "coefficients.toml").unlink()
    catalog = load_presets()
    assert catalog.coefficients is None
    assert catalog.chips


def test_worked_examples_are_examples_of_listed_configurations() -> None:
    recipe = load_presets().recipe("nemotron4-340b@25.12")
    listed = {(row.gpu, row.dtype, row.gpus, row.scaling): row for row in rows(recipe)}
    batches = {(e.gpu, e.step_time_s): listed[e.gpu, e.dtype, e.gpus, e.scaling].gbs for e in recipe.examples}
    assert batches == {("h100", 4.31): 64, ("gb200", 21.542): 512}
