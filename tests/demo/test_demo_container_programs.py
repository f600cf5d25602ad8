"""Programs that a training is wrapped in, in a container of the demo cluster and on its nodes; and its git."""

from __future__ import annotations

import pytest

from llmb_tui.demo.cluster import DemoCluster
from tests.demo.demo_client import Client


@pytest.fixture
def srun(cluster: DemoCluster) -> str:
    """Begin of a command that runs in a container."""
    image = cluster.root / "home" / "image.sqsh"
    image.write_bytes(b"hsqs")
    return f"srun --container-image={image}"


def test_numactl_knows_two_numa_nodes(client: Client, srun: str) -> None:
    assert client.run(f"{srun} numactl --cpunodebind=1 --membind=1 echo bound").out == "bound\n"
    for words in ("--cpunodebind=2 echo x", "--membind=all echo x", "--cpunodebind=0", "--bogus echo x"):
        answer = client.run(f"{srun} numactl {words}")
        assert (answer.code, answer.out) == (1, "")


def test_nsys_runs_the_command_and_leaves_a_report_that_tells_the_truth(
    cluster: DemoCluster, client: Client, srun: str
) -> None:
    folder = cluster.root / "home" / "reports"
    folder.mkdir()
    mounts = f"--container-mounts={folder}:/out"
    report = "-o /out/%q{SLURM_JOB_ID}_rank%q{SLURM_PROCID} --force-overwrite=true -s none"
    answer = client.run(f"{srun} {mounts} nsys profile {report} sh -c 'echo $0; exit 3' x")
    assert (answer.code, answer.out) == (3, "x\n")
    (made,) = folder.iterdir()
    assert made.name == "1_rank0.nsys-rep"
    assert made.read_text() == "simulated: nothing was profiled\n"
    assert client.run(f"{srun} nsys profile -o /nowhere/x true").code == 1  # the recipes make the folder
    assert client.run(f"{srun} nsys launch true").code == 1


def test_nobody_may_do_anything_by_sudo_on_a_node(client: Client) -> None:
    answer = client.run("srun sudo -n id")
    assert (answer.code, answer.out) == (1, "")
    assert "sudo: a password is required" in answer.err


@pytest.mark.parametrize(
    "words", ["clone --depth 1 https://github.com/NVIDIA/x.git there", "ls-remote git@github.com:a/b"]
)
def test_git_fetches_nothing_to_this_machine(client: Client, words: str) -> None:
    answer = client.run(f"git {words}")
    assert (answer.code, answer.out) == (128, "")
    assert "the demo cluster has no internet" in answer.err
    assert client.run("git init -q --bare here.git && ls").out.splitlines() == ["here.git"]
