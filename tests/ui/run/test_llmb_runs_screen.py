"""The list of llmb-run's runs: some can be opened, the others show the reason; rows do not move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from textual.app import App

from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.launch.llmb.import_run import ImportableRun, importable_runs
from llmb_tui.launch.llmb.llmb_run import LlmbRun
from llmb_tui.launch.llmb.run import run_of
from llmb_tui.launch.runs import Runs
from llmb_tui.ui.screens.jobs import JobsScreen, JobTable
from llmb_tui.ui.screens.llmb_runs import LlmbRunsScreen
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.keyed_table import KeyedTable
from tests.kit.pilot import SIZE, on_top, text_of, until
from tests.kit.runs import CATALOG
from tests.launch.test_adopt import CONFIG, FOLDER

OpenJobs = Callable[..., tuple[App[None], Any]]


def found() -> tuple[LlmbRun, ...]:
    """One run that can be opened, one of another release, one with a broken file and harmful texts."""
    broken = FOLDER.replace("nemotron4-340b", "[red]evil\x1b[2J")
    return (
        run_of(f"{FOLDER}/llmb-config_300.yaml", {"run": CONFIG, "written": "1759999000"}),
        run_of(
            f"{FOLDER}/llmb-config_200.yaml", {"run": CONFIG.replace("'25.12'", "'25.08'"), "written": "1759990000"}
        ),
        run_of(f"{broken}/llmb-config_100.yaml", {"run": "a: b: c", "written": ""}),
    )


class Cluster:
    """Runs on the cluster, and the number of queries."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self.asked: list[str] = []
        self.error: LlmbError | None = None

    def list_importable_runs(self, session: SlurmCluster, _catalog: object, _runs: object) -> Sequence[ImportableRun]:
        self.asked.append(session.profile.name)
        if self.error:
            raise self.error
        return importable_runs(CATALOG, self.runs, session.profile.name, found())


@pytest.fixture
def opened(open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch) -> tuple[App[None], Any, Cluster]:
    """The jobs screen, its services, and a cluster with known runs of llmb-run."""
    app, services = open_jobs()
    cluster = Cluster(services.runs)
    monkeypatch.setattr("llmb_tui.launch.llmb.import_run.list_importable_runs", cluster.list_importable_runs)
    return app, services, cluster


def rows(app: App[None]) -> list[list[str]]:
    table = app.screen.query_one(KeyedTable)
    return [[str(cell) for cell in table.get_row_at(row)] for row in range(table.row_count)]


async def others(pilot: Any, app: App[None], count: int = 3) -> None:
    await until(pilot, lambda: len(app.screen.query(JobTable)) == 1, "the jobs")
    await until(pilot, lambda: app.screen.query_one(JobTable).row_count == 6, "six runs")
    await pilot.press("o")
    await on_top(pilot, LlmbRunsScreen)
    await until(pilot, lambda: len(app.screen.query(KeyedTable)) == 1 and len(rows(app)) == count, f"{count} rows")


async def test_the_runs_of_the_cluster_of_the_run_under_the_cursor_are_listed(opened: Any) -> None:
    app, _, cluster = opened
    async with app.run_test(size=SIZE) as pilot:
        await others(pilot, app)
        assert cluster.asked == ["eos"]
        assert [row[0] for row in rows(app)] == ["300", "200", "100"]
        assert rows(app)[0][1:4] == ["nemotron4-340b fp8", "256×GB200", "25.12"]
        assert text_of(app, "#list-status") == "● eos: 3 found, 1 can be opened"
        assert rows(app)[1][-1].startswith("No preset has nemotron4-340b")
        assert "\x1b" not in rows(app)[2][1]
        assert "[red]evil" in rows(app)[2][1]
        assert not app.screen.query_one("#llmb-clusters").display


async def test_enter_opens_a_run_and_adds_it_to_the_list_of_runs(opened: Any) -> None:
    app, services, _ = opened
    async with app.run_test(size=SIZE) as pilot:
        await others(pilot, app)
        await pilot.press("enter")
        await on_top(pilot, RunScreen)
        await until(pilot, lambda: app.screen.training_run is not None, "loaded")
        run = app.screen.training_run
        assert (run.procedure, run.job_ids, run.spec) == ("llmb", ("300",), None)
        await pilot.press("q")
        await on_top(pilot, JobsScreen)
        table = app.screen.query_one(JobTable)
        await until(pilot, lambda: table.row_count == 7, "the additional row")
        assert [row for row in range(7) if "nemotron4-340b" in " ".join(map(str, table.get_row_at(row)))] == [2]
        await pilot.press("o")
        await until(pilot, lambda: isinstance(app.screen, LlmbRunsScreen) and len(rows(app)) == 3, "again")
        assert rows(app)[0][5] == run.id
        await pilot.press("enter")
        await on_top(pilot, RunScreen)
    assert len(services.runs.all()) == 7


async def test_a_run_that_cannot_be_opened_shows_the_reason(opened: Any) -> None:
    app, services, _ = opened
    async with app.run_test(size=(80, 24)) as pilot:
        await others(pilot, app)
        await pilot.press("down")
        await until(pilot, lambda: "cannot be opened" in text_of(app, "#list-about"), "the reason in full")
        assert "only nemotron4-340b@25.12" in text_of(app, "#list-about")
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, LlmbRunsScreen)
        await pilot.press("q")
        await on_top(pilot, JobsScreen)
    assert len(services.runs.all()) == 6


async def test_a_cluster_that_does_not_answer_is_reported_and_queried_again_by_a_key(opened: Any) -> None:
    app, _, cluster = opened
    cluster.error = LlmbError("eos [/x] cannot be reached.", "Nothing listens there.")
    async with app.run_test(size=(80, 24)) as pilot:
        await others(pilot, app, count=0)
        await until(pilot, lambda: "✗" in text_of(app, "#list-status"), "the reason")
        assert "eos [/x] cannot be reached. Nothing listens there." in text_of(app, "#list-status")
        cluster.error = None
        await pilot.press("r")
        await until(pilot, lambda: len(rows(app)) == 3, "the runs")


async def test_the_user_chooses_among_several_clusters(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    app, services, cluster = opened
    eos = services.clusters.profiles()[0]
    profile = SlurmProfile("dgx", "dgx-login", "a", "b", "/l")
    monkeypatch.setattr(services.clusters, "profiles", lambda: (profile, eos))
    async with app.run_test(size=SIZE) as pilot:
        await others(pilot, app)
        assert cluster.asked == ["eos"]
        clusters = app.screen.query_one("#llmb-clusters", ChoiceList)
        assert (clusters.display, clusters.chosen) == (True, "eos")
        await pilot.press("tab", "up", "enter")
        await until(pilot, lambda: cluster.asked == ["eos", "dgx"], "the other one was asked")


async def test_without_a_saved_cluster_the_list_explains_how_to_add_it(
    open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, services = open_jobs(runs=())
    monkeypatch.setattr(services.clusters, "profiles", tuple)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(app.screen.query(JobTable)) == 1, "the jobs")
        await pilot.press("o")
        await on_top(pilot, LlmbRunsScreen)
        await until(pilot, lambda: "No cluster yet" in text_of(app, "#list-status"), "the words")
