"""Recipes, and the files that they come from, are found by the names that people type."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.catalog.catalog import Catalog, UnknownNameError
from llmb_tui.catalog.load import PresetError, load_presets, read_preset
from llmb_tui.errors import LlmbError
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection


@pytest.mark.parametrize(
    ("workload", "release", "found"),
    [
        ("nemotron4", None, "nemotron4@25.04"),
        ("pretrain_nemotron4", None, "nemotron4@25.04"),
        ("llama3.1", None, "llama3.1@25.04"),
        ("llama3.1", "24.11", "llama3.1@24.11"),
        ("llama3.1@24.11", None, "llama3.1@24.11"),
        ("pretrain_llama3.1@24.11", None, "llama3.1@24.11"),
        ("llama3.1@24.11", "24.11", "llama3.1@24.11"),
        ("nemotron4-340b", None, "nemotron4-340b@25.12"),
    ],
)
def test_a_recipe_is_found(catalog: Catalog, workload: str, release: str | None, found: str) -> None:
    assert catalog.recipe(workload, release).id == found


@pytest.mark.parametrize(
    ("workload", "release", "unknown", "nearest"),
    [
        ("lama3.1", None, ("workload", "lama3.1"), "llama3.1"),
        ("Grok", None, ("workload", "Grok"), "grok1"),
        ("pretrain_nemotron5", None, ("workload", "pretrain_nemotron5"), "nemotron4"),
        ("llama3.1", "25.4", ("release", "25.4"), "25.04"),
        ("llama3.1@24.12", None, ("release", "24.12"), "24.11"),
    ],
)
def test_the_error_for_an_unknown_name_suggests_the_nearest_name(
    catalog: Catalog, workload: str, release: str | None, unknown: tuple[str, str], nearest: str
) -> None:
    with pytest.raises(UnknownNameError) as caught:
        catalog.recipe(workload, release)
    assert (caught.value.field, caught.value.value, caught.value.exit_code) == (*unknown, 1)
    assert caught.value.nearest[0] == nearest
    assert nearest in caught.value.fix


def test_an_unknown_name_without_a_near_match_lists_all_workloads(catalog: Catalog) -> None:
    with pytest.raises(UnknownNameError) as caught:
        catalog.recipe("zzz")
    assert caught.value.nearest == ()
    assert all(workload in str(caught.value) for workload in catalog.workloads())


def test_two_releases_are_refused(catalog: Catalog) -> None:
    with pytest.raises(LlmbError, match=r"24\.11 and 25\.04") as caught:
        catalog.recipe("llama3.1@24.11", "25.04")
    assert caught.value.exit_code == 1


def test_the_newest_release_has_the_highest_version_number(tiny_preset: Path) -> None:
    tiny = read_preset(tiny_preset)
    catalog = Catalog(tuple(replace(tiny, release=release) for release in ("1.9", "1.10", "1.10.1", "1.2")))
    assert catalog.recipe("tiny").release == "1.10.1"
    assert [recipe.release for recipe in catalog.recipes] == ["1.10.1", "1.10", "1.9", "1.2"]


def test_the_catalog_lists_workloads_gpu_types_and_precisions(catalog: Catalog) -> None:
    assert catalog.workloads() == ("grok1", "llama3.1", "nemotron4", "nemotron4-340b")
    assert set(catalog.gpu_types()) == {"h100", "b200", "gb200", "gb300"}
    assert catalog.dtypes() == ("bf16", "fp8")


def test_custom_presets_are_loaded_next_to_the_built_in_presets(tiny_preset: Path, tmp_path: Path) -> None:
    (tmp_path / ".hidden.toml").write_text("not = [toml", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not = [toml", encoding="utf-8")
    catalog = load_presets([tiny_preset.parent, tmp_path / "missing"])
    assert catalog.recipe("tiny").id == "tiny@1.0"
    assert catalog.recipe("grok1").id == "grok1@25.02"


def test_a_custom_preset_cannot_replace_a_built_in_preset(tiny_preset: Path) -> None:
    text = tiny_preset.read_text(encoding="utf-8").replace('"tiny"', '"grok1"').replace('"1.0"', '"25.02"')
    tiny_preset.write_text(text, encoding="utf-8")
    with pytest.raises(PresetError, match=r"grok1@25\.02") as caught:
        load_presets([tiny_preset.parent])
    assert caught.value.file == tiny_preset
    assert "grok1-25.02.toml" in str(caught.value)


BROKEN = {
    "newer": ("2.0", "gated = 1", True),
    "the same": ("1.0", "gated = true", True),
    "older": ("0.9", "gated = 1", False),
    "no release": ("newest", "gated = 1", True),
    "no TOML": ("2.0", "gated = [", True),
}


@pytest.mark.parametrize(("release", "line", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_a_plan_warns_when_a_broken_preset_may_be_the_intended_release(
    tiny_preset: Path, release: str, line: str, told: bool
) -> None:
    text = tiny_preset.read_text(encoding="utf-8")
    broken = text.replace('release = "1.0"', f'release = "{release}"').replace("gated = true", line)
    (tiny_preset.parent / "z.toml").write_text(broken, encoding="utf-8")
    catalog = load_presets([tiny_preset.parent], lambda _: None)
    run_plan = plan(catalog, Selection("tiny", "1.0", "1b", "h100", "bf16", 16))
    warnings = [problem for problem in run_plan.problems if problem.field == "release"]
    assert len(warnings) == told
    assert all(problem.severity == "warning" and "z.toml" in problem.reason for problem in warnings)
    other = plan(catalog, Selection("grok1", "25.02", "314b", "h100", "bf16", 8))
    assert not [problem for problem in other.problems if problem.field == "release"]


def test_the_error_for_an_unknown_recipe_names_the_broken_preset(tiny_preset: Path) -> None:
    text = tiny_preset.read_text(encoding="utf-8").replace("gated = true", "gated = 1")
    tiny_preset.write_text(text, encoding="utf-8")
    catalog = load_presets([tiny_preset.parent], lambda _: None)
    for name in ("tiny", "pretrain_tiny@1.0"):
        with pytest.raises(UnknownNameError, match=r"tiny-1\.0\.toml, line \d+: models\.1b\.gated"):
            catalog.recipe(name)
    with pytest.raises(UnknownNameError) as caught:
        catalog.recipe("huge")
    assert "tiny-1.0.toml" not in str(caught.value)
