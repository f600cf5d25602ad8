"""The operator's access to the image and the model, tested from the login node."""

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
    check = by_id(services.launcher.preflight(services.request("rig-login", job), reports.append))["secret-ngc"]
    assert (check.status, "nvidia/nemo:25.02.01" in check.needed) == ("ok", True)
    assert by_id(reports[-1])["secret-ngc"] == check


def test_an_image_that_requires_a_key(services: Services, job: Plan, web: Web) -> None:
    web.key = "nvapi-the-right-one"
    check = by_id(services.launcher.preflight(services.request("rig-login", job)))["secret-ngc"]
    assert check.status == "warning"
    assert "key" in check.fix


def test_access_is_not_checked_on_a_failing_server(services: Services, job: Plan, web: Web) -> None:
    web.out_of_order = True
    checks = by_id(services.launcher.preflight(services.request("rig-login", job)))
    assert checks["registry"].status == "failed"
    assert "secret-ngc" not in checks


def test_without_a_plan_no_access_is_checked(services: Services) -> None:
    assert not [
        name
        for name in by_id(services.launcher.preflight(services.clusters.profile("rig-login")))
        if name.startswith("secret")
    ]
