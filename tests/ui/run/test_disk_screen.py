"""The screen of files on a cluster: reasons to keep items, and removals only with a mark and a confirmation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.app import App

from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster_files import housekeeping
from llmb_tui.cluster_files.housekeeping import Removal
from llmb_tui.errors import LlmbError
from llmb_tui.launch.policy import Policy
from llmb_tui.services import Services
from llmb_tui.ui.dialogs import ConfirmDialog, Failure
from llmb_tui.ui.screens.disk import DiskScreen
from llmb_tui.ui.widgets.keyed_table import KeyedTable
from tests.kit.pilot import SIZE, on_screen, on_top, text_of, until
from tests.ui.run.conftest import Host

IMAGE = "images/nvidia+nemo+25.02.01.sqsh"
CELLS = "PENDING None 1 1:00 0 0 0 cn001 name".split()
OpenDisk = Callable[..., tuple[App[None], Services]]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install directory with an image of the program and a larger one of another origin; the queue is empty."""
    install = tmp_path / "install"
    for path, size in ((IMAGE, 9000), ("images/[red]brought.sqsh", 1), ("images/brought.sqsh", 90_000)):
        (install / path).parent.mkdir(parents=True, exist_ok=True)
        (install / path).write_bytes(b"x" * size)
    (install / ".llmb-tui" / "steps" / "image-nvidia+nemo+25.02.01").mkdir(parents=True)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "squeue").write_text("#!/bin/sh\nexit 0\n")
    (programs / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    return install


def queue(install: Path, job_id: str) -> None:
    """Set the output of Slurm's queue: one waiting job, or none."""
    text = "\x1f".join((job_id, *CELLS, "")) if job_id else ""
    (install.parent / "bin" / "squeue").write_text(f"#!/bin/sh\necho '{text}'\n")


@pytest.fixture
def open_disk(install: Path, services_of: Callable[..., Services]) -> Iterator[OpenDisk]:
    profile = SlurmProfile("eos", "local", "acct", "batch", str(install), transport="local")
    session = SlurmCluster(profile)

    def make(*, read_only: bool = False, notice: str | None = None) -> tuple[App[None], Services]:
        services = services_of([])
        services.clusters.login_node = lambda ref: session  # type: ignore[method-assign]  # noqa: ARG005
        services.policy = Policy(read_only, None)
        return Host(lambda: DiskScreen(services, NonInteractivePrompter(), replace(profile, notice=notice))), services

    yield make
    session.close()


async def listed(pilot: Any, app: App[None], count: int) -> None:
    await until(pilot, lambda: "can be removed" in text_of(app, "#list-status"), "the cluster was asked")
    assert app.screen.query_one(KeyedTable).row_count == count


async def test_marked_items_are_removed_after_a_confirmation_and_kept_items_show_a_reason(
    open_disk: OpenDisk, install: Path
) -> None:
    app, _ = open_disk()
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 2)
        assert "images/brought.sqsh   ✗ stays: This program did not install it." in text_of(app, "#list-about")
        await pilot.press("x", "D")
        assert isinstance(app.screen, DiskScreen)
        why = "images/brought.sqsh stays: This program did not install it."
        assert [notification.message for notification in app._notifications] == [
            why,
            "No item is marked. Mark one with x first.",
        ]
        await pilot.press("down", "x")
        assert f"{IMAGE}   x: mark" in text_of(app, "#list-about")
        await pilot.press("D")
        await on_top(pilot, ConfirmDialog)
        assert "This cannot be undone" in on_screen(app)
        await pilot.press("n")
        assert (install / IMAGE).exists()
        await pilot.press("D")
        await on_top(pilot, ConfirmDialog)
        await pilot.press("y")
        await until(pilot, lambda: "1 item removed." in text_of(app, "#list-status"), "the removal")
        await listed(pilot, app, 1)
        assert not (install / IMAGE).exists()
        assert (install / "images" / "brought.sqsh").exists()


async def test_an_item_that_is_needed_since_it_was_listed_is_kept(open_disk: OpenDisk, install: Path) -> None:
    app, _ = open_disk()
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 2)
        await pilot.press("down", "x", "D")
        await on_top(pilot, ConfirmDialog)
        queue(install, "8")
        await pilot.press("y")
        await on_top(pilot, Failure)
        assert "Job 8 is waiting or running, and may need it." in on_screen(app)
        assert (install / IMAGE).exists()
        await pilot.press("escape")
        assert "cannot be removed" in text_of(app, "#list-status")
        queue(install, "")
        await pilot.press("D")
        await on_top(pilot, ConfirmDialog)
        await pilot.press("y")
        await until(pilot, lambda: "1 item removed." in text_of(app, "#list-status"), "the removal")
        assert not (install / IMAGE).exists()


async def test_a_cluster_error_shows_its_reason_and_remedy(
    open_disk: OpenDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object) -> None:
        raise LlmbError("It is silent.", "No node answers.", "Start it.")

    monkeypatch.setattr(housekeeping, "install_items", silent)
    app, _ = open_disk(notice="simulated")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(
            pilot, lambda: "It is silent. No node answers. Start it." in text_of(app, "#list-status"), "the whole error"
        )
        assert text_of(app, "#list-head").rstrip().endswith(" simulated")


async def test_a_removal_without_marks_does_not_stop_the_reading(
    open_disk: OpenDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, measure = threading.Event(), housekeeping.measure_items

    def slow(*args: Any) -> Any:
        go.wait(60)
        return measure(*args)

    monkeypatch.setattr(housekeeping, "measure_items", slow)
    app, _ = open_disk()
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "Querying eos" in text_of(app, "#list-status"), "the query")
        await pilot.press("D")
        go.set()
        await listed(pilot, app, 2)


@pytest.mark.parametrize("fails", [False, True])
async def test_the_result_of_a_removal_is_reported_after_the_screen_is_closed(
    open_disk: OpenDisk, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    go = threading.Event()

    def slow(*_: object) -> Removal:
        go.wait(60)
        if fails:
            raise LlmbError("Nothing was removed.", "Job 8 may need it.")
        return Removal((), {IMAGE: "It is of others."})

    monkeypatch.setattr(housekeeping, "remove", slow)
    app, _ = open_disk()
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 2)
        await pilot.press("down", "x", "D")
        await on_top(pilot, ConfirmDialog)
        await pilot.press("y")
        await until(pilot, lambda: "removing" in text_of(app, "#list-status"), "the active removal")
        await pilot.press("q")
        await until(pilot, lambda: not isinstance(app.screen, DiskScreen), "the screen is left")
        go.set()
        if fails:
            await on_top(pilot, Failure)
            assert "Job 8 may need it." in on_screen(app)
        else:
            await until(pilot, lambda: [note.message for note in app._notifications], "the notification")
            assert f"{IMAGE} was not removed. It is of others." in next(iter(app._notifications)).message


async def test_no_key_hides_the_result_of_a_removal(open_disk: OpenDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()

    def slow(*_: object) -> Removal:
        assert go.wait(60)
        return Removal((), {IMAGE: "It is of others."})

    monkeypatch.setattr(housekeeping, "remove", slow)
    app, _ = open_disk()
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, app, 2)
        await pilot.press("down", "x", "D")
        await on_top(pilot, ConfirmDialog)
        await pilot.press("y")
        await until(pilot, lambda: "removing" in text_of(app, "#list-status"), "the active removal")
        actions = ("mark", "remove", "read", "leave")
        assert [app.screen.check_action(name, ()) for name in actions] == [None, None, None, True]
        await pilot.press("r", "D")
        assert isinstance(app.screen, DiskScreen)
        assert "removing" in text_of(app, "#list-status")
        go.set()
        await until(
            pilot, lambda: f"{IMAGE} was not removed. It is of others." in text_of(app, "#list-status"), "the result"
        )
        await listed(pilot, app, 2)
        await until(pilot, lambda: app.screen.check_action("read", ()) is True, "the key that reads again")


async def test_nothing_is_marked_or_removed_on_a_read_only_cluster(open_disk: OpenDisk, install: Path) -> None:
    app, _ = open_disk(read_only=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await listed(pilot, app, 2)
        await pilot.press("down", "x", "D")
        assert isinstance(app.screen, DiskScreen)
        assert (install / IMAGE).exists()


async def test_a_missing_install_directory_is_reported(open_disk: OpenDisk, install: Path) -> None:
    app, _ = open_disk()
    install.rename(install.with_name("elsewhere"))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "cannot be used" in text_of(app, "#list-status"), "the reason")
