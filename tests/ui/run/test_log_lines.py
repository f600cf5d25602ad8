"""Highlighted parts of log lines, and the filter of a growing file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.ui.widgets.log_filter import LogFilter
from llmb_tui.ui.widgets.log_view import ERROR, highlight_spans, pieces
from llmb_tui.watch.logindex import LogIndex

SPANS = st.lists(st.tuples(st.integers(-3, 60), st.integers(-3, 60), st.sampled_from(["value", "error", "match"])))


def marked(text: str) -> dict[str, list[str]]:
    parts: dict[str, list[str]] = {}
    for start, end, mark in highlight_spans(text):
        parts.setdefault(mark, []).append(text[start:end])
    return parts


def test_figures_of_both_log_formats_are_highlighted() -> None:
    nemo2 = (
        "Training epoch 0, iteration 30/49 | global_step: 30 | reduced_train_loss: 9.81 | train_step_timing in s: 2.01"
    )
    assert marked(nemo2) == {"value": ["30/49", "9.81", "2.01"]}
    hydra = "4%| | 2/50 [00:20<00:00, reduced_train_loss=12.40, global_step=1.000, train_step_timing in s=17.20]"
    assert marked(hydra) == {"value": ["12.40", "17.20"]}


def test_errors_are_highlighted_and_error_counters_are_not() -> None:
    for line in ("torch.OutOfMemoryError: x", "srun: error: n1: task 3: Killed", "Traceback (most recent call last):"):
        assert "error" in marked(line)
    for line in ("num_errors: 0", "error_rate=0.0", "errors corrected: 0"):
        assert not ERROR.search(line)


def test_warnings_are_highlighted() -> None:
    assert marked("[NeMo W 2025-04-02] UserWarning: x") == {"warning": ["[NeMo W", "UserWarning"]}


@given(st.text(max_size=60), SPANS)
def test_pieces_contain_the_whole_text(text: str, spans: list[tuple[int, int, str]]) -> None:
    parts = pieces(text, spans)  # type: ignore[arg-type]  # the marks are plain strings here
    assert "".join(part for part, _ in parts) == text


def test_the_last_mark_of_a_piece_is_the_last_span() -> None:
    assert pieces("abcdef", [(0, 4, "value"), (2, 6, "match")]) == [
        ("ab", ("value",)),
        ("cd", ("value", "match")),
        ("ef", ("match",)),
    ]


@given(st.lists(st.sampled_from(["keep one\n", "drop\n", "keep", " two\n", "dr", "op it\n"]), max_size=30))
def test_a_filter_of_a_growing_file_equals_the_filter_of_the_whole_file(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[str]
) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    index = LogIndex(path)
    chosen = LogFilter(index, re.compile("keep"))
    for chunk in chunks:
        with path.open("a") as file:
            file.write(chunk)
        index.refresh()
        chosen.refresh()
    assert chosen.complete
    expected = [line for line in "".join(chunks).removesuffix("\n").split("\n") if "keep" in line]
    assert chosen.read(0, 100) == expected
    index.close()


@given(st.lists(st.booleans(), max_size=50), st.integers(0, 60), st.sampled_from([1, -1]))
def test_a_search_in_a_filter_finds_the_nearest_line(
    tmp_path_factory: pytest.TempPathFactory, marks: list[bool], start: int, direction: Literal[1, -1]
) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_text("".join(f"{'drop' * 500}\nkeep {'mark' if mark else 'none'}\n" for mark in marks * 9))
    index = LogIndex(path)
    index.refresh()
    chosen = LogFilter(index, re.compile("keep"))
    while not chosen.complete:
        chosen.refresh()
    result = chosen.find(re.compile("mark"), start, direction)
    index.close()
    hits = [line for line, mark in enumerate(marks * 9) if mark]
    if direction == 1:
        last = max(len(marks) * 9 - 1, 0)
        assert result == min((line for line in hits if line >= min(start, last)), default=None)
    else:
        assert result == max((line for line in hits if line <= start), default=None)


def test_a_filter_starts_again_when_the_log_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("keep 1\ndrop\nkeep 2\n")
    index = LogIndex(path)
    chosen = LogFilter(index, re.compile("keep"))
    for _ in range(2):
        index.refresh()
        chosen.refresh()
    path.write_text("keep 3\n")
    index.refresh()
    chosen.refresh()
    assert chosen.read(0, 9) == ["keep 3"]
    index.close()
