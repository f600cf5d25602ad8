"""Files that a parser would need too much time or memory for are refused before it reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from llmb_tui.catalog.load import read_preset
from llmb_tui.cluster.profiles import load_profile
from llmb_tui.diagnosis.load import load_rules
from llmb_tui.errors import LlmbError
from llmb_tui.store.settings import load_settings
from llmb_tui.suites.suite_file import read_suite
from llmb_tui.toml.read import TomlFileError, parse_toml
from tests.kit.runs import CATALOG

READERS: dict[str, Callable[[Path], object]] = {
    "settings": load_settings,
    "preset": read_preset,
    "cluster": load_profile,
    "failure rules": lambda file: load_rules([file.parent]),
    "suite": lambda file: read_suite(file, CATALOG),
}
MANY = ".".join(["a"] * 20_000)


@pytest.mark.parametrize("kind", READERS)
def test_a_key_of_thousands_of_parts_is_refused_in_files_of_every_kind(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "x.toml"
    file.write_text(f"# first\n{MANY} = 1\n")
    with pytest.raises(LlmbError) as refused:
        READERS[kind](file)
    words = str(refused.value)
    assert "a key has more than 32 parts" in words
    assert f"{file}, line 2" in words


@pytest.mark.parametrize("kind", READERS)
def test_a_file_of_gigabytes_is_refused_without_reading_it_whole(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "x.toml"
    with file.open("wb") as opened:
        opened.truncate(1 << 40)  # sparse: no memory holds it
    with pytest.raises(LlmbError) as refused:
        READERS[kind](file)
    assert "it is larger than 1 MB" in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"[{MANY}]", id="table"),
        pytest.param(f"[[{MANY}]]", id="array of tables"),
        pytest.param("a = {" + MANY + " = 1}", id="inline table"),
        pytest.param("a = [{b = 1, " + MANY + " = 1}]", id="later key of an inline table"),
        pytest.param(" . ".join(["a"] * 40) + " = 1", id="spaces"),
        pytest.param(".".join(['"a.b"', "'c'"] * 20) + " = 1", id="quoted parts"),
        pytest.param(f'x = """\n"" \\""""""\n{MANY} = 1', id="after a string of several lines"),
        pytest.param(f"x = 'it''s\n{MANY} = 1", id="after an invalid line"),
    ],
)
def test_a_key_of_too_many_parts_is_noticed_in_every_form(text: str) -> None:
    with pytest.raises(ValueError, match="a key has more than 32 parts"):
        parse_toml(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(".".join(["a"] * 32) + " = 1", id="the most parts"),
        pytest.param(f"a = '{MANY}'", id="text"),
        pytest.param(f'a = "\\"{MANY}"', id="text with an escape"),
        pytest.param(f"a = '''\n'{MANY}''\n'''", id="text of several lines"),
        pytest.param(f'a = """\n"{MANY}\\"""\n"""', id="text of several lines with an escape"),
        pytest.param(f"a = 1 # {MANY} = 1", id="comment"),
        pytest.param(f"a = [{'1.5, ' * 100}]", id="fractions"),
    ],
)
def test_many_dots_elsewhere_are_no_key(text: str) -> None:
    assert parse_toml(text).keys() == {"a"}


def test_only_some_of_very_many_faults_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text("".join(f"k{number} = 1\n" for number in range(50_000)))
    with pytest.raises(TomlFileError) as refused:
        load_rules([tmp_path])
    first, *others = (refused.value, *refused.value.others)
    assert (first.line, first.field) == (1, "k0")
    assert len(others) == 30
    assert others[-1].words == "further faults follow, which are not listed"
    assert others[-1].line == 31


def test_a_long_key_is_shortened_in_its_message(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("k" * 900_000 + " = 1\n")
    with pytest.raises(TomlFileError) as refused:
        load_rules([tmp_path])
    assert len(str(refused.value)) < 1000
