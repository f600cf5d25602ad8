from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.store.journal import Journal


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "state" / "journal.jsonl")


def events(journal: Journal) -> list[str]:
    return [record["event"] for record in journal.read()]


def test_a_missing_journal_reads_as_empty(journal: Journal) -> None:
    assert journal.read() == []


def test_records_come_back_in_order_with_their_fields_and_time(journal: Journal) -> None:
    before = time.time()
    journal.append("intent", run_id="a1", job_ids=[])
    journal.append("submitted", run_id="a1", job_ids=["48123"])

    first, second = journal.read()

    assert before <= first.pop("at") <= second.pop("at") <= time.time()
    assert first == {"event": "intent", "run_id": "a1", "job_ids": []}
    assert second == {"event": "submitted", "run_id": "a1", "job_ids": ["48123"]}


def test_one_line_per_record_whatever_its_text(journal: Journal) -> None:
    journal.append("note", text="two\nlines\u2028three")
    assert journal.path.read_bytes().count(b"\n") == 1
    assert journal.read()[0]["text"] == "two\nlines\u2028three"


def test_a_last_line_cut_at_any_byte_is_ignored(journal: Journal) -> None:
    journal.append("one")
    journal.append("two", text="é")
    whole = journal.path.read_bytes()
    first = whole.index(b"\n") + 1
    for size in range(first, len(whole) - 1):
        journal.path.write_bytes(whole[:size])
        assert events(journal) == ["one"], size


def test_a_record_after_a_torn_line_is_not_lost(journal: Journal) -> None:
    journal.append("one")
    with journal.path.open("ab") as file:
        file.write(b'{"at": 1.0, "event": "to')
    journal.append("three")
    assert events(journal) == ["one", "three"]


@given(st.binary(max_size=200))
def test_any_damage_is_survived(tmp_path_factory: pytest.TempPathFactory, damage: bytes) -> None:
    journal = Journal(tmp_path_factory.mktemp("journal") / "journal.jsonl")
    journal.append("one")
    with journal.path.open("ab") as file:
        file.write(damage)
    journal.append("two")
    texts = events(journal)
    assert texts[0] == "one"
    assert texts[-1] == "two"
