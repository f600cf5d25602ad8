"""What a real Slurm refuses, and what a person is told of it."""

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
class Refused:
    """A run that Slurm does not take."""

    what: str
    """Words of the answer."""
    words: str
    """Slurm's own."""
    mend: str
    """Words of what is to be done."""
    spec: dict[str, object] = field(default_factory=dict)
    """What the run asks for."""
    line: str = ""
    """A further option of its job."""
    limit: str = ""
    """What a QOS of the operator's does not allow."""


CASES = {
    "account": Refused(
        what="account `nope` is not one of yours",
        words="Invalid account or account/partition combination specified",
        mend="sacctmgr show assoc",
        spec={"account": "nope"},
    ),
    "partition": Refused(
        what="there is no partition `nope`",
        words="invalid partition specified: nope",
        mend="There are `batch`, `debug`, `small` or `cpu`.",
        spec={"partition": "nope"},
    ),
    "qos": Refused(
        what="account `llmbench` may not use QOS `nope` in partition `batch`",
        words="Invalid qos specification",
        mend="QOS",
        spec={"options": (("qos", "nope"),)},
    ),
    "memory": Refused(
        what="no node of partition `batch` has 9000G of memory",
        words="Memory specification can not be satisfied",
        mend="Lower the memory",
        spec={"memory": "9000G"},
        line="--mem=9000G",
    ),
    "time": Refused(
        what="partition `batch` gives at most 4 h, the run asks for 6 h",
        words="Requested time limit is invalid (missing or exceeds some limit)",
        mend="or choose partition `cpu`",
        spec={"time_limit": "06:00:00"},
    ),
    "time-debug": Refused(
        what="partition `debug` gives at most 30 min, the run asks for 1 h",
        words="Requested time limit is invalid",
        mend="or choose partition `batch`, `small` or `cpu`",
        spec={"partition": "debug", "time_limit": "01:00:00"},
    ),
    "nodes": Refused(
        what="partition `batch` does not give 9 nodes to one job; it has 4 nodes",
        words="Node count specification invalid",
        mend="smaller scale",
        spec={"nodes": 9},
    ),
    "nodes-debug": Refused(
        what="partition `debug` does not give 3 nodes to one job",
        words="Node count specification invalid",
        mend="scontrol show partition debug",
        spec={"partition": "debug", "nodes": 3},
    ),
    "gpus-per-node": Refused(
        what="partition `batch` cannot give 1 node with 9 GPUs each",
        words=NOT_AVAILABLE,
        mend="requests GPUs",
        spec={"tasks_per_node": 9},
        line="--gpus-per-node=9",
    ),
    "gres": Refused(
        what="partition `batch` cannot give 1 node with 9 GPUs each",
        words=NOT_AVAILABLE,
        mend="requests GPUs",
        spec={"tasks_per_node": 9, "gpu_request": "gres"},
        line="--gres=gpu:9",
    ),
    "no-gpus": Refused(
        what="partition `cpu` cannot give 1 node with 8 GPUs each",
        words=NOT_AVAILABLE,
        mend="another partition",
        spec={"partition": "cpu", "tasks_per_node": 8},
        line="--gpus-per-node=8",
    ),
    "gres-name": Refused(
        what="it does not accept `--gres=gpu:8`",
        words="Invalid generic resource (gres) specification",
        mend="gres or gpus-per-node, or choose a partition that has them",
        spec={"tasks_per_node": 8, "gpu_request": "gres"},
        line="--gres=nope:8",
    ),
    "reservation": Refused(
        what="it cannot use reservation `nope` now",
        words="Requested reservation is invalid",
        mend="scontrol show reservation",
        spec={"options": (("reservation", "nope"),)},
    ),
    "constraint": Refused(
        what="no node of partition `batch` has the features `nope`",
        words="Invalid feature specification",
        mend="constraint",
        spec={"options": (("constraint", "nope"),)},
    ),
    "exclude": Refused(
        what="cannot give the nodes that the cluster's profile names or leaves",
        words="Invalid node name specified",
        mend="sinfo -N",
        spec={"options": (("exclude", "nope01"),)},
    ),
    "segment": Refused(
        what="sbatch on this cluster does not know option `--segment`",
        words="unrecognized option '--segment=4'",
        mend="later Slurm",
        spec={"options": (("segment", "4"),)},
    ),
    "flag": Refused(
        what="sbatch on this cluster does not know option `--nope`",
        words="unrecognized option '--nope'",
        mend="profile",
        spec={"options": (("nope", None),)},
    ),
    "qos-jobs": Refused(
        what="allows no further job of yours",
        words="QOSMaxSubmitJobPerUserLimit",
        mend="one of your jobs",
        spec={"options": (("qos", "strict"),)},
        limit="MaxSubmitJobsPerUser=0",
    ),
    "qos-time": Refused(
        what="allows less time than the 30 min that the run asks for",
        words="QOSMaxWallDurationPerJobLimit",
        mend="Lower the time limit",
        spec={"options": (("qos", "strict"),)},
        limit="MaxWall=00:05:00",
    ),
    "qos-nodes": Refused(
        what="does not allow 2 nodes",
        words="QOSMaxNodePerJobLimit",
        mend="smaller scale",
        spec={"nodes": 2, "options": (("qos", "strict"),)},
        limit="MaxTRESPerJob=node=1",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_refusal_is_explained(trial: Trial, case: Refused) -> None:
    run = trial.new(**case.spec)
    lines = [case.line] if case.line else []
    with _strict_qos(trial.rig, case.limit), trial.session() as session, pytest.raises(LlmbError) as caught:
        trial.submit(session, run, *lines)
    assert caught.value.what.startswith("Slurm rejected the job: ")
    assert case.what in caught.value.what
    assert case.words in caught.value.why
    assert case.mend in caught.value.fix
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
    """A QOS of the operator's that refuses, at once, what is past its limit; none without a limit."""
    if not limit:
        yield
        return
    rig.as_root(["sacctmgr", "-i", "add", "qos", "strict", "set", "Flags=DenyOnLimit", limit], check=True)
    rig.as_root(["sacctmgr", "-i", "modify", "user", OPERATOR, "set", "qos+=strict"], check=True)
    try:
        yield
    finally:
        rig.as_root(["sacctmgr", "-i", "delete", "qos", "strict"], check=True)
