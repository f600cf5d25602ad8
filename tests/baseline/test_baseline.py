"""This version reads what the version of the baseline stored, and answers as it did."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from tests.baseline.answers import (
    HERE,
    HOME,
    LIVE,
    SUITES,
    UNFINISHED,
    VERBS,
    answer,
    copy_home,
    difference,
    live_answers,
)

RUNS = sorted(path.name for path in (HOME / "state" / "runs").iterdir())


def kept(name: str) -> str:
    return (HERE / "answers" / name).read_text(encoding="utf-8")


def documents(text: str) -> list[Any]:
    """Exit code, then the JSON lines, or the rows of a CSV table as objects."""
    code, _, output = text.partition("\n")
    lines = output.splitlines()
    if any(line[:1] in "[{" for line in lines):
        return [int(code), *(json.loads(line) if line[:1] in "[{" else line for line in lines)]
    return [int(code), *csv.DictReader(lines)]


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_answers_as_in_the_baseline(tmp_path: Path, name: str) -> None:
    now = documents(answer(tmp_path / "home", VERBS[name]))
    assert difference(documents(kept(name)), now, values=name != "export") == ""  # its size depends on the time


def test_verbs_that_need_a_cluster_answer_in_the_form_of_the_baseline(tmp_path: Path) -> None:
    """The unfinished suite is continued from its file among them: a changed digest would be refused."""
    found = {
        name: difference(documents(kept(name)), documents(text), values=False)
        for name, text in live_answers(tmp_path / "home")
    }
    assert found == dict.fromkeys(LIVE, "")
    rows = json.loads((tmp_path / "home/state/suites" / UNFINISHED / "suite.json").read_text())["rows"]
    assert [row["run_id"] is None for row in rows] == [False] * 4


@pytest.mark.parametrize("run_id", RUNS)
def test_every_value_of_a_stored_run_is_read_and_written_again(tmp_path: Path, run_id: str) -> None:
    copy_home(tmp_path / "home")
    runs = Services(UserPaths(tmp_path / "home/config", tmp_path / "home/state")).runs
    runs.save(runs.load(run_id))
    before = json.loads((HOME / "state/runs" / run_id / "run.json").read_text())
    assert difference(before, json.loads((runs.folder(run_id) / "run.json").read_text())) == ""


@pytest.mark.parametrize("suite_id", SUITES)
def test_every_value_of_a_stored_suite_is_read_and_written_again(tmp_path: Path, suite_id: str) -> None:
    copy_home(tmp_path / "home")
    suites = Services(UserPaths(tmp_path / "home/config", tmp_path / "home/state")).suites
    suite = suites.load(suite_id)
    suites.save(suite)
    before, now = (
        json.loads((home / "state/suites" / suite_id / "suite.json").read_text()) for home in (HOME, tmp_path / "home")
    )
    assert difference(before, now) == ""


def test_the_journal_is_read(tmp_path: Path) -> None:
    copy_home(tmp_path / "home")
    lines = (HOME / "state/journal.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == list(
        Services(UserPaths(tmp_path / "home/config", tmp_path / "home/state")).journal.read()
    )


def test_a_difference_is_found_in_keys_order_types_and_words() -> None:
    before = {"a": 1, "reasons": ["b"], "c": {"d": "e"}}
    assert difference(before, {"a": 1, "reasons": ["x", "y"], "c": {"d": "e"}}) == ""
    for other in (
        {"a": 1.0, "reasons": ["b"], "c": {"d": "e"}},
        {"reasons": ["b"], "a": 1, "c": {"d": "e"}},
        {"a": 2, "reasons": ["b"], "c": {"d": "e"}},
        {"a": 1, "reasons": "b", "c": {"d": "e"}},
        {"a": 1, "reasons": ["b"], "c": {"d": "f"}},
        {"a": 1, "reasons": ["b"], "c": {}},
    ):
        assert difference(before, other)
