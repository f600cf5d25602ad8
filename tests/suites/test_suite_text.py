"""A suite that is written to a file and read again has the same runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from llmb_tui.plan.selection import Overrides, RunOptions
from llmb_tui.suites.suite import make_suite
from llmb_tui.suites.suite_file import file_name, read_suite, suite_toml
from tests.kit.runs import CATALOG, NEMOTRON

LONG = replace(NEMOTRON, steps=20)
OTHER = replace(
    NEMOTRON,
    scale=32,
    overrides=Overrides(tp=4, pp=1),
    time_limit="00:20:00",
    options=RunOptions(profile=True, profile_start=0, profile_stop=8),
)


def test_it_is_read_as_it_was(tmp_path: Path) -> None:
    runs = [(NEMOTRON, "direct")] * 3 + [(OTHER, "direct"), (LONG, "upstream"), (NEMOTRON, "direct")]
    suite = make_suite("two scales", "eos", runs, at_most=2, stop_after=1)  # type: ignore[arg-type]
    file = tmp_path / "suite.toml"
    file.write_text(suite_toml(suite))
    read = read_suite(file, CATALOG)
    assert read == suite
    assert file.read_text().count("repeats") == 1


def test_shuffled_rows_stay_in_their_order(tmp_path: Path) -> None:
    scales = [(replace(NEMOTRON, scale=scale), "direct") for scale in (16, 32, 64, 128)]
    suite = make_suite("mine", "eos", scales, shuffle=7, chain=True)  # type: ignore[arg-type]
    file = tmp_path / "suite.toml"
    file.write_text(suite_toml(suite))
    read = read_suite(file, CATALOG)
    assert (read.rows, read.chain) == (suite.rows, True)


def test_names_are_names_of_files() -> None:
    assert file_name("scaling nemotron4@25.04 15b") == "scaling-nemotron4@25.04-15b"
    assert file_name("../..") == file_name("") == "suite"
