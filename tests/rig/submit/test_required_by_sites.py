"""Requests that sites require or accept, decided by a real Slurm."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import pytest

from llmb_tui.cluster.slurm.client import slurm_version
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.validation import MEMORY, matches
from llmb_tui.launch.direct.render import render
from llmb_tui.launch.direct.spec_of import launch_spec
from llmb_tui.launch.naming import new_run_id
from llmb_tui.plan.options import seconds_of
from llmb_tui.plan.selection import Selection
from tests.kit.runs import request_for
from tests.rig.cluster import Rig

NEMOTRON = Selection("nemotron4", "25.04", "15b", "h100", "fp8", 16)
JSON = '{"OccupiedIdleGPUsJobReaper":{"exemptIdleTimeMins":"90","reason":"model_loading"}}'
HOSTILE = r"""{"a": "b; c", "d": "it's -N 99 #x $(id) `id` \"q\" \\ %j"}"""


@pytest.fixture
def held_job(rig: Rig) -> Callable[..., dict[str, str]]:
    """A function that submits the rendered script of a profile, held, and returns Slurm's record of the job."""

    def submit(**changes: Any) -> dict[str, str]:
        profile = rig.profile(install_dir=str(rig.new_dir()), **changes)
        with contextlib.closing(SlurmCluster(profile)) as session:
            spec = launch_spec(request_for(NEMOTRON, profile), new_run_id(time.time()), slurm_version(session))
        rig.as_operator(["mkdir", "-p", spec.task_dir], check=True)
        answer = rig.as_operator(["sbatch", "--parsable", "--hold"], stdin=render(spec), check=True).stdout
        record = rig.as_operator(["scontrol", "show", "job", answer.strip()], check=True).stdout
        return dict(line.strip().split("=", 1) for line in record.splitlines() if "=" in line)

    return submit


@pytest.mark.parametrize("comment", [JSON, HOSTILE])
def test_slurm_stores_a_comment_as_the_profile_has_it(held_job: Callable[..., dict[str, str]], comment: str) -> None:
    assert held_job(slurm_params=f"comment={comment};nice=1")["Comment"] == comment


@pytest.mark.parametrize(
    ("gpu_request", "requested"), [("gpus-per-node", "TresPerNode"), ("gres", "TresPerNode")], ids=lambda value: value
)
def test_a_job_requests_gpus_by_type(held_job: Callable[..., dict[str, str]], gpu_request: str, requested: str) -> None:
    assert held_job(gpu_request=gpu_request, gpu_type="h100")[requested] in ("gres:gpu:h100:8", "gpu:h100:8")


def test_slurm_chooses_its_default_partition_for_a_job_without_one(held_job: Callable[..., dict[str, str]]) -> None:
    assert held_job(partition="")["Partition"].split()[0] == "batch"


def test_memory_in_any_notation_is_what_slurm_reads(held_job: Callable[..., dict[str, str]]) -> None:
    assert "MinMemoryNode=20G" in held_job(memory="020gb")["MinCPUsNode"]


AMOUNTS = "0 00 0G 500 500K 500k 500M 500m 500MB 500Mb 020G 20G 20g 20GB 1T 1t".split()
NO_AMOUNTS = ["500MiB", "20GiB", "1.5G", "0.5T", "20Gi", "1 G", "-1", "5e3", "20GBx", "1P", "all"]


@pytest.mark.parametrize("amount", [*AMOUNTS, *NO_AMOUNTS])
def test_sbatch_accepts_the_amounts_of_memory_that_a_profile_may_have(rig: Rig, amount: str) -> None:
    words = trial(rig, f"--mem={amount}")
    assert ("Invalid --mem specification" not in words) == (amount in AMOUNTS) == matches(MEMORY, amount)


TIMES = {
    "30": 1800, "90": 5400, "30:00": 1800, "00:90:00": 5400, "1:2:3": 3723, "01:60:00": 7200, "0-1": 3600,
    "0-1:30": 5400, "0-1:30:00": 5400, "0:30:00": 1800, "1:30": 90,
}  # fmt: skip


@pytest.mark.parametrize("limit", [*TIMES, "1h", "+1", "30m", ""])
def test_sbatch_accepts_the_time_limits_that_a_selection_may_have(rig: Rig, limit: str) -> None:
    words = trial(rig, f"--time={limit}")
    accepted = "to start at" in words
    assert accepted == (limit in TIMES), words
    assert seconds_of(limit) == TIMES.get(limit, 0)
    if accepted:
        hold = rig.as_operator(["sbatch", "--hold", "--parsable", "-A", "llmbench", "--wrap=true", f"--time={limit}"])
        record = rig.as_operator(["squeue", "-h", "-j", hold.stdout.strip(), "-o", "%l"], check=True).stdout.strip()
        minutes = -(-TIMES[limit] // 60)  # Slurm rounds up to minutes
        assert seconds_of(record if record.count(":") == 2 else f"0:{record}") == minutes * 60


def trial(rig: Rig, *options: str) -> str:
    """Words of `sbatch --test-only`."""
    return rig.as_operator(["sbatch", "--test-only", "-A", "llmbench", "-p", "batch", "--wrap=true", *options]).stderr
