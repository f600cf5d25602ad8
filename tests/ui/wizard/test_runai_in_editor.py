"""Adding a Run:ai cluster by keyboard: kind, secret, and the offers of its project."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import Input, Static

from llmb_tui.cluster.runai.cluster import RunaiInventory
from llmb_tui.cluster.runai.values import Claim, NodePool, Project
from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import Secret
from llmb_tui.ui.forms.runai import field_choices
from llmb_tui.ui.screens.cluster_editor import ClusterEditor
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.wizard.steps import StepId
from tests.kit.pilot import choose, focused_list, loaded, marks, on_screen, on_top, until
from tests.kit.runai import Fault, FaultySite, runai_site

WORKLOAD = "nemotron4-340b@25.12/340b"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultySite]:
    with runai_site(tmp_path_factory.mktemp("runai")) as started:
        yield started


@pytest.fixture(autouse=True)
def _recipes_variables(monkeypatch: pytest.MonkeyPatch, site: FaultySite) -> None:
    monkeypatch.setenv("BASE_URL", f"{site.base_url}/")
    monkeypatch.setenv("APP_ID", site.app_id)
    for name in ("APP_SECRET", "PROJECT_NAME", "RUN_CONF_MOUNTS", "PVC_DIR"):
        monkeypatch.delenv(name, raising=False)
    site.faults.clear()


def field(pilot: Pilot[None], name: str) -> Input:
    return pilot.app.screen.query_one(f"RunaiForm #profile-{name}", Input)


def read(pilot: Pilot[None]) -> str:
    return str(pilot.app.screen.query_one("RunaiForm #read", Static).render())


def offers(pilot: Pilot[None], name: str) -> list[str]:
    return [choice.value for choice in pilot.app.screen.query_one(f"RunaiForm #offers-{name}", ChoiceList).shown]


async def fill(pilot: Pilot[None], **texts: str) -> None:
    for name, text in texts.items():
        one = field(pilot, name)
        one.focus()
        await until(pilot, partial(one.__getattribute__, "has_focus"), f"{name} has the focus")
        one.clear()
        one.post_message(Paste(text))
        await until(pilot, lambda one=one, text=text: one.value == text, f"{name} is filled in")


async def give(pilot: Pilot[None], text: str) -> None:
    await on_top(pilot, Secret)
    pilot.app.screen.query_one("#line", Input).post_message(Paste(text))
    await pilot.pause()
    assert text == "" or text not in on_screen(pilot.app) or text == "no"
    await pilot.press("enter")


async def test_new_runai_cluster_is_read_with_its_secret_and_saved(services: Services, site: FaultySite) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        await loaded(pilot)
        await choose(pilot, "workload", WORKLOAD)
        await pilot.press("4", "n")
        await on_top(pilot, ClusterEditor)
        assert "Run:ai, over HTTPS" in on_screen(app)
        focused_list(pilot, "transport")
        await choose(pilot, "transport", "runai")
        assert "partition" not in on_screen(app)
        assert (field(pilot, "base_url").value, field(pilot, "app_id").value) == (site.base_url, site.app_id)
        await fill(pilot, name="acme", ca_file=str(site.ca_file), project=site.project)
        site.faults.append(Fault("GET", "/asset/credentials", status=403))
        await pilot.press("enter")
        await give(pilot, "not the secret")
        await until(pilot, lambda: "could not read the cluster" in read(pilot), "a wrong secret is reported")
        assert "secret" in read(pilot)
        await pilot.press("ctrl+r")
        await give(pilot, site.app_secret)
        await give(pilot, "no")
        await until(pilot, lambda: "2 node pools" in read(pilot), "the offers of the cluster")
        assert "credentials" in read(pilot)  # which the user may not list
        assert offers(pilot, "node_pool") == ["default", "b200"]
        assert offers(pilot, "mounts")[0].endswith(":llmb-data")
        assert offers(pilot, "hub_credential") == []
        await pilot.press("ctrl+r")
        await until(pilot, lambda: offers(pilot, "hub_credential") == ["huggingface"], "by now they may be asked")
        assert offers(pilot, "image_pull_secret") == ["dockerreg-nvcr"]
        field(pilot, "mounts").focus()
        await pilot.press(*"w:/w:work")
        await until(pilot, lambda: offers(pilot, "mounts")[0].startswith("w:/w:work, "), "the typed value stays")
        await fill(pilot, mounts=f"data:/data:{site.claims[0]}", work_dir="/data/llmb", kubeconfig=str(site.kubeconfig))
        await pilot.press("ctrl+s")
        await on_top(pilot, WizardScreen)
        await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the cluster is checked and ticked")
    assert services.clusters.profile("acme") == replace(site.profile, name="acme", notice=None)


async def test_edited_runai_cluster_keeps_its_kind(services: Services, site: FaultySite) -> None:
    services.clusters.save(site.profile)
    app = LlmbApp(services)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("4", "e")
        await on_top(pilot, ClusterEditor)
        assert app.focused is field(pilot, "name")
        assert app.screen.query_one("#transport", ChoiceList).shown[0].disabled_reason
        await fill(pilot, mounts="data", node_pool="b200")
        await pilot.press("ctrl+s")
        assert app.focused is field(pilot, "mounts")
        assert "NAME:PATH:CLAIM" in on_screen(app)
        await fill(pilot, mounts=site.profile.mounts[0])
        await pilot.press("ctrl+s")
        await on_top(pilot, WizardScreen)
    assert services.clusters.profile(site.profile.name) == replace(site.profile, node_pool="b200")


def test_claim_is_offered_together_with_entered_mounts() -> None:
    claims = tuple(
        Claim(name=name, claim=claim, path=path, status=status)
        for name, claim, path, status in [
            ("LLMB data", "llmb-data", "/data", "Ready"),
            ("scratch", "scratch", "", "Ready"),
            ("old", "old", "/old", "Failed"),
        ]
    )
    project = Project(id="1", name="bench", cluster_id="c")
    offers = RunaiInventory(project, (NodePool(name="spare"),), claims)
    offer = field_choices(offers, "w:/w:work")
    first, second, broken, both = offer["mounts"]
    assert first.value == "w:/w:work, llmb-data:/data:llmb-data"
    assert (second.label, broken.disabled_reason) == ("scratch:/scratch:scratch", "Failed")
    assert both.value == "w:/w:work, llmb-data:/data:llmb-data, scratch:/scratch:scratch"
    assert field_choices(offers, first.value)["mounts"][0].label == second.label
    assert offer["node_pool"][0].disabled_reason
