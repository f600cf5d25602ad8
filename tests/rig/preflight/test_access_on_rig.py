"""Whether the image and the model are open to the operator, asked from the login node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llmb_tui.plan.plan import Plan
from llmb_tui.preflight.needs import Sources
from llmb_tui.preflight.report import Preflight
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from tests.rig.cluster import Rig
from tests.rig.install.web import Web
from tests.rig.preflight.site import by_id


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as web:
        yield web


@pytest.fixture
def services(rig: Rig, web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    services = Services(UserPaths(tmp_path / "config", tmp_path / "state"))
    services.sources = Sources(web.url, web.url, web.url)
    services.clusters.save(rig.profile(install_dir=str(rig.new_dir())))
    yield services
    services.clusters.close()


def test_an_image_that_is_open_to_anybody(services: Services, job: Plan) -> None:
    reports: list[Preflight] = []
    found = by_id(services.launcher.preflight(services.request("rig-login", job), reports.append))["secret-ngc"]
    assert (found.status, "nvidia/nemo:25.02.01" in found.needed) == ("ok", True)
    assert by_id(reports[-1])["secret-ngc"] == found


def test_an_image_that_wants_a_key(services: Services, job: Plan, web: Web) -> None:
    web.key = "nvapi-the-right-one"
    found = by_id(services.launcher.preflight(services.request("rig-login", job)))["secret-ngc"]
    assert found.status == "warning"
    assert "key" in found.fix


def test_a_server_that_is_out_of_order_is_not_asked_for_access(services: Services, job: Plan, web: Web) -> None:
    web.out_of_order = True
    found = by_id(services.launcher.preflight(services.request("rig-login", job)))
    assert found["registry"].status == "failed"
    assert "secret-ngc" not in found


def test_without_a_plan_nothing_is_asked_for_access(services: Services) -> None:
    assert not [
        name
        for name in by_id(services.launcher.preflight(services.clusters.profile("rig-login")))
        if name.startswith("secret")
    ]
