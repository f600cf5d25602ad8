"""From an empty machine to a submitted run, by keyboard, on the simulated cluster and a real SSH server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Input

from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.clusters import Clusters
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.plan.make import plan
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import ConfirmDialog, HostKey, Secret
from llmb_tui.ui.screens.jobs import JobsScreen
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.widgets.preview import Preview
from llmb_tui.wizard.steps import StepId
from tests.cluster.login_node import PASSWORD, LoginNode
from tests.kit.pilot import SIZE, choose, loaded, marks, on_screen, on_top, step_of, until
from tests.kit.runs import NEMOTRON as NEMOTRON_FP8
from tests.ui.wizard.found_states import EOS, draft_of


@pytest.fixture
def node(tmp_path: Path) -> Iterator[LoginNode]:
    (tmp_path / "node").mkdir()
    login_node = LoginNode(tmp_path / "node")
    yield login_node
    login_node.close()


async def journey(pilot: Pilot[None]) -> WizardScreen:
    """Steps 1 to 6 on a saved cluster, up to the confirmation."""
    wizard = await loaded(pilot)
    await choose(pilot, "workload", "nemotron4@25.04/15b")
    await pilot.press("right", "right")
    await choose(pilot, "scale", "16")
    await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the saved cluster is ticked by itself")
    await pilot.press("right")
    await until(pilot, lambda: step_of(pilot) is StepId.INSTALL, "the step of the ready cluster is skipped")
    await until(pilot, lambda: bool(wizard.query_one("#install-rows").size.height), "the install is checked")
    await pilot.press("enter")
    await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "done", "the install is complete")
    await pilot.press("enter")
    assert step_of(pilot) is StepId.REVIEW
    await until(pilot, lambda: "#SBATCH" in str(wizard.query_one("#script-text").render()), "the script is shown")
    await pilot.press("enter")
    await on_top(pilot, ConfirmDialog)
    return wizard


async def test_a_saved_cluster_from_the_first_step_to_the_run_and_back_again(
    services: Services, demo: DemoCluster
) -> None:
    services.clusters.save(demo.profile)
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await journey(pilot)
        assert demo.profile.notice
        assert wizard.bar.notice == demo.profile.notice

        assert app.screen.query_one("#no", Button).has_focus
        await pilot.press("enter")
        await on_top(pilot, WizardScreen)
        assert services.runs.all() == ()

        await pilot.press("enter")
        await on_top(pilot, ConfirmDialog)
        await pilot.press("y")
        await on_top(pilot, RunScreen)
        (run,) = services.runs.all()
        assert run.submission == "submitted"
        assert run.job_ids
        assert run.plan.selection.scale == 16
        script = (services.runs.folder(run.id) / "script.sh").read_text()
        assert run.id in script
        await pilot.press("q")
        await on_top(pilot, WizardScreen)
        assert step_of(pilot) is StepId.RUN

    again = LlmbApp(Services(services.places))
    async with again.run_test(size=(120, 40)) as pilot:
        wizard = await loaded(pilot)
        plan = wizard.query_one(Preview).figures.plan
        assert plan is not None
        assert plan.selection == run.plan.selection
        await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "done", "the complete install is marked done")
        await pilot.press("3")
        await pilot.press("right")
        assert step_of(pilot) is StepId.REVIEW, "one key leads from Scale to Review"


async def test_unknown_host_key_needs_confirmation_and_defaults_to_no(services: Services, node: LoginNode) -> None:
    node.known_hosts.write_text("")
    services.clusters.save(node.profile())
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await loaded(pilot)
        await pilot.press("4", "c")
        await on_top(pilot, HostKey)
        assert "SHA256:" in on_screen(app)
        await pilot.press("enter")
        await until(pilot, lambda: wizard.bar.link == "failed", "the rejected connection")
        assert node.known_hosts.read_text() == ""
        await pilot.press("c")
        await on_top(pilot, HostKey)
        await pilot.press("right", "enter")
        await until(pilot, lambda: wizard.bar.link == "connected", "the accepted connection")
        assert node.known_hosts.read_text() != ""


async def test_password_is_masked_and_not_stored(services: Services, node: LoginNode, tmp_path: Path) -> None:
    node.factors = ("password",)
    services.clusters.save(replace(node.profile(), identity_file=None))
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await loaded(pilot)
        await pilot.press("4", "c")
        await on_top(pilot, Secret)
        assert app.screen.query_one(Input).password
        await pilot.press(*("space" if letter == " " else letter for letter in PASSWORD), "enter")
        await until(pilot, lambda: wizard.bar.link == "connected", "the password is accepted")
        assert PASSWORD not in app.export_screenshot()
    paths = [path for path in (tmp_path / "config", tmp_path / "state") if path.exists()]
    assert all(PASSWORD.encode() not in file.read_bytes() for top in paths for file in top.rglob("*") if file.is_file())


async def test_no_prompt_opens_before_the_user_connects(services: Services, node: LoginNode) -> None:
    node.known_hosts.write_text("")
    services.clusters.save(node.profile())
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await loaded(pilot)
        await until(pilot, lambda: bool(node.transports), "the saved cluster is probed")
        await until(pilot, lambda: wizard.bar.link == "unknown", "no connection if it needs an answer")
        assert isinstance(app.screen, WizardScreen)


async def test_broken_preset_is_named_and_others_are_loaded(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []  # a toast disappears after some seconds
    monkeypatch.setattr("llmb_tui.ui.app.notify", lambda _app, words, _severity: said.append(words))
    services.places.presets.mkdir(parents=True)
    (services.places.presets / "mine.toml").write_text("workload = 3\n")
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        await loaded(pilot)
        await until(pilot, lambda: any("mine.toml" in words for words in said), "the file is named")
        await choose(pilot, "workload", "nemotron4@25.04/15b")


class Slow(Clusters):
    """Clusters that connect only when the test releases them."""

    def __init__(self, places: UserPaths) -> None:
        super().__init__(places.clusters, look_every_s=10.0)
        self.may_connect = threading.Event()

    def cluster(self, ref: ClusterProfile | str) -> Cluster:
        self.may_connect.wait()
        return super().cluster(ref)


async def test_choice_made_during_the_first_probe_is_probed_too(services: Services, demo: DemoCluster) -> None:
    services.clusters = slow = Slow(services.places)
    slow.save(demo.profile)
    async with LlmbApp(services).run_test(size=SIZE) as pilot:
        wizard = await loaded(pilot)
        await until(pilot, lambda: wizard.bar.link == "connecting", "the first probe has started")
        await pilot.press("down")
        slow.may_connect.set()
        await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the cluster answers for the new choice")


async def test_password_is_requested_on_the_screen_of_runs_too(services: Services, node: LoginNode) -> None:
    node.factors = ("password",)
    services.clusters = slow = Slow(services.places)
    slow.save(replace(node.profile(), identity_file=None))
    drafted = draft_of(plan(services.catalog, NEMOTRON_FP8)).run
    services.runs.save(replace(drafted, cluster="node", submission="submitted", job_ids=("48123",)))
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await loaded(pilot)
        await pilot.press("4", "c")
        await until(pilot, lambda: wizard.bar.link == "connecting", "the connection is begun")
        await pilot.press("J")
        await on_top(pilot, JobsScreen)
        slow.may_connect.set()
        await on_top(pilot, Secret)
        await pilot.press(*("space" if letter == " " else letter for letter in PASSWORD), "enter")
        await on_top(pilot, JobsScreen)
        await pilot.press("q")
        await on_top(pilot, WizardScreen)
        await until(pilot, lambda: wizard.bar.link == "connected", "the password is accepted")
    assert [sent for method, sent in node.offered if method == "password"] == [PASSWORD]


async def test_active_run_is_shown_at_the_next_start(services: Services) -> None:
    services.clusters.save(EOS)
    chosen = NEMOTRON_FP8
    run = replace(draft_of(plan(services.catalog, chosen)).run, submission="submitted", job_ids=("48123",))
    services.runs.save(run)
    app = LlmbApp(services)
    async with app.run_test(size=(80, 24)) as pilot:
        wizard = await loaded(pilot)
        run_plan = wizard.query_one(Preview).figures.plan
        assert run_plan is not None
        assert run_plan.selection == chosen
        assert "1 active run" in str(wizard.query_one("#active-runs").render())
        await pilot.press("w")
        await on_top(pilot, RunScreen)
        services.runs.save(replace(run, job_state="COMPLETED"))
        await pilot.press("q")
        await on_top(pilot, WizardScreen)
        await until(pilot, lambda: not wizard.query_one("#active-runs").display, "a run that has ended is not going")
