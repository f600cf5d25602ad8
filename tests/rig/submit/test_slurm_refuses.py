"""Refusals of a real Slurm, and the errors that users see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from llmb_tui.errors import LlmbError
from tests.rig.cluster import Rig
from tests.rig.machine import OPERATOR
from tests.rig.submit.trial import Trial

NOT_AVAILABLE = "Requested node configuration is not available"


@dataclass(frozen=True)
class RefusedRun:
    """A run that Slurm refuses."""

    what: str
    """Words of the error's first part."""
    words: str
    """Words of Slurm's own message."""
    fix: str
    """Words of the remedy."""
    spec: dict[str, object] = field(default_factory=dict)
    """Fields of the run's spec that cause the refusal."""
    line: str = ""
    """Further option of the run's job."""
    limit: str = ""
    """Limit of a QOS that the run exceeds."""


CASES = {
    "account": RefusedRun(
        what="account `nope` is not one of yours",
        words="Invalid account or account/partition combination specified",
        fix="sacctmgr show assoc",
        spec={"account": "nope"},
    ),
    "partition": RefusedRun(
        what="there is no partition `nope`",
        words="invalid partition specified: nope",
        fix="There are `batch`, `debug`, `small` or `cpu`.",
        spec={"partition": "nope"},
    ),
    "qos": RefusedRun(
        what="account `llmbench` may not use QOS `nope` in partition `batch`",
        words="Invalid qos specification",
        fix="QOS",
        spec={"options": (("qos", "nope"),)},
    ),
    "memory": RefusedRun(
        what="no node of partition `batch` has 9000G of memory",
        words="Memory specification can not be satisfied",
        fix="Lower the memory",
        spec={"memory": "9000G"},
        line="--mem=9000G",
    ),
    "time": RefusedRun(
        what="partition `batch` gives at most 4 h, the run asks for 6 h",
        words="Requested time limit is invalid (missing or exceeds some limit)",
        fix="or choose partition `cpu`",
        spec={"time_limit": "06:00:00"},
    ),
    "time-debug": RefusedRun(
        what="partition `debug` gives at most 30 min, the run asks for 1 h",
        words="Requested time limit is invalid",
        fix="or choose partition `batch`, `small` or `cpu`",
        spec={"partition": "debug", "time_limit": "01:00:00"},
    ),
    "nodes": RefusedRun(
        what="partition `batch` does not give 9 nodes to one job; it has 4 nodes",
        words="Node count specification invalid",
        fix="smaller scale",
        spec={"nodes": 9},
    ),
    "nodes-debug": RefusedRun(
        what="partition `debug` does not give 3 nodes to one job",
        words="Node count specification invalid",
        fix="scontrol show partition debug",
        spec={"partition": "debug", "nodes": 3},
    ),
    "gpus-per-node": RefusedRun(
        what="partition `batch` cannot give 1 node with 9 GPUs each",
        words=NOT_AVAILABLE,
        fix="requests GPUs",
        spec={"tasks_per_node": 9},
        line="--gpus-per-node=9",
    ),
    "gres": RefusedRun(
        what="partition `batch` cannot give 1 node with 9 GPUs each",
        words=NOT_AVAILABLE,
        fix="requests GPUs",
        spec={"tasks_per_node": 9, "gpu_request": "gres"},
        line="--gres=gpu:9",
    ),
    "no-gpus": RefusedRun(
        what="partition `cpu` cannot give 1 node with 8 GPUs each",
        words=NOT_AVAILABLE,
        fix="another partition",
        spec={"partition": "cpu", "tasks_per_node": 8},
        line="--gpus-per-node=8",
    ),
    "gres-name": RefusedRun(
        what="it does not accept `--gres=gpu:8`",
        words="Invalid generic resource (gres) specification",
        fix="gres or gpus-per-node, with or without a GPU type), or choose a partition that has them",
        spec={"tasks_per_node": 8, "gpu_request": "gres"},
        line="--gres=nope:8",
    ),
    "reservation": RefusedRun(
        what="it cannot use reservation `nope` now",
        words="Requested reservation is invalid",
        fix="scontrol show reservation",
        spec={"options": (("reservation", "nope"),)},
    ),
    "constraint": RefusedRun(
        what="no node of partition `batch` has the features `nope`",
        words="Invalid feature specification",
        fix="constraint",
        spec={"options": (("constraint", "nope"),)},
    ),
    "exclude": RefusedRun(
        what="cannot give the nodes that the cluster's profile names or leaves",
        words="Invalid node name specified",
        fix="sinfo -N",
        spec={"options": (("exclude", "nope01"),)},
    ),
    "segment": RefusedRun(
        what="sbatch on this cluster does not know option `--segment`",
        words="unrecognized option '--segment=4'",
        fix="later Slurm",
        spec={"options": (("segment", "4"),)},
    ),
    "flag": RefusedRun(
        what="sbatch on this cluster does not know option `--nope`",
        words="unrecognized option '--nope'",
        fix="profile",
        spec={"options": (("nope", None),)},
    ),
    "qos-jobs": RefusedRun(
        what="allows no further job of yours",
        words="QOSMaxSubmitJobPerUserLimit",
        fix="one of your jobs",
        spec={"options": (("qos", "strict"),)},
        limit="MaxSubmitJobsPerUser=0",
    ),
    "qos-time": RefusedRun(
        what="allows less time than the 30 min that the run asks for",
        words="QOSMaxWallDurationPerJobLimit",
        fix="Lower the time limit",
        spec={"options": (("qos", "strict"),)},
        limit="MaxWall=00:05:00",
    ),
    "qos-nodes": RefusedRun(
        what="does not allow 2 nodes",
        words="QOSMaxNodePerJobLimit",
        fix="smaller scale",
        spec={"nodes": 2, "options": (("qos", "strict"),)},
        limit="MaxTRESPerJob=node=1",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_refusal_is_explained(trial: Trial, case: RefusedRun) -> None:
    run = trial.new(**case.spec)
    lines = [case.line] if case.line else []
    with _strict_qos(trial.rig, case.limit), trial.session() as session, pytest.raises(LlmbError) as caught:
        trial.submit(session, run, *lines)
    assert caught.value.what.startswith("Slurm rejected the job: ")
    assert case.what in caught.value.what
    assert case.words in caught.value.why
    assert case.fix in caught.value.fix
    assert caught.value.exit_code == 1
    assert trial.remembered(run).submission == "refused"
    assert trial.rig.squeue() == []


def test_an_option_of_pyxis_without_pyxis_is_explained(trial: Trial) -> None:
    run = trial.new(options=(("container-image", "nvidia/nemo"),))
    with _without_pyxis(trial.rig), trial.session() as session, pytest.raises(LlmbError) as caught:
        trial.submit(session, run)
    assert "does not know option `--container-image`" in caught.value.what
    assert "plugin" in caught.value.fix


@contextmanager
def _without_pyxis(rig: Rig) -> Iterator[None]:
    plugins = rig.directory / "etc/slurm/plugstack.conf"
    before = plugins.read_text()
    plugins.write_text("")
    try:
        yield
    finally:
        plugins.write_text(before)


@contextmanager
def _strict_qos(rig: Rig, limit: str) -> Iterator[None]:
    """Give the operator a QOS that refuses jobs beyond its limit at once; without a limit change nothing."""
    if not limit:
        yield
        return
    rig.as_root(["sacctmgr", "-i", "add", "qos", "strict", "set", "Flags=DenyOnLimit", limit], check=True)
    rig.as_root(["sacctmgr", "-i", "modify", "user", OPERATOR, "set", "qos+=strict"], check=True)
    try:
        yield
    finally:
        rig.as_root(["sacctmgr", "-i", "delete", "qos", "strict"], check=True)
