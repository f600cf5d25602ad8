from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.launch.procedure_loader import procedure
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import ProcedureId, Selection
from llmb_tui.preflight.kinds import cluster_checks
from llmb_tui.preflight.needs import Needs
from llmb_tui.preflight.report import Check
from llmb_tui.preflight.run import run_preflight
from llmb_tui.request import RunRequest
from tests.rig.cluster import Rig
from tests.rig.preflight.site import by_id, sources, web_server

Look = Callable[..., dict[str, Check]]


@pytest.fixture(scope="session")
def job(catalog: Catalog) -> Plan:
    """Nemotron4 15b on all four nodes of `batch`."""
    return plan(catalog, Selection("nemotron4", "25.04", "15b", "h100", "fp8", 32))


@pytest.fixture(scope="session")
def servers() -> Iterator[str]:
    """Registry, git host and hub, which answer as they answer a client without a key."""
    with web_server(401) as address:
        yield address


@pytest.fixture
def session(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    session = SlurmCluster(rig.profile())
    yield session
    session.close()


@pytest.fixture
def look(rig: Rig, session: SlurmCluster, catalog: Catalog, job: Plan, servers: str) -> Look:
    """A function that runs a preflight for the job and returns checks by id; `changes` are fields of the profile."""
    recipe = catalog.recipe("nemotron4", "25.04")

    def look(
        made: Plan | None = job, address: str = servers, name: ProcedureId = "direct", **changes: Any
    ) -> dict[str, Check]:
        profile = rig.profile(**changes)
        needs = procedure(name).needs(RunRequest(recipe, made, profile, name)) if made is not None else Needs(profile)
        assert isinstance(needs, Needs)
        return by_id(run_preflight(session, cluster_checks(replace(needs, sources=sources(address)))))

    return look


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port without a listener that no other process can get."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]
