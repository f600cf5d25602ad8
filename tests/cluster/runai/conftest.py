from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.runai.https_site import ControlPlane, Site, trusted


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep variables of the caller's environment from affecting the tests."""
    for name in ("https_proxy", "http_proxy", "all_proxy", "no_proxy", "requests_ca_bundle", "ssl_cert_file"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(autouse=True)
def _certificates_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's certificates are read once for all tests, because each read takes 20 ms of a processor."""
    monkeypatch.setattr("llmb_tui.cluster.runai.api.trusting", trusted)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("site"))
    yield site
    site.close()


@pytest.fixture
def site(served: Site) -> Site:
    served.requests.clear()
    return served


@pytest.fixture
def plane(site: Site) -> ControlPlane:
    return ControlPlane(site)
