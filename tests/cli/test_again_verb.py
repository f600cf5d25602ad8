"""`submit --again`: repeat a run with a change; nothing is submitted without the usual confirmation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from llmb_tui.cli import main
from llmb_tui.cli.arguments import parser
from llmb_tui.cli.flags import selection_mapping
from llmb_tui.cli.request import fill_from_run
from llmb_tui.cluster.login_profile import NO_SSH_CONFIG
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.run import Run
from llmb_tui.plan.request import read_request
from llmb_tui.plan.selection import Overrides, RunOptions, Selection
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from tests.kit.runs import CATALOG, NEMOTRON, PLAN, intended_run, make_run, request_for

# Nothing listens on its port.
EOS = SlurmProfile(
    "eos", "127.0.0.1", "acct", "batch", "/lustre",
    port=9, known_hosts="/nonexistent", user="me", ssh_config=NO_SSH_CONFIG,
)  # fmt: skip
ODD = Selection(
    "nemotron4", "25.04", "15b", "h100", "bf16", 32, True, Overrides(tp=4, vp=1), 60, "00:20:00",
    RunOptions(profile=True, profile_start=45, load_checkpoint="/lustre/a b"),
)  # fmt: skip


@pytest.fixture
def services(user_places: UserPaths) -> Services:
    services = Services(user_places)
    services.clusters.save(EOS)
    return services


def of(selection: Selection, **fields: Any) -> Run:
    return make_run("before", plan=replace(PLAN, selection=selection), job_state="COMPLETED", **fields)


def filled(run: Run, *words: str) -> Any:
    arguments = parser().parse_args(["submit", "--again", run.id, *words])
    fill_from_run(run, arguments)
    return arguments


def chosen(run: Run, *words: str) -> Selection:
    return read_request(CATALOG, selection_mapping(filled(run, *words)))


@pytest.mark.parametrize(
    "selection", [NEMOTRON, ODD, replace(NEMOTRON, options=RunOptions(profile=True, profile_start=0))]
)
def test_submit_again_without_flags_repeats_the_selection(selection: Selection) -> None:
    assert chosen(of(selection)) == selection
    arguments = filled(of(selection, procedure="upstream"))
    assert (arguments.cluster, arguments.procedure) == ("eos", "upstream")


def test_a_flag_changes_one_value_and_the_change_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert chosen(of(ODD), "--scale", "64") == replace(ODD, scale=64)
    assert capsys.readouterr().err == "Configuration of run before, except for scale 64.\n"
    assert chosen(of(ODD), "-w", "nemotron4-340b@25.12", "-s", "340b").release == "25.12"
    arguments = filled(of(NEMOTRON), "--cluster", "selene", "--procedure", "direct")
    assert (arguments.cluster, arguments.procedure) == ("selene", "direct")


def test_a_run_of_llmb_run_is_submitted_by_another_launch_method(capsys: pytest.CaptureFixture[str]) -> None:
    assert filled(of(NEMOTRON, procedure="llmb")).procedure is None
    assert "another launch method" in capsys.readouterr().err
    assert filled(of(NEMOTRON, procedure="runai")).procedure == "direct"


@pytest.mark.parametrize(
    ("run", "words", "printed"),
    [
        (of(NEMOTRON), (), "Add --yes"),
        (of(NEMOTRON), ("--set", "limits.gpu_hours=1"), "GPU-hours"),
        (of(NEMOTRON), ("--scale", "7"), "cannot be launched"),
        (of(NEMOTRON), ("--resume", "before"), "as it was confirmed"),
        (of(NEMOTRON, cluster="gone"), (), "gone"),
        (of(replace(NEMOTRON, release="1.0")), (), "1.0"),
        (of(replace(NEMOTRON, workload="gone")), (), "gone"),
        (of(replace(NEMOTRON, size="1b")), (), "15b"),
    ],
)
def test_an_impossible_repeat_is_refused_with_the_reason(
    services: Services, run: Run, words: tuple[str, ...], printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    services.runs.save(run)
    assert main(["submit", "--again", "before", *words]) == 1
    assert printed in capsys.readouterr().err
    assert len(services.runs.all()) == 1


def test_an_unknown_run_is_refused(services: Services, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", "--again", "nothing"]) == 1
    assert "no run nothing" in capsys.readouterr().err
    assert services.runs.all() == ()


def test_a_repeat_is_not_submitted_if_its_cluster_is_down(
    services: Services, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing was submitted, and the repeated run is unchanged."""
    services.runs.save(intended_run(request_for(NEMOTRON, EOS), "before"))
    before = services.runs.load("before")
    assert main(["submit", "--again", "before", "--yes"]) == 2
    assert "Nothing was submitted" in capsys.readouterr().err
    assert services.runs.load("before") == before
