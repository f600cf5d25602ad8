"""Notes and tags of runs: stored in their folders, readable by every version, and safe to display."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from llmb_tui.errors import LlmbError
from llmb_tui.launch.note import Note
from llmb_tui.launch.notes import LONGEST_NOTE, Notes
from llmb_tui.launch.runs import Runs
from llmb_tui.store.paths import UserPaths
from tests.kit import verbs
from tests.kit.runs import make_run


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    runs = Runs(UserPaths(tmp_path / "config", tmp_path / "state"))
    for run_id in ("one", "two"):
        runs.save(make_run(run_id, job_state="COMPLETED"))
    return runs


@pytest.fixture
def notes(runs: Runs) -> Notes:
    return Notes(runs)


def test_a_note_is_kept_in_a_private_file_of_the_run(runs: Runs, notes: Notes) -> None:
    assert (notes.of("one"), notes.all()) == (Note(), {})
    note = notes.change("one", "after the\n new  driver", add=("Driver-570", "#baseline"))
    assert note == notes.of("one") == Note("after the new driver", ("driver-570", "baseline"))
    assert notes.all() == {"one": note}
    assert os.stat(runs.folder("one") / "note.json").st_mode & 0o777 == 0o600
    assert notes.change("one", remove=("DRIVER-570",)) == Note("after the new driver", ("baseline",))
    assert notes.change("one", "", remove=("#baseline",)) == Note()
    assert notes.all() == {}


def test_saying_the_same_again_writes_nothing(runs: Runs, notes: Notes) -> None:
    notes.change("one", "said", add=("t",))
    before = os.stat(runs.folder("one") / "note.json").st_ino
    notes.change("one", "said", add=("T",), remove=("other",))
    assert os.stat(runs.folder("one") / "note.json").st_ino == before
    notes.change("two", "")
    assert not (runs.folder("two") / "note.json").exists()


def test_keys_of_a_newer_version_are_kept(runs: Runs, notes: Notes) -> None:
    file = runs.folder("one") / "note.json"
    file.write_text(json.dumps({"note": "old", "stars": 5}))
    assert notes.change("one", add=("kept",)) == Note("old", ("kept",))
    assert json.loads(file.read_text()) == {"note": "old", "stars": 5, "tags": ["kept"]}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"note": 1, "tags": {}}', "\xff", "x" * 70000])
def test_a_damaged_file_is_read_as_no_note(runs: Runs, notes: Notes, text: str) -> None:
    (runs.folder("one") / "note.json").write_bytes(text.encode("latin-1"))
    assert (notes.of("one"), notes.all()) == (Note(), {})


def test_a_damaged_file_is_not_written_over(runs: Runs, notes: Notes) -> None:
    file = runs.folder("one") / "note.json"
    file.write_text("{")
    with pytest.raises(LlmbError, match="holds no note"):
        notes.change("one", "new")
    assert file.read_text() == "{"


def test_a_link_is_not_read_as_a_note(runs: Runs, notes: Notes, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text('{"note": "secret"}')
    (runs.folder("one") / "note.json").symlink_to(elsewhere)
    assert notes.of("one") == Note()
    with pytest.raises(LlmbError, match="symbolic link"):
        notes.change("one", "new")
    assert elsewhere.read_text() == '{"note": "secret"}'


def test_a_manually_edited_note_is_cleaned_and_bounded(runs: Runs, notes: Notes) -> None:
    wild = {"note": "\x1b]52;c;eA==\x07a\nb" + "c" * 2000, "tags": ["\x1b[31mred", "A", "a b", 3, *map(str, range(40))]}
    (runs.folder("one") / "note.json").write_text(json.dumps(wild))
    note = notes.of("one")
    assert note.text.startswith("a bc")
    assert len(note.text) <= LONGEST_NOTE
    assert note.tags[:2] == ("a", "0")
    assert len(note.tags) == 16


@pytest.mark.parametrize(
    ("text", "tags", "words"),
    [
        ("x" * (LONGEST_NOTE + 1), (), "at most 1,000"),
        (None, ("two words",), "cannot be a tag"),
        (None, ("\x1b[31m",), "cannot be a tag"),
        (None, tuple(map(str, range(17))), "at most 16 tags"),
    ],
)
def test_invalid_notes_are_refused(notes: Notes, text: str | None, tags: tuple[str, ...], words: str) -> None:
    with pytest.raises(LlmbError, match=words) as refused:
        notes.change("one", text, tags)
    assert refused.value.exit_code == 1
    assert notes.of("one") == Note()


def test_an_unknown_run_gets_no_note(notes: Notes) -> None:
    with pytest.raises(LlmbError, match="There is no run three") as refused:
        notes.change("three", "said")
    assert refused.value.exit_code == 1


@pytest.mark.usefixtures("runs")
def test_the_verb_prints_and_changes_it_and_jobs_shows_it(tmp_path: Path) -> None:
    def answer(*words: str) -> str:
        result = verbs.run(words, verbs.environment(tmp_path))
        assert (result.returncode, result.stderr) == (0, "")
        return result.stdout

    assert "note" not in answer("jobs").splitlines()[0]
    assert answer("note", "one") == ""
    assert answer("note", "one", "slow node swapped", "--tag", "after", "--tag", "b") == "#after #b slow node swapped\n"
    assert json.loads(answer("note", "one", "--untag", "b", "--json")) == {
        "id": "one",
        "note": "slow node swapped",
        "tags": ["after"],
    }
    listed = {entry["id"]: (entry["note"], entry["tags"]) for entry in json.loads(answer("jobs", "--json"))}
    assert listed == {"one": ("slow node swapped", ["after"]), "two": ("", [])}
    heading, *rows = answer("jobs").splitlines()
    assert "note" in heading.split()
    assert ["#after slow node swapped" in row for row in rows] == [row.startswith("one") for row in rows]
    refused = verbs.run(("note", "nothing"), verbs.environment(tmp_path))
    assert (refused.returncode, "There is no run nothing" in refused.stderr) == (1, True)
