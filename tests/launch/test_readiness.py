"""The check before each start of a run: its objections, and that no start bypasses it, also on read-only clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.failures import ReadOnlyError
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.launch.direct.install import direct_install
from llmb_tui.launch.direct.render import render
from llmb_tui.launch.install import Installer
from llmb_tui.launch.launcher import Launcher
from llmb_tui.launch.policy import Policy
from llmb_tui.launch.prepared import PreparedRun
from llmb_tui.launch.readiness import ClusterEvidence, NotReadyError, blockers, read_only_problems, request_problems
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.secrets import forget_secret, put_secret
from llmb_tui.launch.step_state import StepState
from llmb_tui.preflight.needs import Sources
from llmb_tui.preflight.report import Check, Preflight
from llmb_tui.preflight.secret import SecretValue
from llmb_tui.request import RunRequest
from llmb_tui.services import Services
from llmb_tui.store.journal import Journal
from llmb_tui.store.paths import UserPaths
from tests.kit.runs import intended_run
from tests.launch.launch_cases import PROFILE, ROWS, RUN_ID, MakePlan

OK = Check("disk", "Free space", "ok", "90 GB", "60 GB", "")
FULL = replace(OK, status="failed", found="3 GB", fix="Free some space.")
DONE = StepState("image", "Container image", "done")
READY = ClusterEvidence(Preflight((OK,)), (DONE,))
ANYTHING = Policy()


@pytest.fixture
def request_(catalog: Catalog, make_plan: MakePlan) -> RunRequest:
    """64 GPUs for about half an hour, by our script."""
    row = ROWS["nemotron4-25.04"]
    return RunRequest(catalog.recipe(row[0]), make_plan(*row, time_limit="00:30:00"), PROFILE)


def fields(request: RunRequest, policy: Policy = ANYTHING, evidence: ClusterEvidence = READY) -> list[str]:
    result = blockers(request, policy, evidence)
    assert all(one.reason and one.fix and one.severity == "error" for one in result)
    return [one.field for one in result]


def test_a_ready_cluster_has_no_blockers(request_: RunRequest) -> None:
    assert fields(request_) == []


@pytest.mark.parametrize(
    ("evidence", "against", "words"),
    [
        (ClusterEvidence(), ["cluster", "install"], "not checked"),
        (replace(READY, preflight=None), ["cluster"], "not checked"),
        (replace(READY, preflight=Preflight((OK, FULL))), ["cluster"], "found 3 GB, needed 60 GB"),
        (replace(READY, preflight=Preflight((replace(OK, status="warning"),))), [], ""),
        (replace(READY, steps=()), ["install"], "have not been checked"),
        (replace(READY, steps=(DONE, replace(DONE, status="running"))), ["install"], "Not installed yet: C"),
    ],
    ids=["nothing", "unchecked", "failed", "warned", "unseen", "unfinished"],
)
def test_the_clusters_state_blocks_a_run(
    request_: RunRequest, evidence: ClusterEvidence, against: list[str], words: str
) -> None:
    assert fields(request_, evidence=evidence) == against
    assert words in " ".join(blocker.reason for blocker in blockers(request_, ANYTHING, evidence))
    assert request_problems(request_, ANYTHING) == ()


def test_problems_of_the_plan_and_of_the_procedure_block_a_run(catalog: Catalog, make_plan: MakePlan) -> None:
    row = ROWS["grok1-25.02"]
    request = RunRequest(catalog.recipe(row[0]), make_plan(*row, steps=20), PROFILE)
    assert fields(request) == []
    assert fields(replace(request, procedure="upstream")) == ["steps"]
    assert fields(replace(request, procedure="llmb")) == ["procedure"]
    odd = make_plan(*row[:4], 63)
    assert fields(replace(request, plan=odd))[0] == next(
        problem.field for problem in odd.problems if problem.severity == "error"
    )


@pytest.mark.parametrize(("limit", "against"), [(None, []), (32.0, []), (31.9, ["gpu_hours"])])
def test_the_limit_counts_all_gpus_for_the_whole_time_limit(
    request_: RunRequest, limit: float | None, against: list[str]
) -> None:
    assert fields(request_, Policy(gpu_hours=limit)) == against


def test_a_read_only_cluster_is_the_flags_or_the_profiles(request_: RunRequest) -> None:
    watched = replace(request_, profile=replace(PROFILE, read_only=True))
    (flag,) = blockers(request_, Policy(read_only=True), READY)
    (profile,) = blockers(watched, ANYTHING, READY)
    assert flag.field == profile.field == "observer"
    assert ("--read-only" in flag.reason, "profile" in profile.reason) == (True, True)
    assert read_only_problems(PROFILE, ANYTHING) == ()


@pytest.mark.parametrize(
    ("policy", "evidence", "said"),
    [
        (Policy(read_only=True), READY, ("is read-only", 1)),
        (Policy(gpu_hours=1), READY, ("GPU-hours", 1)),
        (ANYTHING, replace(READY, preflight=Preflight((FULL,))), ("not ready", 2)),
        (ANYTHING, replace(READY, steps=(replace(DONE, status="missing"),)), ("not installed", 1)),
    ],
    ids=["observer", "limit", "cluster", "install"],
)
def test_submit_refuses_a_run_that_is_not_ready_before_any_change(
    request_: RunRequest, tmp_path: Path, policy: Policy, evidence: ClusterEvidence, said: tuple[str, int]
) -> None:
    places = UserPaths(tmp_path / "config", tmp_path / "state")
    runs, journal = Runs(places), Journal(places.journal)
    launcher = Launcher(Services(places).clusters.cluster, Catalog(()), runs, journal, policy, Sources(), render)
    run = intended_run(request_, RUN_ID)
    with pytest.raises(NotReadyError, match=said[0]) as refused:
        launcher.submit(PreparedRun(request_, run, "#!/bin/sh"), evidence)
    assert (refused.value.exit_code, bool(refused.value.fix)) == (said[1], True)
    assert (runs.has(RUN_ID), journal.read()) == (False, [])


CHANGES: dict[str, Callable[[SlurmCluster, RunRequest], object]] = {
    "cancel": lambda session, _: session.cancel("101"),
    "install": lambda session, asked: Installer(session, PROFILE, direct_install(asked)).run(print, None),  # type: ignore[arg-type]
    "give a key": lambda session, _: put_secret(session, SecretValue("ngc", "nvapi-0123456789")),
    "forget a key": lambda session, _: forget_secret(session, "ngc"),
    "write a file": lambda session, _: session.write_file("/x", b""),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_of_a_cluster_are_refused_without_a_connection(request_: RunRequest, change: str) -> None:
    session = SlurmCluster(replace(PROFILE, read_only=True))
    with pytest.raises(ReadOnlyError, match="is read-only") as refused:
        CHANGES[change](session, request_)
    assert (refused.value.exit_code, bool(refused.value.fix)) == (1, True)
    assert session.state != "live"


def test_a_session_is_read_only_by_the_flag_too(tmp_path: Path) -> None:
    places = UserPaths(tmp_path / "config", tmp_path / "state")
    for flag, by_profile in ((False, False), (True, False), (False, True)):
        services = Services(places, read_only=flag)
        services.clusters.save(replace(PROFILE, read_only=by_profile))
        assert services.clusters.login_node(PROFILE.name).read_only is (flag or by_profile)
        assert services.clusters.profile(PROFILE.name).read_only is by_profile
