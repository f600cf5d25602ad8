"""Installations of NVIDIA's llmb-run on the cluster: their settings are offered, and not filled in."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import HostKey
from llmb_tui.ui.screens.cluster_editor import ClusterEditor
from llmb_tui.ui.widgets.choices import ChoiceList
from tests.kit.pilot import loaded, on_top, until
from tests.kit.runs import slurm
from tests.ui.wizard.test_cluster_editor import fill, text_in

CONFIG = """\
schema_version: 2
llmb_repo: {root}/llmb_repo
llmb_install: {root}
gpu_type: h100
environment: {{HF_TOKEN: hf_abcdefghijklmnopqrstuvwxyz}}
slurm:
  account: theirs
  qos: gold
  comment: weekly
  gpu: {{partition: debug, gres: null}}
  cpu: {{partition: cpu}}
workloads:
  installed: [pretrain_nemotron4-340b]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Directory of the llmb-run installation; the demo's cluster is this machine."""
    folder = tmp_path / "theirs"
    (folder / "llmb_repo").mkdir(parents=True)
    (folder / "llmb_repo" / "release.yaml").write_text("llmb_version: '26.06.01'\n")
    (folder / "cluster_config.yaml").write_text(CONFIG.format(root=folder))
    return folder


async def read(pilot: Pilot[None], demo: DemoCluster, install_dir: Path, **typed: str) -> None:
    """Enter the demo's cluster with these texts, and read its offers."""
    await loaded(pilot)
    await pilot.press("4", "n")
    await on_top(pilot, ClusterEditor)
    profile = demo.profile
    await fill(
        pilot, name="mine", host=profile.host, port=str(profile.port), user=profile.user or "",
        identity_file=profile.identity_file or "", install_dir=str(install_dir), **typed,
    )  # fmt: skip
    await pilot.press("ctrl+r")
    await on_top(pilot, HostKey)
    await pilot.press("right", "enter")
    await on_top(pilot, ClusterEditor)
    await until(pilot, lambda: "partitions" in text_in(pilot, "read"), "the offers of the cluster")


def offers(pilot: Pilot[None], name: str) -> list[tuple[str, str]]:
    return [(one.value, one.detail) for one in pilot.app.screen.query_one(f"#offers-{name}", ChoiceList).shown]


def value(pilot: Pilot[None], name: str) -> str:
    return pilot.app.screen.query_one(f"#profile-{name}", Input).value


async def test_settings_of_llmb_run_are_offered_first_and_marked(
    services: Services, demo: DemoCluster, root: Path
) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 50)) as pilot:
        await read(pilot, demo, root, account="mine")
        assert f"llmb-run 26.06.01 installation at {root}" in text_in(pilot, "read")
        mark = "in llmb-run 26.06.01's configuration"
        assert offers(pilot, "account")[0] == ("theirs", mark)
        assert [name for name, _ in offers(pilot, "partition")] == ["debug", "batch"]
        assert offers(pilot, "partition")[0][1].endswith(mark)
        assert offers(pilot, "qos")[0] == ("gold", mark)
        assert offers(pilot, "slurm_params") == [("comment=weekly;", mark)]
        assert offers(pilot, "install_dir")[0] == (str(root), mark)
        requests = {one.value: one.detail for one in app.screen.query_one("#gpu-request", ChoiceList).shown}
        assert requests == {"gpus-per-node": "", "gres": "", "none": mark}
        # Typed values stay, empty fields get Slurm's default, and others stay empty.
        assert (value(pilot, "account"), value(pilot, "partition")) == ("mine", "batch")
        assert [value(pilot, name) for name in ("cpu_partition", "qos", "slurm_params")] == ["", "", ""]
        assert app.screen.query_one("#gpu-request", ChoiceList).chosen == "gpus-per-node"


async def test_user_can_pick_a_setting_of_llmb_run(services: Services, demo: DemoCluster, root: Path) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 50)) as pilot:
        await read(pilot, demo, root)
        app.screen.query_one("#profile-slurm_params", Input).focus()
        await pilot.pause()
        await pilot.press("down", "down", "enter")
        assert value(pilot, "slurm_params") == "comment=weekly;"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: bool(services.clusters.profiles()), "the saved cluster")
    assert slurm(services.clusters.profile("mine")).slurm_params == "comment=weekly;"


async def test_unusable_configuration_is_reported_and_others_are_offered(
    services: Services, demo: DemoCluster, root: Path
) -> None:
    (root / "cluster_config.yaml").write_text("schema_version: 9\n")
    app = LlmbApp(services)
    async with app.run_test(size=(120, 50)) as pilot:
        await read(pilot, demo, root)
        assert "Its version is 9; this llmb-tui knows versions 1 and 2." in text_in(pilot, "read")
        assert offers(pilot, "partition")
        assert value(pilot, "partition") == "batch"


async def test_cluster_without_llmb_run_does_not_mention_it(services: Services, demo: DemoCluster, root: Path) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(80, 24)) as pilot:
        await read(pilot, demo, root / "llmb_repo")
        assert "llmb-run" not in text_in(pilot, "read")
