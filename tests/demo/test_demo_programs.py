"""Programs of the demo cluster other than Slurm's: on its login node, on its nodes and in its containers."""

from __future__ import annotations

import pytest

from llmb_tui.demo.cluster import DemoCluster
from tests.demo.demo_client import Client
from tests.kit.demo import fault

IMPORT = "enroot import --output {} --arch x86_64 docker://nvcr.io#nvidia/nemo:25.02.01"


@pytest.fixture
def srun(cluster: DemoCluster) -> str:
    """Start of a command that runs in a container."""
    image = cluster.root / "home" / "image.sqsh"
    image.write_bytes(b"hsqs")
    return f"srun --container-image={image}"


def test_enroot_imports_an_image_that_srun_accepts(cluster: DemoCluster, client: Client) -> None:
    answer = client.run(IMPORT.format("nemo.sqsh"))
    assert answer.code == 0
    assert answer.err.startswith("[INFO] Simulated cluster: nothing is downloaded")
    assert "[INFO] Downloading 66 missing layers...\n" in answer.err
    image = cluster.root / "home" / "nemo.sqsh"
    assert image.stat().st_size > 5e9
    assert image.stat().st_blocks * 512 < 1e8
    assert client.on_node(f"srun --container-image={image} echo here") == "here\n0\n"
    again = client.run(IMPORT.format("nemo.sqsh"))
    assert (again.code, again.err.splitlines()[-1]) == (1, "Could not create destination file: File exists")


def test_enroot_refuses(cluster: DemoCluster, client: Client) -> None:
    good = IMPORT.format("x.sqsh")
    for command, text in (
        (good.replace("docker:", "http:"), "[ERROR] Invalid image reference: http://nvcr.io#nvidia/nemo:25.02.01\n"),
        (good.replace("25.02.01", "latest"), "returned error code: 404 Not Found\n"),
        (IMPORT.format("/nonexistent/x"), "No such file or directory\n"),
        ("enroot create x.sqsh", "the simulated enroot of the demo does not offer that\n"),
        (f"{good} --bogus", "unrecognized option '--bogus': the simulated enroot of the demo does not offer that\n"),
    ):
        answer = client.run(command)
        assert answer.code == 1, command
        assert text in answer.err
    fault(cluster, "no-space")
    answer = client.run(good)
    assert answer.code == 1
    assert "No space left on device" in answer.err
    assert not (cluster.root / "home" / "x.sqsh").exists()


def test_numactl_accepts_two_numa_nodes(client: Client, srun: str) -> None:
    assert client.on_node(f"{srun} numactl --cpunodebind=1 --membind=1 echo bound") == "bound\n0\n"
    for words in ("--cpunodebind=2 echo x", "--membind=all echo x", "--cpunodebind=0", "--bogus echo x"):
        assert client.on_node(f"{srun} numactl {words}").endswith("Exited with exit code 1\n1\n")


def test_nsys_runs_the_command_and_writes_a_report_marked_as_simulated(
    cluster: DemoCluster, client: Client, srun: str
) -> None:
    folder = cluster.root / "home" / "reports"
    folder.mkdir()
    mounts = f"--container-mounts={folder}:/out"
    report = "-o /out/%q{SLURM_JOB_ID}_rank%q{SLURM_PROCID} --force-overwrite=true -s none"
    log = client.on_node(f"{srun} {mounts} nsys profile {report} sh -c 'echo $0; exit 3' x")
    assert log.startswith("x\n")
    assert log.endswith("\n3\n")
    (path,) = folder.iterdir()
    assert path.name == "1_rank0.nsys-rep"
    assert path.read_text() == "simulated: nothing was profiled\n"
    assert "nsys: the directory of /nowhere/x" in client.on_node(f"{srun} nsys profile -o /nowhere/x true")
    assert "does not offer that" in client.on_node(f"{srun} nsys launch true")
    assert "does not offer that" in client.on_node(f"{srun} nsys profile -o x")


def test_sudo_refuses_every_command_on_a_node(client: Client) -> None:
    assert "sudo: a password is required" in client.on_node("srun sudo -n id")


@pytest.mark.parametrize(
    "words", ["clone --depth 1 https://github.com/NVIDIA/x.git there", "ls-remote git@github.com:a/b"]
)
def test_git_fetches_nothing_to_this_machine(client: Client, words: str) -> None:
    answer = client.run(f"git {words}")
    assert (answer.code, answer.out) == (128, "")
    assert "the demo cluster has no internet" in answer.err
    assert client.run("git init -q --bare here.git && ls").out.splitlines() == ["here.git"]


def test_df_simulates_only_the_shared_file_system(cluster: DemoCluster, client: Client) -> None:
    shared = cluster.root / "shared"
    heading, line = client.run(f"df -Pk {shared}").out.splitlines()
    _, size, used, free, _, mounted = line.split()
    assert heading.split()[1] == "1024-blocks"
    assert (int(size), mounted) == (int(used) + int(free), str(shared))
    assert client.run(f"df -Pk {cluster.root / 'home'}").out.splitlines()[1].split()[0] != "simulated"


def test_curl_simulates_the_registry_and_the_hub(client: Client) -> None:
    answer = client.run(
        "curl -q -sSi -w '\\n%{http_code}\\n' -K - -- https://nvcr.io/v2/nvidia/nemo/manifests/25.02.01"
    )
    assert answer.out.startswith("HTTP/2 200\r\nx-simulated: yes\r\n\r\n{")
    assert answer.out.endswith("\n200\n")
    assert client.run("curl -sS -o /dev/null -w '%{http_code}' https://huggingface.co/api/whoami-v2").out == "401"
    assert client.run("curl -sS http://127.0.0.1:1").code == 7
