"""Adding and editing a cluster by keyboard: offers, invalid values, and unsaved changes."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import Input, Static

from llmb_tui.cluster.llmb.install import LlmbInventory
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.slurm.inventory import ClusterInventory, Directory
from llmb_tui.cluster.slurm.partition import parse_partitions
from llmb_tui.cluster.slurm.profile import GpuRequest, SlurmProfile
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.errors import LlmbError
from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import ConfirmDialog, HostKey
from llmb_tui.ui.forms.slurm import SlurmForm
from llmb_tui.ui.screens.cluster_editor import ClusterEditor
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.wizard.steps import StepId
from tests.kit.pilot import burst, choose, loaded, marks, on_top, state_of, until
from tests.kit.runs import slurm
from tests.ui.wizard.found_states import EOS


def _holds(field: Input, text: str) -> bool:
    return field.value == text


def text_in(pilot: Pilot[None], which: str) -> str:
    return str(pilot.app.screen.query_one(f"#{which}", Static).render())


async def fill(pilot: Pilot[None], **texts: str) -> None:
    """Paste each text into its field."""
    for name, text in texts.items():
        field = pilot.app.screen.query_one(f"#profile-{name}", Input)
        field.focus()
        await until(pilot, partial(field.__getattribute__, "has_focus"), f"{name} has the focus")
        field.clear()
        field.post_message(Paste(text))
        await until(pilot, partial(_holds, field, text), f"{name} is filled in")


async def test_new_cluster_is_read_saved_and_checked(services: Services, demo: DemoCluster) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        await loaded(pilot)
        await choose(pilot, "workload", "nemotron4@25.04/15b")
        await pilot.press("4", "n")
        await on_top(pilot, ClusterEditor)
        profile = demo.profile
        await fill(
            pilot, name="mine", host=profile.host, port=str(profile.port), user=profile.user or "",
            identity_file=profile.identity_file or "",
        )  # fmt: skip
        await pilot.press("enter")
        await on_top(pilot, HostKey)
        await pilot.press("right", "enter")
        await on_top(pilot, ClusterEditor)
        await until(pilot, lambda: "partitions" in text_in(pilot, "read"), "the offers of the cluster")
        assert app.screen.query_one("#profile-account", Input).value == profile.account
        accounts = app.screen.query_one("#offers-account", ChoiceList)
        await until(pilot, lambda: accounts.display and accounts.region.height == 1, "the one account is offered")
        assert app.focused is app.screen.query_one("#profile-account")
        partitions = app.screen.query_one("#offers-partition", ChoiceList)
        assert [choice.value for choice in partitions.shown] == ["batch", "debug"]
        await pilot.press("down", "enter")
        assert app.focused is app.screen.query_one("#profile-partition")
        await pilot.press("down", "down")
        assert app.screen.query_one("#profile-partition", Input).value == "debug"
        await pilot.press("up", "enter")
        await fill(pilot, install_dir=profile.install_dir)
        await pilot.press("ctrl+s")
        await on_top(pilot, WizardScreen)
        await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the cluster is checked and ticked")
    saved = services.clusters.profile("mine")
    unasked = {name: getattr(profile, name) for name in ("name", "known_hosts", "ssh_config", "notice")}
    assert replace(saved, **unasked) == profile


async def test_invalid_value_is_reported_at_its_field(services: Services) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("4", "n")
        await on_top(pilot, ClusterEditor)
        await fill(pilot, name="eos")
        await pilot.press("ctrl+s")
        assert app.focused is app.screen.query_one("#profile-host")
        assert "Enter the host" in text_in(pilot, "fault")
        await fill(
            pilot, host=EOS.host, account="research", partition="batch", install_dir="/lustre/llmb", port="99999"
        )  # fmt: skip
        await pilot.press("ctrl+s")
        assert app.focused is app.screen.query_one("#profile-port")
        assert "65535" in text_in(pilot, "fault")
        await fill(pilot, port="22", env="HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz")
        await pilot.press("ctrl+s")
        assert app.focused is app.screen.query_one("#profile-env")
        assert "secret" in text_in(pilot, "fault")
        assert app.screen.query_one("#profile-account", Input).value == "research"
        assert services.clusters.profiles() == ()


async def test_late_offers_do_not_move_the_focus_of_a_typing_user(
    services: Services, demo: DemoCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_answer, read = threading.Event(), SlurmForm.read

    def read_late(form: SlurmForm, *args: Any) -> Any:
        may_answer.wait(60)
        return read(form, *args)

    monkeypatch.setattr(SlurmForm, "read", read_late)
    services.clusters.save(demo.profile)
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        await loaded(pilot)
        await choose(pilot, "workload", "nemotron4@25.04/15b")
        await pilot.press("4", "e")
        await on_top(pilot, ClusterEditor)
        name = app.screen.query_one("#profile-name", Input)
        app.screen.query_one("#profile-host", Input).focus()
        await pilot.press("ctrl+r")
        name.focus()
        await pilot.press("end", *"-pro")
        may_answer.set()
        await until(pilot, lambda: "partitions" in text_in(pilot, "read"), "the offers of the cluster")
        await pilot.press(*"duction")
        assert name.value == f"{demo.profile.name}-production"


def _inventory(letter: str, request: GpuRequest) -> ClusterInventory:
    partitions = tuple(parse_partitions(f"part-{letter}|part-{letter}*|up|4:00:00|12|idle|gpu:8|"))
    account, places = f"acct-{letter}", (Directory(f"/lustre-{letter}/llmb", 100.0),)
    return ClusterInventory("me", "/home/me", (account,), account, partitions, (), (), request, places)


async def _new_cluster(pilot: Pilot[None], **texts: str) -> SlurmForm:
    await loaded(pilot)
    await pilot.press("4", "n")
    await on_top(pilot, ClusterEditor)
    await fill(pilot, name="mine", **texts)
    return pilot.app.screen.query_one(SlurmForm)


def _used(form: SlurmForm) -> tuple[str, ...]:
    texts = form.texts
    return texts["account"], texts["partition"], texts["install_dir"], form.base.gpu_request


@pytest.fixture
def may_answer(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Event that two stand-in hosts wait for before they return their offers; set at first."""
    offers = {"hosta": _inventory("a", "gres"), "hostb": _inventory("b", "none")}
    answers = threading.Event()
    answers.set()

    def read(_: SlurmForm, __: Services, profile: SlurmProfile, ___: Prompter) -> Any:
        answers.wait(60)
        if profile.host not in offers:
            raise LlmbError(f"{profile.host} does not answer.")
        return offers[profile.host], LlmbInventory()

    monkeypatch.setattr(SlurmForm, "read", read)
    return answers


A = ("acct-a", "part-a", "/lustre-a/llmb", "gres")
B = ("acct-b", "part-b", "/lustre-b/llmb", "none")


@pytest.mark.usefixtures("may_answer")
async def test_values_filled_in_for_one_host_are_removed_for_another(services: Services) -> None:
    async with LlmbApp(services).run_test(size=(120, 40)) as pilot:
        form = await _new_cluster(pilot, host="hosta")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: _used(form) == A, "the offers of the first")
        await fill(pilot, account="typed", host="hostb")
        await until(pilot, lambda: "not connected" in text_in(pilot, "read"), "the first offers are dropped")
        assert _used(form) == ("typed", "", "", "gpus-per-node")
        assert not any(offers.shown for offers in form.query("Combo > ChoiceList").results(ChoiceList))
        await pilot.press("ctrl+r")
        await until(pilot, lambda: _used(form) == ("typed", *B[1:]), "the offers of the second, and the typed value")


@pytest.mark.parametrize("host", ["hosta", "silent"])
async def test_late_offers_of_an_earlier_host_are_dropped(
    services: Services, may_answer: threading.Event, host: str
) -> None:
    async with LlmbApp(services).run_test(size=(120, 40)) as pilot:
        form = await _new_cluster(pilot, host=host)
        may_answer.clear()
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "connecting" in text_in(pilot, "read"), "the host is asked")
        reading = [worker for worker in pilot.app.workers if worker.group == "read"]
        await fill(pilot, host="hostb")
        may_answer.set()
        await until(pilot, lambda: not any(worker.is_running for worker in reading), "the answer")
        assert "not connected" in text_in(pilot, "read")
        assert _used(form) == ("", "", "", "gpus-per-node")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: _used(form) == B, "the offers of the second")


@pytest.mark.usefixtures("may_answer")
async def test_a_chosen_gpu_request_is_kept(services: Services) -> None:
    async with LlmbApp(services).run_test(size=(120, 40)) as pilot:
        form = await _new_cluster(pilot, host="hosta")
        pilot.app.screen.query_one("#gpu-request", ChoiceList).focus()
        await pilot.press("end")
        assert form.base.gpu_request == "none"
        await pilot.press("ctrl+r")
        await until(pilot, lambda: form.texts["partition"] == "part-a", "the offers")
        assert _used(form) == (*A[:3], "none")


async def test_no_single_key_discards_typed_values(services: Services) -> None:
    services.clusters.save(EOS)
    app = LlmbApp(services)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("4", "e")
        await on_top(pilot, ClusterEditor)
        await pilot.press("escape")
        await on_top(pilot, WizardScreen)  # nothing was entered

        await pilot.press("e")
        await on_top(pilot, ClusterEditor)
        await fill(pilot, partition="debug")
        app.screen.query_one("#gpu-request").focus()  # not a text field, so q is a key
        for leaves, stays in (("escape", "escape"), ("escape", "enter"), ("q", "n")):
            await pilot.press(leaves)
            await on_top(pilot, ConfirmDialog)
            await pilot.press(stays)
            await on_top(pilot, ClusterEditor)
        assert app.screen.query_one("#profile-partition", Input).value == "debug"
        await pilot.press("escape")
        await on_top(pilot, ConfirmDialog)
        await pilot.press("y")
        await on_top(pilot, WizardScreen)
    assert services.clusters.profile(EOS.name) == EOS


async def test_repeated_save_key_saves_once(services: Services) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await loaded(pilot)
        await pilot.press("4", "n")
        await on_top(pilot, ClusterEditor)
        await fill(pilot, name="eos", host="h", account="a", partition="p", install_dir="/lustre/llmb")
        burst(pilot, "ctrl+s", "ctrl+s", "escape")
        await on_top(pilot, WizardScreen)
        await until(
            pilot, lambda: [profile.name for profile in state_of(wizard).profiles] == ["eos"], "the wizard knows it"
        )
    assert [profile.name for profile in services.clusters.profiles()] == ["eos"]


async def test_a_cluster_that_cannot_be_reached_can_still_be_saved(services: Services) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        await loaded(pilot)
        await pilot.press("4", "n")
        await on_top(pilot, ClusterEditor)
        await fill(pilot, name="eos", host=EOS.host, port=str(EOS.port))
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "refused the connection" in text_in(pilot, "read"), "the reason")
        await fill(pilot, port="10")
        await until(pilot, lambda: "not connected" in text_in(pilot, "read"), "the error of the other host is gone")
        await fill(pilot, port=str(EOS.port))
        await fill(
            pilot, account="research", partition="batch", install_dir="/lustre/llmb", qos="short", segment="4",
            mounts="/data:/data:ro, /scratch:/scratch", env="NCCL_DEBUG=INFO; UCX_TLS=rc",
        )  # fmt: skip
        await pilot.press("ctrl+s")
        await on_top(pilot, WizardScreen)
    saved = slurm(services.clusters.profile("eos"))
    assert (saved.qos, saved.segment, saved.port) == ("short", 4, EOS.port)
    assert saved.mounts == ("/data:/data:ro", "/scratch:/scratch")
    assert saved.env == (("NCCL_DEBUG", "INFO"), ("UCX_TLS", "rc"))


async def test_editing_keeps_fields_that_the_form_does_not_show(services: Services) -> None:
    profile = replace(EOS, ssh_config="none", constraint="gpu&memory", env=(("A", "1"),))
    services.clusters.save(profile)
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        await loaded(pilot)
        await pilot.press("4", "e")
        await on_top(pilot, ClusterEditor)
        await fill(pilot, partition="debug")
        await pilot.press("ctrl+s")
        await on_top(pilot, WizardScreen)
    assert services.clusters.profile("eos") == replace(profile, partition="debug")
