"""`srun`, `enroot`, `df` and `git` on the login node of the demo cluster."""

from __future__ import annotations

from llmb_tui.demo.cluster import DemoCluster
from tests.demo.demo_client import Client, wait_for


def test_srun_has_an_allocation_of_its_own(client: Client) -> None:
    answer = client.run("srun -N 2 sh -c 'hostname; echo $SLURM_NTASKS $SLURM_JOB_NODELIST; cat; exit 3'", b"input\n")
    assert answer.code == 3
    assert answer.out == "demo001\n2 demo[001-002]\ninput\n"
    assert answer.err == (
        "srun: job 1 queued and waiting for resources\nsrun: job 1 has been allocated resources\n"
        "srun: simulated cluster: task 0 of 2 is a real process, the others are not\n"
        "srun: error: demo001: task 0: Exited with exit code 3\n"
    )
    assert client.run("sacct -n -P -j 1 -o jobid,jobname,state,exitcode").out == "1|sh|FAILED|3:0\n1.0|sh|FAILED|3:0\n"


def test_srun_refuses(client: Client) -> None:
    for words, code, text in (
        ("", 1, "srun: fatal: No command given to execute.\n"),
        ("--bogus true", 255, "srun: unrecognized option '--bogus'\n"),
        ("-A x true", 1, "srun: error: Unable to allocate resources: Invalid account or account/partition"),
        ("-N 999 true", 1, "srun: error: Unable to allocate resources: Node count specification invalid\n"),
        ("--jobid=99 true", 1, "srun: error: Unable to confirm allocation for job 99: Invalid job id specified\n"),
    ):
        answer = client.run(f"srun {words}")
        assert answer.code == code
        assert answer.err.startswith(text)
    answer = client.run("srun no-such-program")
    assert answer.code == 2
    assert "slurmstepd: error: execve(): no-such-program: No such file or directory\n" in answer.err


def test_a_broken_line_ends_an_interactive_srun(cluster: DemoCluster, client: Client) -> None:
    channel = client.start("exec srun sleep 60")
    wait_for(lambda: client.run("squeue -h -o %T").out == "RUNNING\n", "the job to run")
    cluster.drop_connections()
    again = Client(cluster.profile)
    again.wait_for_state("1", "CANCELLED", "NODE_FAIL")
    assert channel.closed
    again.ssh.close()


def test_pyxis_is_a_plugin_of_srun_and_sbatch(client: Client) -> None:
    for program in ("srun", "sbatch"):
        assert "--container-image=" in client.run(f"{program} --help").out


def test_enroot_imports_an_image_that_srun_takes(cluster: DemoCluster, client: Client) -> None:
    answer = client.run("enroot import -o nemo.sqsh docker://nvcr.io#nvidia/nemo:25.02.01")
    assert answer.code == 0
    assert answer.err.startswith("[INFO] Simulated cluster: nothing is downloaded")
    assert "[INFO] Downloading 66 missing layers...\n" in answer.err
    image = cluster.root / "home" / "nemo.sqsh"
    assert image.stat().st_size > 5e9
    assert image.stat().st_blocks * 512 < 1e8
    assert client.run(f"srun --container-image={image} python -c 'print(1)'").out == "1\n"
    again = client.run("enroot import --output=nemo.sqsh docker://nvcr.io#nvidia/nemo:25.02.01")
    assert (again.code, again.err) == (1, f"[ERROR] File already exists: {image}\n")


def test_enroot_refuses(cluster: DemoCluster, client: Client) -> None:
    for words, text in (
        ("import http://x", "[ERROR] Invalid argument: http://x\n"),
        ("import 'docker://a b#c#d'", "[ERROR] Invalid image reference: docker://a b#c#d\n"),
        ("import docker://nvcr.io#nvidia/nemo:latest", "returned error code: 404 Not Found\n"),
        ("import -o /nonexistent/x docker://nvcr.io#nvidia/nemo:24.09", "No such file or directory\n"),
        ("import", "Usage: enroot import"),
        ("import --bogus x", "Usage: enroot import"),
        ("bogus", "Usage: enroot COMMAND"),
    ):
        answer = client.run(f"enroot {words}")
        assert answer.code == 1, words
        assert text in answer.err
    cluster.fault("no-space")
    answer = client.run("enroot import -o x.sqsh docker://nvcr.io#nvidia/nemo:24.09")
    assert answer.code == 1
    assert "No space left on device" in answer.err
    assert not (cluster.root / "home" / "x.sqsh").exists()


def test_df_knows_the_shared_file_system_and_is_the_real_one_otherwise(cluster: DemoCluster, client: Client) -> None:
    shared = cluster.root / "shared"
    heading, line = client.run(f"df -Pk {shared}").out.splitlines()
    _, size, used, free, _, mounted = line.split()
    assert heading.split()[1] == "1024-blocks"
    assert (int(size), mounted) == (int(used) + int(free), str(shared))
    assert client.run(f"df -Pk {cluster.root / 'home'}").out.splitlines()[1].split()[0] != "simulated"


def test_curl_simulates_the_registry_and_the_hub(client: Client) -> None:
    answer = client.run("curl -sSi -w '\\n%{http_code}\\n' -- https://nvcr.io/v2/nvidia/nemo/manifests/25.02.01")
    assert answer.out.startswith("HTTP/2 200\r\nx-simulated: yes\r\n\r\n{")
    assert answer.out.endswith("\n200\n")
    assert client.run("curl -s -o /dev/null -w '%{http_code}' https://huggingface.co/api/whoami-v2").out == "401"
    assert client.run("curl -sS http://127.0.0.1:1").code == 7
