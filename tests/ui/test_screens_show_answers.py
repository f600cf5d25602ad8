"""A screen shows the whole answer that `answers/` makes, and a list every heading and cell of its columns.

The words of an answer are tested in `tests/answers`, so the test of a screen need not repeat them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.screen import Screen

from llmb_tui.analysis.compare import compare
from llmb_tui.analysis.groups import grouped
from llmb_tui.analysis.scaling import scaling_curves
from llmb_tui.analysis.slow_nodes import slow_nodes
from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Listing, Picture, Section
from llmb_tui.answers.comparison import side_by_side
from llmb_tui.answers.nodes import nodes
from llmb_tui.answers.run_columns import RunTable, run_columns
from llmb_tui.answers.scaling import scaling
from llmb_tui.answers.writers.rows import rows
from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.screens.jobs import JobsScreen
from llmb_tui.ui.screens.report import ReportScreen
from llmb_tui.ui.screens.result_view import ResultView
from llmb_tui.ui.screens.suite_watch import SuiteWatchScreen
from llmb_tui.ui.screens.table_screen import TableScreen
from llmb_tui.ui.widgets.texts import FixedLines
from tests.baseline.answers import OTHER_LAYOUT, PLAIN, SLOW, SUITE, copy_home
from tests.kit.pilot import on_screen, until
from tests.ui.run.conftest import Host

NOW = 1_795_757_000.0
WIDE = 400
"""Cells at which no line of an answer is wrapped and no table is folded."""
_LONGEST_WORD = 30
_FIRST_HEADING = "row"
"""Heading of a first column. Where a table is folded, each row begins with the value in it, without this heading."""


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    copy_home(tmp_path / "home")
    services = Services(UserPaths(tmp_path / "home" / "config", tmp_path / "home" / "state"))
    yield services
    services.close()


def run_report(services: Services) -> Answer:
    return services.reports.report([SLOW], NOW)


def suite_report(services: Services) -> Answer:
    return services.reports.report([SUITE], NOW)


def comparison(services: Services) -> Answer:
    runs = [services.history.result(name) for name in (OTHER_LAYOUT, SLOW)]
    return side_by_side(grouped(runs, "none", {}), runs, [compare(runs)], [])


def scaling_answer(services: Services) -> Answer:
    curves = scaling_curves(services.history.result(name) for name in (PLAIN, OTHER_LAYOUT, SLOW))
    assert curves
    return scaling([(curve, ()) for curve in curves])


def nodes_answer(services: Services) -> Answer:
    return nodes(slow_nodes(services.history.result(name) for name in (PLAIN, OTHER_LAYOUT, SLOW)), ["eos"])


def words(text: str) -> set[str]:
    """Words of a text. Paths and hashes are left out: they may be longer than a line."""
    return {word.strip(",") for word in text.split() if len(word) <= _LONGEST_WORD} - {_FIRST_HEADING}


def texts(blocks: Iterable[Block]) -> Iterator[str]:
    """Rows of blocks without charts, whose labels depend on the width, and without the lines of files."""
    for block in blocks:
        if isinstance(block, Section):
            yield block.title
            yield from texts(block.blocks)
        elif not isinstance(block, Picture | Listing):
            yield from (row.text for row in rows([block], WIDE))


@pytest.mark.parametrize("size", [(80, 24), (160, 45)], ids=str)
@pytest.mark.parametrize("screen", [ReportScreen, lambda answer: ResultView("Answer", lambda: answer)])
@pytest.mark.parametrize("make_answer", [run_report, suite_report, comparison, scaling_answer, nodes_answer])
async def test_a_screen_shows_every_word_of_its_answer(
    services: Services,
    make_answer: Callable[[Services], Answer],
    screen: Callable[[Answer], Screen[Any]],
    size: tuple[int, int],
) -> None:
    answer = make_answer(services)
    app: App[Any] = Host(lambda: screen(answer))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: any(body.size.width for body in app.screen.query(FixedLines)), "the answer")
        body = app.screen.query_one(FixedLines)
        shown = words("\n".join(row.plain for row in body.rows(body.size.width)))
        missing = words("\n".join(texts(answer.make_blocks()))) - shown
        assert not missing


@pytest.mark.parametrize(
    ("make_screen", "table"),
    [
        (lambda services: JobsScreen(services, NonInteractivePrompter(), lambda: NOW), "runs screen"),
        (lambda services: SuiteWatchScreen(services, NonInteractivePrompter(), SUITE), "suite screen"),
    ],
    ids=["runs", "suite"],
)
async def test_a_list_shows_each_heading_and_cell_of_its_columns(
    services: Services, make_screen: Callable[[Services], TableScreen[Any, Any]], table: RunTable
) -> None:
    app: App[Any] = Host(lambda: make_screen(services))
    async with app.run_test(size=(240, 60)) as pilot:
        screen = app.screen
        assert isinstance(screen, TableScreen)
        await until(pilot, lambda: bool(screen.rows.things) and len(screen.rows.cells) > 1, "the rows")
        shown = on_screen(app)
        columns = run_columns(table)
        expected = [column.heading for column in columns]
        expected += [row[column.key][0] for row in screen.rows.cells.values() for column in columns]
        assert not [text for text in expected if text not in shown]
