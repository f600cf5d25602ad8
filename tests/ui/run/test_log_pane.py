"""The log pane on real files, driven by keys."""

from __future__ import annotations

import os
import re
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from textual.app import ComposeResult
from textual.events import Key
from textual.geometry import Offset
from textual.message import Message
from textual.pilot import Pilot
from textual.screen import Screen
from textual.selection import Selection
from textual.strip import Strip
from textual.widgets import Input

from llmb_tui.ui.themes import ThemedApp
from llmb_tui.ui.widgets.log_pane import LogPane
from llmb_tui.ui.widgets.log_view import LogLines, LogView
from llmb_tui.ui.widgets.scroll_bar import QuietScrollBar
from llmb_tui.watch.logindex import LogIndex
from tests.kit.pilot import until

HOSTILE = (
    "[rank0]: loss [1.2] [/x] [b]bold[/b]\n"
    "\x1b[31mred\x1b[0m and \x1b]52;c;ZXZpbA==\x07clipboard\n"
    "\x9b31mC1 \x07bell \x00nul\n"
    " 10%\r 50%\r100% done\n"
)


class PaneScreen(Screen[None]):
    def __init__(self, *files: Path) -> None:
        super().__init__()
        self._shown = [(path.name, path) for path in files]

    def compose(self) -> ComposeResult:
        yield LogPane(self._shown, "No log yet.")


class PaneApp(ThemedApp):
    def __init__(self, *files: Path) -> None:
        super().__init__()
        self._files = files

    def on_mount(self) -> None:
        self.push_screen(PaneScreen(*self._files))

    @property
    def pane(self) -> LogPane:
        return self.screen.query_one(LogPane)

    @property
    def view(self) -> LogView:
        return self.screen.query_one(LogView)

    def drawn(self) -> list[str]:
        """Text of the view, row by row."""
        return [self.view.render_line(y).text.rstrip() for y in range(self.view.size.height)]


def append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(text)


def numbered(first: int, count: int) -> str:
    return "".join(f"line {number}\n" for number in range(first, first + count))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    append(path, numbered(0, 100))
    return path


async def ready(pilot: Pilot[Any], app: PaneApp, count: int) -> None:
    """Wait until the view shows a source of `count` lines."""

    def is_shown() -> bool:
        view = app.view
        return view.source.lines == view.virtual_size.height == count and not view.is_stale

    await until(pilot, is_shown, f"{count} lines")
    await pilot.pause()


def subtitle(app: PaneApp) -> str:
    return str(app.pane.border_subtitle)


async def test_remote_text_is_shown_without_markup_and_control_characters(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(path, HOSTILE)
    app = PaneApp(path)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 4)
        assert app.drawn()[:4] == [
            "[rank0]: loss [1.2] [/x] [b]bold[/b]",
            "red and clipboard",
            "\N{REPLACEMENT CHARACTER}31mC1 \N{REPLACEMENT CHARACTER}bell \N{REPLACEMENT CHARACTER}nul",
            "100% done",
        ]


async def test_the_pane_follows_the_end_of_a_growing_file(log: Path) -> None:
    app = PaneApp(log)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 100)
        assert app.drawn()[-1] == "line 99"
        append(log, numbered(100, 5000))
        await ready(pilot, app, 5100)
        assert app.drawn()[-1] == "line 5099"
        assert subtitle(app) == "5,100 lines · following"


async def test_space_pauses_the_log_and_new_lines_are_counted(log: Path) -> None:
    app = PaneApp(log)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 100)
        await pilot.press("space")
        paused = app.drawn()
        append(log, numbered(100, 1204))
        await ready(pilot, app, 1304)
        assert app.drawn() == paused
        assert "paused · 1,204 new lines" in subtitle(app)
        await pilot.press("space")
        await pilot.pause()
        assert app.drawn()[-1] == "line 1303"
        assert "following" in subtitle(app)


async def test_scrolling_up_pauses_and_going_to_the_end_follows_again(log: Path) -> None:
    app = PaneApp(log)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 100)
        await pilot.press("pageup")
        await until(pilot, lambda: not app.view.following, "the pause")
        paused = app.drawn()
        append(log, numbered(100, 7))
        await ready(pilot, app, 107)
        assert app.drawn() == paused
        assert "7 new lines" in subtitle(app)
        await pilot.press("G")
        await pilot.pause()
        assert app.drawn()[-1] == "line 106"


async def test_scrolling_down_to_the_end_follows_again(log: Path) -> None:
    app = PaneApp(log)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 100)
        await pilot.press("up", "up", "up")
        await until(pilot, lambda: not app.view.following, "the pause")
        await pilot.press("down", "down", "down")
        await until(pilot, lambda: app.view.following, "following")


async def test_a_file_that_is_created_later_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "log"
    app = PaneApp(path)
    async with app.run_test(size=(60, 12)) as pilot:
        await pilot.pause()
        assert app.drawn()[0] == "No log yet."
        append(path, "first\n")
        await ready(pilot, app, 1)
        assert app.drawn()[0] == "first"


async def test_an_unreadable_log_shows_the_reason(tmp_path: Path) -> None:
    app = PaneApp(tmp_path)  # a directory
    async with app.run_test(size=(60, 12)) as pilot:
        await until(pilot, lambda: "cannot read the log" in subtitle(app), "the reason")


async def search(pilot: Pilot[Any], key: str, pattern: str) -> None:
    await pilot.press(key, *pattern, "enter")


async def test_keys_typed_in_one_burst_go_to_the_pattern(log: Path) -> None:
    app = PaneApp(log)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 100)
        for key, character in (("slash", "/"), ("n", "n"), ("e", "e"), ("space", " "), ("enter", "\r")):
            app.post_message(Key(key, character))
        await until(pilot, lambda: app.view.search_pattern is not None, "the pattern")
        assert app.view.search_pattern == re.compile("ne ", re.IGNORECASE)


async def test_n_goes_to_the_next_match_and_capital_n_to_the_previous_match(log: Path) -> None:
    app = PaneApp(log)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 100)
        await pilot.press("g")
        await search(pilot, "slash", "7$")
        for key, line in ((None, 7), ("n", 17), ("n", 27), ("N", 17)):
            if key:
                await pilot.press(key)
            await until(pilot, lambda line=line: app.view.current_line == line, f"line {line}")
        assert not app.view.following
        assert "line 17" in app.drawn()


async def test_a_search_at_the_end_finds_the_last_match_above(log: Path) -> None:
    app = PaneApp(log)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 100)
        await search(pilot, "slash", "LINE 3")
        await pilot.pause()
        assert app.view.current_line is None  # a pattern with capitals respects case
        await search(pilot, "slash", "line 3")
        await until(pilot, lambda: app.view.current_line == 39, "line 39")


INVALID = "invalid pattern"


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", INVALID),
        ("a{99999999999}", INVALID),
        ("(" * 1200 + "a" + ")" * 1200, INVALID),
        ("[[:alpha:]]", "ambiguous pattern"),
    ],
    ids=["unclosed", "too many repeats", "nested too deeply", "with a warning of Python"],
)
async def test_an_invalid_pattern_is_rejected_and_escape_closes_only_the_search_line(
    log: Path, pattern: str, why: str
) -> None:
    app = PaneApp(log)
    async with app.run_test(size=(80, 12)) as pilot:
        await ready(pilot, app, 100)
        await pilot.press("slash")
        app.screen.query_one("#log-pattern", Input).value = pattern
        await pilot.press("enter")
        assert why in str(app.screen.query_one("#log-refusal").render())
        await pilot.press("escape")
        assert not app.screen.query_one("#log-bar").display
        assert app.screen.query_one(LogView).has_focus


async def test_a_filter_shows_and_follows_only_matching_lines(log: Path) -> None:
    app = PaneApp(log)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 100)
        await search(pilot, "f", "5$")
        await ready(pilot, app, 10)
        assert app.drawn()[-1] == "line 95"
        assert "10 of 100 lines match 5$" in subtitle(app)
        append(log, numbered(100, 10))
        await ready(pilot, app, 11)
        assert app.drawn()[-1] == "line 105"


async def test_removing_the_filter_keeps_the_line_in_view(log: Path) -> None:
    app = PaneApp(log)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 100)
        await search(pilot, "f", "50")
        await ready(pilot, app, 1)
        await pilot.press("space", "f", "backspace", "backspace", "enter")
        await ready(pilot, app, 100)
        assert "line 50" in app.drawn()
        assert "line 49" in app.drawn()


async def test_e_goes_to_the_first_error_and_then_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(
        path, numbered(0, 50) + "ValueError: cause\n" + numbered(51, 50) + "srun: error: task 3\n" + numbered(102, 9)
    )
    app = PaneApp(path)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 111)
        for key, line in (("e", 50), ("e", 101), ("E", 50)):
            await pilot.press(key)
            await until(pilot, lambda line=line: app.view.current_line == line, f"line {line}")
        assert "ValueError: cause" in app.drawn()


async def test_o_shows_the_next_log_and_a_newer_log_does_not_replace_it(tmp_path: Path) -> None:
    first, script, second = tmp_path / "log", tmp_path / "script", tmp_path / "log.1"
    append(first, "from the first\n")
    append(script, "#!/bin/bash\n")
    app = PaneApp(first, script)
    async with app.run_test(size=(60, 12)) as pilot:
        await until(pilot, lambda: app.drawn()[0] == "from the first", "the first log")
        await pilot.press("o")
        await until(pilot, lambda: app.drawn()[0] == "#!/bin/bash", "the script")
        append(second, "from the second\n")
        app.pane.show_newest(("log.1", second))
        await pilot.pause()
        assert app.drawn()[0] == "#!/bin/bash"  # the shown log stays
        await until(pilot, lambda: "log.1" in str(app.pane.border_title), "its name")
        await pilot.press("o")
        await until(pilot, lambda: app.drawn()[0] == "from the second", "the newest log")


async def test_a_newer_log_replaces_the_shown_newest_log(tmp_path: Path) -> None:
    first, second = tmp_path / "log", tmp_path / "log.1"
    append(first, "from the first\n")
    append(second, "from the second\n")
    app = PaneApp(first)
    async with app.run_test(size=(60, 12)) as pilot:
        await until(pilot, lambda: app.drawn()[0] == "from the first", "the first log")
        app.pane.show_newest(("log.1", second))
        await until(pilot, lambda: app.drawn()[0] == "from the second", "the newer log")


async def test_left_and_right_show_the_rest_of_a_long_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(path, "a" * 100 + "the end\n")
    app = PaneApp(path)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 1)
        assert app.drawn()[0].endswith("a→")
        await pilot.press(*["right"] * 9)
        assert app.drawn()[0].endswith("the end")
        await pilot.press(*["left"] * 9)
        assert app.drawn()[0].endswith("a→")


async def test_wide_characters_do_not_break_the_row(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(path, "学習" * 100 + "\n")
    app = PaneApp(path)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 1)
        for _ in range(3):
            assert app.view.render_line(0).cell_length == app.view.size.width
            await pilot.press("right")


async def test_y_copies_whole_visible_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(path, "b" * 200 + "\nsecond\n")
    app = PaneApp(path)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 2)
        await pilot.press("y")
        assert app.clipboard == "b" * 200 + "\nsecond"


async def test_a_selection_is_read_from_the_log(log: Path) -> None:
    app = PaneApp(log)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 100)
        selection = Selection(Offset(5, 97), Offset(4, 99))
        assert app.view.get_selection(selection) == ("97\nline 98\nline", "\n")
        assert app.view.get_selection(Selection(Offset(0, 0), Offset(4, 1))) == ("line 0\nline", "\n")
        app.screen.selections = {app.view: selection}
        await pilot.press("y")
        assert app.clipboard.rstrip("\n") == "97\nline 98\nline"


async def test_a_selection_in_one_log_is_not_copied_from_another_log(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "other"
    append(path, "a\nb\n")
    app = PaneApp(log, path)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 100)
        await until(pilot, lambda: app.pane.check_action("next_log", ()), "the other log")
        app.screen.selections = {app.view: Selection(Offset(0, 0), Offset(1, 0))}
        await pilot.press("o")
        await ready(pilot, app, 2)
        await pilot.press("y")
        assert app.clipboard == "a\nb"


@pytest.mark.parametrize(("text", "at"), [("学习" * 40, 8), ("x" * 80, 16), ("e\N{COMBINING ACUTE ACCENT}" * 80, 32)])
async def test_the_character_under_the_mouse_is_selected_after_a_sideways_scroll(
    tmp_path: Path, text: str, at: int
) -> None:
    path = tmp_path / "log"
    append(path, f"{text}\n")
    app = PaneApp(path)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 1)
        await pilot.press("right")
        await pilot.pause()
        first, *_ = app.view.render_line(0)
        assert first.style is not None
        assert first.style.meta["offset"] == (at, 0)


LONG = 90_000
"""Number of lines of 100 characters in a log that is so long that its end is shown first."""


@pytest.fixture
def long_log(tmp_path: Path) -> Path:
    path = tmp_path / "long"
    append(path, "".join(f"line {number:<94}\n" for number in range(LONG)))
    return path


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """An event: until it is set, only the lines at the end of a long log are counted."""
    may_count = threading.Event()
    refresh = LogIndex.refresh

    def waiting(index: LogIndex, at_most: int = sys.maxsize) -> bool:
        if index.begin == 0:
            may_count.wait()
        return refresh(index, at_most)

    monkeypatch.setattr(LogIndex, "refresh", waiting)
    return may_count


async def test_the_end_of_a_long_log_is_shown_before_the_rest_is_read(
    long_log: Path, counting: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, pread = [], os.pread

    def counted(fd: int, count: int, offset: int) -> bytes:
        sizes.append(count)
        return pread(fd, count, offset)

    monkeypatch.setattr(os, "pread", counted)
    app = PaneApp(long_log)
    async with app.run_test(size=(120, 12)) as pilot:
        await until(pilot, lambda: app.drawn()[-1] == f"line {LONG - 1}", "the end")
        assert sum(sizes) < long_log.stat().st_size / 3
        counting.set()


async def test_the_view_keeps_its_lines_when_a_long_log_is_counted(long_log: Path, counting: threading.Event) -> None:
    app = PaneApp(long_log)
    async with app.run_test(size=(120, 12)) as pilot:
        await until(pilot, lambda: app.drawn()[-1] == f"line {LONG - 1}", "the end")
        assert subtitle(app) == "counting lines, 0 % · following"
        await pilot.press("space", "up", "up")
        append(long_log, numbered(LONG, 7))
        paused = app.drawn()
        assert paused[-1] == f"line {LONG - 3}"
        counting.set()
        await ready(pilot, app, LONG + 7)
        assert app.drawn() == paused
        assert subtitle(app).startswith(f"{LONG + 7:,} lines · ")
        assert "paused · 7 new lines" in subtitle(app)
        await pilot.press("y", "down")
        assert app.drawn()[-1] == f"line {LONG - 2}"
        await pilot.press("G")
        await pilot.pause()
        assert app.drawn()[-1] == f"line {LONG + 6}"


@pytest.mark.parametrize(
    ("keys", "line"),
    [(["g"], 0), (["slash", *"line 5 ", "enter"], 5), (["f", *"line 7 ", "enter"], 7), (["g", "G"], LONG - 1)],
)
async def test_keys_act_on_a_long_log_once_it_is_counted(
    long_log: Path, counting: threading.Event, keys: list[str], line: int
) -> None:
    app = PaneApp(long_log)
    async with app.run_test(size=(120, 12)) as pilot:
        await until(pilot, lambda: app.drawn()[-1] == f"line {LONG - 1}", "the end")
        await pilot.press(*keys)
        counting.set()
        await until(pilot, lambda: f"line {line}" in app.drawn(), f"line {line}")


class Counted:
    """Lines that count how often a view asks for their number, which it does once for each repaint."""

    def __init__(self, source: LogLines) -> None:
        self._source = source
        self.asked = 0

    @property
    def lines(self) -> int:
        self.asked += 1
        return self._source.lines

    def read(self, first: int, count: int) -> list[str]:
        return self._source.read(first, count)

    def find(self, pattern: re.Pattern[str], start: int, direction: Literal[1, -1] = 1) -> int | None:
        return self._source.find(pattern, start, direction)


async def test_many_announcements_of_growth_cause_few_repaints(log: Path) -> None:
    app = PaneApp(log)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 100)
        app.view.source = counted = Counted(app.view.source)
        for _ in range(500):
            app.view.show_appended()
        assert counted.asked <= 1


class Growing:
    """A source with a variable number of lines."""

    def __init__(self, lines: int) -> None:
        self.lines = lines

    def read(self, first: int, count: int) -> list[str]:
        return [f"line {number}" for number in range(first, min(first + count, self.lines))]

    def find(self, _pattern: re.Pattern[str], _start: int, _direction: Literal[1, -1] = 1) -> int | None:
        return None


async def test_frames_without_a_common_line_are_less_frequent(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = PaneApp(log)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 100)
        view, pauses = app.view, list[float]()
        source = Growing(1000)
        view.show(source)
        monkeypatch.setattr(view, "set_timer", lambda delay, _callback: pauses.append(delay))
        view.mark_stale()
        view.flush_pending()
        pauses.clear()
        for more in (view.size.height - 1, view.size.height, 1):
            source.lines += more
            view.show_appended()
        some, all_of_them, one = pauses
        assert some == one < all_of_them <= 0.5


async def test_lines_that_are_not_painted_before_a_pause_count_as_new(log: Path) -> None:
    app = PaneApp(log)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 100)
        source = Growing(1000)
        app.view.show(source)
        source.lines += 500
        await pilot.press("space")
        assert app.drawn()[-1] == "line 999"
        assert app.view.new_lines == 500


async def test_lines_for_a_scheduled_frame_are_not_announced(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    announced = 0
    post = LogPane.post_message

    def counted(pane: LogPane, message: Message) -> bool:
        nonlocal announced
        announced += isinstance(message, LogPane.LinesAppended)
        return post(pane, message)

    app = PaneApp(log)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 100)
        await until(pilot, lambda: app.view._frame is None, "the frames are over")
        frame = SimpleNamespace(stop=lambda: None)  # runs only when the test calls `_next_frame`
        monkeypatch.setattr(app.view, "set_timer", lambda *_: frame)
        app.view.show_appended()
        monkeypatch.setattr(LogPane, "post_message", counted)
        append(log, numbered(100, 20))
        app.pane.show_newest((log.name, log))
        await until(pilot, lambda: app.pane._index.lines == 120, "the lines are read")
        app.view._next_frame()
        assert app.drawn()[-1] == "line 119"
        assert not announced
        app.view._next_frame()
        append(log, numbered(120, 1))
        app.pane.show_newest((log.name, log))
        await until(pilot, lambda: announced, "without a scheduled frame, lines are announced")


async def test_the_end_of_a_flood_does_not_wait_for_the_frame(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = PaneApp(log)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 100)
        await until(pilot, lambda: app.view._frame is None, "the frames are over")
        frame = SimpleNamespace(stop=lambda: None)  # a frame that never runs
        monkeypatch.setattr(app.view, "set_timer", lambda *_: frame)
        app.view.show_appended()
        append(log, numbered(100, 20))
        app.pane.show_newest((log.name, log))
        await until(pilot, lambda: app.drawn()[-1] == "line 119", "all lines are shown")


async def test_lines_and_title_are_painted_together(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    painted = 0
    refresh = Screen._compositor_refresh

    def counted(screen: Screen[Any]) -> None:
        nonlocal painted
        painted += 1
        refresh(screen)

    app = PaneApp(log)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 100)
        await until(pilot, lambda: subtitle(app).startswith("100 lines"), "the number")
        await pilot.pause()
        monkeypatch.setattr(Screen, "_compositor_refresh", counted)
        for count in (120, 140, 160):
            append(log, numbered(count - 20, 20))
            app.pane.show_newest((log.name, log))
            await until(pilot, lambda count=count: subtitle(app).startswith(f"{count} lines"), "the number")
            await pilot.pause()
    assert 0 < painted <= 3


async def test_the_scrollbar_is_repainted_only_if_its_thumb_changes(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    painted = 0
    render = QuietScrollBar.render

    def counted(bar: QuietScrollBar) -> object:
        nonlocal painted
        painted += 1
        return render(bar)

    monkeypatch.setattr(QuietScrollBar, "render", counted)
    append(log, numbered(100, 900))
    app = PaneApp(log)
    async with app.run_test(size=(60, 12)) as pilot:
        await ready(pilot, app, 1000)
        painted = 0
        for count in (1020, 1040):
            append(log, numbered(count - 20, 20))
            await ready(pilot, app, count)
        assert painted == 0, "the thumb has one cell, at the end"
        for keys in ("pageup", "g", "j j", "G"):
            await pilot.press(*keys.split())
            await pilot.pause()
            as_it_stands = cells(app.view.vertical_scrollbar)
            app.view.vertical_scrollbar.refresh()
            assert as_it_stands == cells(app.view.vertical_scrollbar), keys
        assert painted > 0


def cells(bar: QuietScrollBar) -> list[Strip]:
    return bar.render_lines(bar.size.region)
