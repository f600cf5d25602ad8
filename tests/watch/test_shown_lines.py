from __future__ import annotations

import unicodedata
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.watch.line_reader import LineReader, last_lines
from llmb_tui.watch.lines import SHOWN_CHARACTERS, LineSplitter, display_text, split_lines

# Bytes as a hostile or broken program would print them: escapes, carriage returns, torn UTF-8, bidi marks.
NASTY = st.lists(
    st.one_of(
        st.binary(max_size=8),
        st.sampled_from(
            [b"\x1b[31m", b"\x1b]52;c;aGk=\x07", b"\x1b", b"\r", b"\n", b"\r\n", b"\t", b"\xe2\x96", b"\x88", b"\x9b1m"]
        ),
        st.sampled_from(["█", "\u202e", "\u2028", "\x9b", "\x85", "é"]).map(str.encode),
    ),
    max_size=30,
).map(b"".join)


@given(NASTY)
def test_nothing_that_steers_a_terminal_is_shown(data: bytes) -> None:
    for line in split_lines(data):
        assert not [c for c in line if unicodedata.category(c) in ("Cc", "Zl", "Zp")]
        assert not set(line) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@given(NASTY, st.lists(st.integers(0, 200)))
def test_splitting_in_chunks_gives_the_same_lines(data: bytes, cuts: list[int]) -> None:
    splitter = LineSplitter()
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    lines = [line for a, b in pairwise(edges) for line in splitter.feed(data[a:b])]
    assert [*lines, *([splitter.rest] if splitter.rest else [])] == split_lines(data)


def test_a_progress_bar_is_one_line_with_its_last_frame() -> None:
    assert split_lines(b"start\n\r 1/50 [a]\r 2/50 [b]\nend\n") == ["start", " 2/50 [b]", "end"]


def test_windows_line_ends_are_no_frames() -> None:
    assert split_lines(b"one\r\ntwo\r\n") == ["one", "two"]


def test_escapes_tabs_and_bad_utf8_are_made_harmless() -> None:
    assert (
        display_text(b"\x1b[32mok\x1b[0m\tnext \xff \x1b]52;c;aGk=\x07end")
        == "ok    next \N{REPLACEMENT CHARACTER} end"
    )


def test_a_long_line_is_cut_with_a_mark() -> None:
    assert display_text(b"x" * SHOWN_CHARACTERS) == "x" * SHOWN_CHARACTERS
    assert display_text(b"x" * (SHOWN_CHARACTERS + 1)) == "x" * SHOWN_CHARACTERS + "…"
    assert display_text("é".encode() * 100_000) == "é" * SHOWN_CHARACTERS + "…"


def test_a_line_that_never_ends_costs_no_memory() -> None:
    splitter = LineSplitter()
    for _ in range(200):
        assert splitter.feed(b"x" * 10_000) == []
    assert len(splitter.rest) == SHOWN_CHARACTERS + 1
    for n in range(2000):
        splitter.feed(b"\r%d/2000 [" % n + b"#" * 1000 + b"]")
    assert splitter.rest.startswith("1999/2000")
    assert splitter.feed(b"\n")[0].startswith("1999/2000")


def test_a_long_frame_is_replaced_by_the_next() -> None:
    splitter = LineSplitter()
    splitter.feed(b"x" * 50_000 + b"\r")
    assert splitter.feed(b"done\n") == ["done"]


def test_last_lines_are_clean_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 100_000 + b"\na\n\x1b[31mb\n 1%\r100%\nlast")
    assert last_lines(path, 3) == ["b", "100%", "last"]
    assert last_lines(path, 9) == ["a", "b", "100%", "last"]
    assert last_lines(tmp_path / "none", 3) == []


def test_a_reader_returns_each_line_once_and_an_unfinished_line_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    reader = LineReader(path)
    assert list(reader.new()) == []
    for data, lines in ((b"a\nb", ["a"]), (b"c\n 1%\r2%", ["bc"]), (b"", [])):
        with path.open("ab") as file:
            file.write(data)
        assert list(reader.new()) == lines
    assert list(reader.last()) == ["2%"]
