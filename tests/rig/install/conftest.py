from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import Selection
from tests.rig.cluster import Rig
from tests.rig.install.site import Site


@pytest.fixture(scope="session")
def small_plan(catalog: Catalog) -> Plan:
    """Nemotron4 15b fp8 on 16 GPUs."""
    return plan(catalog, Selection("nemotron4", "25.04", "15b", "h100", "fp8", 16))


@pytest.fixture
def site(rig: Rig, catalog: Catalog, small_plan: Plan, tmp_path: Path) -> Iterator[Site]:
    """An empty install directory on the rig."""
    made = Site(rig, catalog.recipe("nemotron4@25.04"), small_plan, tmp_path)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmb_tui.launch.install.LOOK_EVERY_S", 0.5)
    monkeypatch.setattr("llmb_tui.launch.install.ASK_SLURM_EVERY_S", 0.5)
