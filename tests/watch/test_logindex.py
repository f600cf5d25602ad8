from __future__ import annotations

import random
import re
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmb_tui.watch.lines import SHOWN_CHARACTERS, split_lines
from llmb_tui.watch.logindex import LogIndex

BLOCK = 1 << 16


def index_of(path: Path, data: bytes) -> LogIndex:
    path.write_bytes(data)
    index = LogIndex(path)
    index.refresh()
    return index


def test_a_file_that_is_not_there_yet(tmp_path: Path) -> None:
    index = LogIndex(tmp_path / "log")
    index.refresh()
    assert (index.lines, index.read(0, 10), index.find(re.compile("x"), 0)) == (0, [], None)
    (tmp_path / "log").write_bytes(b"one\n")
    index.refresh()
    assert index.read(0, 10) == ["one"]


def test_appended_lines_are_shown_at_the_next_refresh(tmp_path: Path) -> None:
    index = index_of(tmp_path / "log", b"one\ntw")
    assert (index.lines, index.read(0, 9)) == (2, ["one", "tw"])
    with (tmp_path / "log").open("ab") as file:
        file.write(b"o\nthree\n")
    assert index.lines == 2
    index.refresh()
    assert (index.lines, index.read(1, 9)) == (3, ["two", "three"])


def test_a_file_that_shrank_is_read_again(tmp_path: Path) -> None:
    index = index_of(tmp_path / "log", b"one\ntwo\nthree\n")
    (tmp_path / "log").write_bytes(b"new\n")
    index.refresh()
    assert (index.lines, index.read(0, 9)) == (1, ["new"])


@pytest.mark.parametrize("first", [-5, 0, 3, 7, 8, 100])
def test_lines_beyond_the_ends_are_omitted(tmp_path: Path, first: int) -> None:
    index = index_of(tmp_path / "log", b"".join(b"%d\n" % n for n in range(8)))
    expected = [str(n) for n in range(8)][max(0, first) : first + 3 if first + 3 > 0 else 0]
    assert index.read(first, 3) == expected


@settings(max_examples=60)
@given(st.data())
def test_every_window_equals_the_whole_split(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    chance = random.Random(data.draw(st.integers(0, 1000)))
    lengths = data.draw(st.lists(st.sampled_from([0, 1, 80, 4000, BLOCK - 1, BLOCK, 3 * BLOCK]), max_size=40))
    log = b"".join(bytes(chance.choices(b"abc \tx", k=length)) + b"\n" for length in lengths)
    log += data.draw(st.sampled_from([b"", b"tail"]))
    path = tmp_path_factory.mktemp("log") / "log"
    cut = data.draw(st.integers(0, len(log)))
    index = index_of(path, log[:cut])
    with path.open("ab") as file:
        file.write(log[cut:])
    index.refresh()
    whole = split_lines(log)
    assert index.lines == len(whole)
    first, count = data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, 50))
    assert index.read(first, count) == whole[first : first + count]
    index.close()


@settings(max_examples=60)
@given(st.lists(st.sampled_from([0, 80, BLOCK - 1, BLOCK, 3 * BLOCK]), min_size=1, max_size=40), st.data())
def test_an_index_of_the_end_has_the_same_lines_under_shifted_numbers(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], data: st.DataObject
) -> None:
    lines = [b"%d" % number + b"x" * length + b"\n" for number, length in enumerate(lengths)]
    path = tmp_path_factory.mktemp("log") / "log"
    index = index_of(path, b"".join(lines))
    first = data.draw(st.integers(0, len(lines) - 1))
    end = LogIndex(path, sum(map(len, lines[:first])))
    end.refresh()
    assert (index.lines_before(end), end.lines) == (first, len(lines) - first)
    assert end.read(0, 3) == index.read(first, 3)
    for log_index in (index, end):
        log_index.close()


def test_a_long_log_has_a_tail(tmp_path: Path) -> None:
    line = b"x" * 99 + b"\n"
    assert index_of(tmp_path / "short", line).tail() is None
    assert index_of(tmp_path / "one line", line[:-1] * 100_000 + b"\n").tail() is None
    path = tmp_path / "long"
    path.write_bytes(line * 100_000)
    index = LogIndex(path)
    tail = index.tail()
    assert tail is not None
    tail.refresh()
    while index.refresh(1 << 20):
        assert index.size % (1 << 20) == 0
    assert index.lines == 100_000 == index.lines_before(tail) + tail.lines
    path.write_bytes(line)
    index.refresh()
    tail.refresh()
    assert (index.lines, index.lines_before(tail), tail.lines) == (1, 0, 0)


def test_bars_escapes_and_long_lines_are_shown_as_elsewhere(tmp_path: Path) -> None:
    bar = b"".join(b"\r%d/50 [\xe2\x96\x88]" % n for n in range(1, 51))
    index = index_of(tmp_path / "log", b"\x1b[31mred\x1b[0m\tx\n" + bar + b"\n" + b"y" * 10_000 + b"\nlast")
    assert index.read(0, 4) == ["red    x", "50/50 [█]", "y" * SHOWN_CHARACTERS + "…", "last"]


def test_a_bar_of_many_megabytes_shows_its_last_frame(tmp_path: Path) -> None:
    bar = b"".join(b"\r%d/99999 [" % n + b"=" * 90 + b"]" for n in range(30_000))
    index = index_of(tmp_path / "log", b"before\n" + bar + b"\nafter\n")
    assert index.lines == 3
    assert index.read(0, 3)[1].startswith("29999/99999")
    assert index.read(2, 1) == ["after"]


def test_a_line_of_many_megabytes_shows_its_beginning(tmp_path: Path) -> None:
    index = index_of(tmp_path / "log", b"before\nBEGIN" + b"z" * 3_000_000 + b"\nafter\n")
    assert index.read(0, 3) == ["before", "BEGIN" + "z" * (SHOWN_CHARACTERS - 5) + "…", "after"]


def test_find_forward_and_backward(tmp_path: Path) -> None:
    lines = [f"line {n}" + (" needle" if n % 5000 == 17 else "") for n in range(40_000)]
    index = index_of(tmp_path / "log", "\n".join(lines).encode())
    needle = re.compile("NEEDLE$", re.IGNORECASE)
    assert index.find(needle, 0) == 17
    assert index.find(needle, 17) == 17
    assert index.find(needle, 18) == 5017
    assert index.find(needle, 40_000) is None
    assert index.find(needle, 39_999, -1) == 35_017
    assert index.find(needle, 35_016, -1) == 30_017
    assert index.find(needle, 16, -1) is None
    assert index.find(re.compile("^line 39999$"), 0) == 39_999


def test_find_searches_the_shown_text(tmp_path: Path) -> None:
    index = index_of(tmp_path / "log", b"hidden frame\rshown\na\x1b[31mbc\x1b[0m\nx\ty\n")
    assert index.find(re.compile("hidden"), 0) is None
    assert index.find(re.compile("shown"), 0) == 0
    assert index.find(re.compile("abc"), 0) == 1
    assert index.find(re.compile("x    y"), 0) == 2


_GREEDY = [r"foo\W*+$", r"(?>foo\W*)$"] if sys.version_info >= (3, 11) else []


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            r"\Afoo",
            r"foo\Z",
            r"^foo$",
            r"(?<!\s)foo",
            r"foo(?!\s*bar)",
            r"foo(?!\W*bar)",
            r"(?<![^ ])foo",
            r"(?-m:^)foo",
        ),
        *("\ufffd", r"x\Wy", r"q\Wy", r"z\Wy", r"n[^n]$", r"one\s{4}bar", r"(?i)FOO\b", *_GREEDY),
    ],
)
def test_find_matches_within_one_line(tmp_path: Path, pattern: str) -> None:
    compiled, hits = re.compile(pattern), 0
    for number, line in enumerate(("foo", "x\by", "q\xady", "z\u3164y", "n" * 5000, "one\tbar")):
        index = index_of(tmp_path / f"log{number}", f"\n{line}\n bar\n".encode())
        hit = next((at for at, text in enumerate(index.read(0, 3)) if compiled.search(text)), None)
        assert index.find(compiled, 0) == hit
        hits += hit is not None
    assert hits, "the pattern finds one of these lines"


@settings(max_examples=60)
@given(st.lists(st.text("ab c", max_size=6), max_size=60), st.integers(0, 70), st.sampled_from([1, -1]), st.booleans())
def test_find_agrees_with_a_plain_search(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], start: int, direction: int, wide: bool
) -> None:
    padding = "." * (BLOCK // 8) if wide else ""
    lines = [line + padding for line in lines]
    index = index_of(tmp_path_factory.mktemp("log") / "log", "".join(line + "\n" for line in lines).encode())
    pattern = re.compile("^a.*c")
    order = range(start, len(lines)) if direction == 1 else range(min(start, len(lines) - 1), -1, -1)
    expected = next((n for n in order if pattern.search(split_lines(lines[n].encode() or b"\n")[0])), None)
    assert index.find(pattern, start, 1 if direction == 1 else -1) == expected
    index.close()


def test_memory_does_not_follow_the_size_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        for _ in range(100):
            file.write(b"x" * 99 + b"\n" * 1 + (b"y" * 99 + b"\n") * 9_999)
    tracemalloc.start()
    index = LogIndex(path)
    index.refresh()
    assert index.lines == 1_000_000
    assert index.read(500_000, 3) == ["x" * 99, "y" * 99, "y" * 99]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    index.close()
    assert peak < 4_000_000
