"""The binding to a NUMA node, and the variables of a node's first rank, run by a shell as a task runs them."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.launch.direct.option_effects import with_network_lines
from llmb_tui.launch.direct.spec_of import bound
from llmb_tui.launch.settings import ResolvedSettings, resolve_settings
from llmb_tui.request import RunRequest
from llmb_tui.watch.parse import StepParser
from tests.launch.launch_cases import PROFILE, ROWS, MakePlan

HOSTILE = ("printf", "<%s>", "$HOME `id`", "\"'\\", "", "*", "a b")
"""Command that prints each of its arguments."""
PRINTED = "".join(f"<{word}>" for word in HOSTILE[2:])


@pytest.fixture(scope="module")
def settings(catalog: Catalog, make_plan: MakePlan) -> ResolvedSettings:
    row = ROWS["nemotron4-340b-25.12"]
    return resolve_settings(RunRequest(catalog.recipe(row[0]), make_plan(*row), PROFILE))


def _task(
    settings: ResolvedSettings, folder: Path, local: int, numactl: str | None
) -> subprocess.CompletedProcess[str]:
    """Run one task of a node whose numactl is this shell script; with None there is no numactl."""
    programs = folder / "bin"
    programs.mkdir()
    for name in ("bash", "true", "printf"):
        result = next(Path(place, name) for place in ("/bin", "/usr/bin") if Path(place, name).exists())
        (programs / name).symlink_to(result)
    if numactl is not None:
        (programs / "numactl").write_text(f"#!/bin/sh\n{numactl}\n")
        (programs / "numactl").chmod(0o755)
    environment = {"PATH": str(programs), "SLURM_LOCALID": str(local), "SLURM_PROCID": "7", "LOG": str(folder / "log")}
    return subprocess.run(
        bound(HOSTILE, settings, PROFILE), env=environment, capture_output=True, text=True, check=False, timeout=20
    )


@pytest.mark.parametrize(("local", "node"), [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_a_task_is_bound_to_the_node_of_its_number(
    settings: ResolvedSettings, tmp_path: Path, local: int, node: int
) -> None:
    result = _task(settings, tmp_path, local, 'echo "$1 $2 $3" >>"$LOG"; shift 2; exec "$@"')
    assert (result.stdout, result.stderr, result.returncode) == (PRINTED, "", 0)
    assert (tmp_path / "log").read_text().splitlines() == [
        f"--cpunodebind={node} --membind={node} {program}" for program in ("true", "printf")
    ]


@pytest.mark.parametrize("numactl", [None, 'echo "<$1> is invalid" >&2; exit 1'])
def test_a_task_that_cannot_be_bound_runs_unbound_and_reports_it(
    settings: ResolvedSettings, tmp_path: Path, numactl: str | None
) -> None:
    result = _task(settings, tmp_path, 3, numactl)
    assert (result.stdout, result.returncode) == (PRINTED, 0)
    assert result.stderr.endswith("task 7 is not bound to a NUMA node\n")
    parser = StepParser("nemo2")
    parser.feed(result.stderr.encode())
    assert parser.unbound == {7}, "the verdict names it"


def test_a_failed_training_is_not_run_twice(settings: ResolvedSettings, tmp_path: Path) -> None:
    command = bound(("bash", "-c", 'echo once >>"$LOG"; exit 3'), settings, PROFILE)
    (tmp_path / "numactl").write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    (tmp_path / "numactl").chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "SLURM_LOCALID": "0",
        "LOG": str(tmp_path / "log"),
    }
    assert subprocess.run(command, env=environment, check=False, timeout=20).returncode == 3
    assert (tmp_path / "log").read_text() == "once\n"


def test_nothing_is_bound_without_the_recipe_or_the_profile(settings: ResolvedSettings) -> None:
    assert bound(HOSTILE, replace(settings, tasks_per_numa_node=None), PROFILE) == HOSTILE
    assert bound(HOSTILE, settings, replace(PROFILE, numa_binding=False)) == HOSTILE
    assert bound(HOSTILE, settings, replace(PROFILE, cpus_per_task=8)) == HOSTILE


def _variables(settings: ResolvedSettings, **environment: str) -> list[str]:
    """NCCL's variables in a training, sorted by name."""
    program = ("sh", "-c", "env | sort | grep ^NCCL_ || :")
    command = bound(with_network_lines(program), settings, PROFILE)
    result = subprocess.run(command, env={"PATH": os.environ["PATH"], **environment}, capture_output=True, check=True)
    return result.stdout.decode().splitlines()


def test_only_the_first_rank_of_a_node_lets_nccl_write_its_network_lines(settings: ResolvedSettings) -> None:
    wanted = ["NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE=/nemo_run/nccl/%h.%p", "NCCL_DEBUG_SUBSYS=INIT,NET"]
    for placed in (settings, replace(settings, tasks_per_numa_node=None)):
        assert _variables(placed, SLURM_LOCALID="0", SLURM_PROCID="8") == wanted
        assert _variables(placed, SLURM_LOCALID="1", SLURM_PROCID="9") == []
        assert _variables(placed, SLURM_PROCID="0") == [], "without Slurm's number nothing is written"
        assert _variables(placed, SLURM_LOCALID="0", NCCL_DEBUG="WARN") == ["NCCL_DEBUG=WARN"]


def test_the_training_gets_its_arguments_and_its_exit_code_behind_the_variables(settings: ResolvedSettings) -> None:
    unbound = replace(settings, tasks_per_numa_node=None)
    for local in ("0", "1"):
        result = subprocess.run(
            bound(with_network_lines(("bash", "-c", 'printf "<%s>" "$@"; exit 7', *HOSTILE[2:])), unbound, PROFILE),
            env={"PATH": os.environ["PATH"], "SLURM_LOCALID": local},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (result.stdout, result.returncode) == ("".join(f"<{word}>" for word in HOSTILE[3:]), 7)
