"""A stored catalog equals the catalog that was read, and is not used for other presets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.kept import kept_catalog, kept_text, stamp_of
from llmb_tui.catalog.load import load_presets
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "catalog.json"


@pytest.fixture
def services(tmp_path: Path, tiny_text: str) -> Services:
    """The catalog includes a preset of the user."""
    places = UserPaths(tmp_path / "config", tmp_path / "state")
    places.presets.mkdir(parents=True)
    (places.presets / "tiny.toml").write_text(tiny_text)
    return Services(places)


def again(services: Services) -> Services:
    return Services(services.places)


def test_it_is_the_same_to_the_last_value(catalog: Catalog, file: Path) -> None:
    stamp = stamp_of(())
    assert stamp is not None
    file.parent.mkdir()
    file.write_text(kept_text(catalog, stamp))
    kept = kept_catalog(file, stamp)
    assert kept is not None
    assert repr(kept) == repr(catalog)


def test_files_that_have_not_changed_are_read_once(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    first = services.catalog
    monkeypatch.setattr("llmb_tui.catalog.load.load_presets", None)
    assert repr(again(services).catalog) == repr(first)
    assert "tiny" in first.workloads()


def test_a_changed_file_is_read_again(services: Services) -> None:
    assert services.catalog.recipe("tiny").title == "Tiny"
    mine = services.places.presets / "tiny.toml"
    before = mine.stat()
    mine.write_text(mine.read_text().replace('title = "Tiny"', 'title = "Tony"'))
    os.utime(mine, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert again(services).catalog.recipe("tiny").title == "Tony", "with any time and size"
    mine.unlink()
    assert "tiny" not in again(services).catalog.workloads()


def test_a_broken_preset_is_reported_at_each_start(services: Services) -> None:
    (services.places.presets / "more.toml").write_text("what")
    for one in (services, again(services)):
        errors: list[object] = []
        one.on_broken_file = errors.append
        assert one.catalog.broken
        assert len(errors) == 1


@pytest.mark.parametrize("damage", ["", "{}", "[]", "\0", '{"stamp": 1, "parts": [1, 2, 3]}', "cut", "nested", "form"])
def test_a_damaged_catalog_cache_is_written_again(services: Services, damage: str) -> None:
    first = repr(services.catalog)
    file = services.places.catalog
    text = file.read_text()
    head = text[: text.index('"parts"')]
    forms = {
        "cut": text[:-5],
        "nested": f'{head}"parts": {"[" * 100_000}',
        "form": text.replace('"Recipe"', '"Nothing"'),
    }
    file.write_text(forms.get(damage, damage))
    assert repr(again(services).catalog) == first
    assert file.read_text() == text


def test_a_catalog_cache_of_another_version_is_not_used(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    assert services.catalog
    stamp = stamp_of((services.places.presets,))
    monkeypatch.setattr("llmb_tui.__version__", "0.0.0")
    other = stamp_of((services.places.presets,))
    assert kept_catalog(services.places.catalog, stamp) is not None
    assert kept_catalog(services.places.catalog, other) is None


def test_a_pipe_is_not_opened(services: Services) -> None:
    os.mkfifo(services.places.presets / "pipe.toml")
    assert stamp_of((services.places.presets,)) is None
    services.on_broken_file = lambda _: None
    assert services.catalog.broken
    assert not services.places.catalog.exists()


def test_the_catalog_loads_when_the_cache_cannot_be_written(services: Services) -> None:
    services.places.state.write_text("in the way")
    assert repr(services.catalog) == repr(load_presets((services.places.presets,)))


def test_a_key_that_means_something_else_is_not_kept(catalog: Catalog) -> None:
    odd = Catalog(catalog.recipes, {"()": next(iter(catalog.chips.values()))})
    with pytest.raises(ValueError, match="a reserved key"):
        kept_text(odd, [])
