"""Jobs of the demo cluster: from the queue to their end, as a run of llmb-tui sees them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from llmb_tui.demo.cluster import DemoCluster
from tests.demo.demo_client import HYDRA, Client, Task
from tests.kit.demo import fault
from tests.kit.waiting import until

MakeTask = Callable[..., Task]
STEP = re.compile(
    r"Training epoch 0, iteration (\d+)/49 \| lr: \S+ \| global_batch_size: 256 \| global_step: \1"
    r" \| peak_memory_usage: 70800000000 \| memory_allocated: 34200000000 \| reduced_train_loss: \d+\.\d+"
    r" \| train_step_timing in s: (\S+)(?: \| consumed_samples: (\d+))?"
)


def frames(log: Path) -> list[str]:
    """The bar's states and the lines of a log with carriage returns."""
    return [part for part in re.split(r"[\r\n]", log.read_bytes().decode()) if part]


def test_a_nemo_2_run_from_the_queue_to_its_last_step(client: Client, make_task: MakeTask) -> None:
    task = make_task()
    job = client.submit(task.script)
    client.wait_for_state(job, "COMPLETED")

    text = task.log(job).read_text()
    steps = [STEP.fullmatch(line) for line in text.splitlines() if line.startswith("Training epoch")]
    assert all(steps)
    found = [step for step in steps if step]
    assert [int(step[1]) for step in found] == list(range(50))
    assert found[0][3] is None
    assert [int(step[3]) for step in found[1:]] == [256 * count for count in range(2, 51)]
    times = [float(step[2]) for step in found]
    assert times[0] > 20
    assert all(1.94 < seconds < 2.05 for seconds in times[3:])
    assert len({f"{seconds:.4g}" for seconds in times[3:]}) > 5
    assert text.splitlines()[0].startswith("simulated: ")
    assert text.endswith("`Trainer.fit` stopped: `max_steps=50` reached.\n")

    batch = task.batch_log(job).read_text()
    assert "+ head_node_ip=127.0.0.1\n" in batch
    assert "task 0 of 64 is a real process" in batch
    assert "job exited with code 0\n" in batch


def test_a_hydra_run_draws_the_bar(client: Client, make_task: MakeTask) -> None:
    selection = {
        "workload": "llama3.1",
        "release": "24.11",
        "size": "405b",
        "gpu": "h100",
        "dtype": "bf16",
        "scale": 576,
    }
    task = make_task(HYDRA, selection=selection, parallelism={"gbs": 252}, nodes=72)
    job = client.submit(task.script.replace("--nodes=8\n", "--nodes=72\n"))
    client.wait_for_state(job, "COMPLETED")
    shown = frames(task.log(job))
    assert shown[1].endswith("] ************** Experiment configuration ***********")
    assert shown[2] == "Epoch 0: :   0%|          | 0/20 [00:00<?]"
    last = re.fullmatch(
        r"Epoch 0: : 100%\|██████████\| 20/20 \[\d\d:\d\d<00:00, v_num=[a-z]{4}, reduced_train_loss=\d+\.\d+,"
        r" global_step=19\.00, consumed_samples=5040\.0, train_step_timing in s=(\S+)\]",
        shown[-1],
    )
    assert last
    assert 1.94 < float(last[1]) < 2.05
    assert "`Trainer.fit` stopped: `max_steps=20` reached." in task.log(job).read_text()


def test_a_hydra_run_needs_its_configuration(client: Client, make_task: MakeTask) -> None:
    for change, text in (
        ("--config-name=other.yaml", "Cannot find primary config 'other.yaml'."),
        ("--config-path=/elsewhere", "Check that the config directory '/elsewhere' exists"),
    ):
        task = make_task(f"{HYDRA} {change}")
        job = client.submit(task.script)
        client.wait_for_state(job, "FAILED")
        assert text in task.log(job).read_text()


def test_a_run_that_hung_continues_at_its_pace(cluster: DemoCluster, client: Client, make_task: MakeTask) -> None:
    fault(cluster, "hang-at-step", "5")
    task = make_task()
    job = client.submit(task.script)
    until(lambda: task.log(job).exists() and "iteration 4/49" in task.log(job).read_text(), "step 4")
    fault(cluster, "hang-at-step", None)
    client.wait_for_state(job, "COMPLETED")
    assert "iteration 49/49" in task.log(job).read_text()


def test_grok_has_no_run_number_in_its_bar(client: Client, make_task: MakeTask) -> None:
    selection = {"workload": "grok1", "release": "25.02", "size": "314b", "gpu": "h100", "dtype": "fp8", "scale": 64}
    task = make_task(HYDRA, selection=selection)
    job = client.submit(task.script)
    client.wait_for_state(job, "COMPLETED")
    assert "v_num" not in frames(task.log(job))[-1]


def test_releases_from_25_05_on_print_the_throughput_one_step_late(client: Client, make_task: MakeTask) -> None:
    selection = {
        "workload": "nemotron4-340b",
        "release": "25.12",
        "size": "340b",
        "gpu": "h100",
        "dtype": "bf16",
        "scale": 256,
    }
    estimate = {"step_time_s": 4.31, "model_flops_per_sample": 8.62124e15, "peak_tflops": 989}
    task = make_task(selection=selection, estimate=estimate, parallelism={"gbs": 64})
    job = client.submit(task.script)
    client.wait_for_state(job, "COMPLETED")
    lines = [line for line in task.log(job).read_text().splitlines() if line.startswith("Training")]
    assert "TFLOPS_per_GPU" not in lines[0]
    result = re.search(r" \| TFLOPS_per_GPU: (\S+)$", lines[-1])
    assert result
    assert 490 < float(result[1]) < 505


def test_a_cancelled_job_is_reported_in_queue_accounting_and_log(
    cluster: DemoCluster, client: Client, make_task: MakeTask
) -> None:
    fault(cluster, "hang-at-step", "5")
    task = make_task()
    job = client.submit(task.script)
    until(lambda: task.log(job).exists() and "iteration 4/49" in task.log(job).read_text(), "step 4")
    assert client.run(f"scancel {job}").code == 0
    client.wait_for_state(job, "CANCELLED")
    until(lambda: client.queue("State,exit_code") == ["CANCELLED|15"], "its processes to end")
    uid = client.run("id -u").out.strip()
    assert client.accounting(job, "State,ExitCode") == f"CANCELLED by {uid}|0:0"
    assert f"slurmstepd: error: *** STEP {job}.1 ON demo001 CANCELLED AT " in task.log(job).read_text()
    batch = task.batch_log(job).read_text()
    assert f"slurmstepd: error: *** JOB {job} ON demo001 CANCELLED AT " in batch
    assert "job exited with code" not in batch.replace('echo "job exited with code $exitcode"', "")


def test_a_waiting_job_is_cancelled_without_having_run(cluster: DemoCluster, client: Client) -> None:
    fault(cluster, "queue-wait", "1e6")
    job = client.submit("#!/bin/sh\ntouch ran\n")
    client.run(f"scancel {job}")
    assert client.state(job) == "CANCELLED"
    assert client.accounting(job, "NodeList,ElapsedRaw") == "None assigned|0"
    assert not (cluster.root / "home" / "ran").exists()


def test_a_job_out_of_time_is_ended(cluster: DemoCluster, client: Client) -> None:
    job = client.submit("#!/bin/sh\n#SBATCH --time=00:01:00\nsleep 60\n")
    client.wait_for_state(job, "TIMEOUT")
    until(lambda: client.queue("State,Reason,TimeUsed") == ["TIMEOUT|TimeLimit|1:00"], "its processes to end")
    assert "DUE TO TIME LIMIT ***" in (cluster.root / "home" / f"slurm-{job}.out").read_text()


def test_a_job_that_ignores_the_signal_is_killed(
    cluster: DemoCluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmb_tui.demo.slurm.facts.KILL_WAIT_S", 5.0)
    job = client.submit("#!/bin/sh\ntrap '' TERM\ntouch ignores\nwhile :; do sleep 1; done\n")
    until((cluster.root / "home" / "ignores").exists)
    client.run(f"scancel {job}")
    assert client.queue("State") == ["COMPLETING"]
    until(lambda: client.queue("State,exit_code") == ["CANCELLED|9"], "the job to be killed")


def test_a_failing_run_has_a_traceback_and_its_exit_code(
    cluster: DemoCluster, client: Client, make_task: MakeTask
) -> None:
    fault(cluster, "fail-at-step", "7")
    task = make_task()
    job = client.submit(task.script)
    client.wait_for_state(job, "FAILED")
    log = task.log(job).read_text()
    assert "iteration 6/49" in log
    assert "iteration 7/49" not in log
    assert "[rank0]: torch.OutOfMemoryError: CUDA out of memory." in log
    assert "srun: error: demo001: task 0: Exited with exit code 1\n" in task.batch_log(job).read_text()
    assert client.accounting(job, "State,ExitCode") == "FAILED|1:0"


def test_a_slow_cluster_is_slow_in_the_log(cluster: DemoCluster, client: Client, make_task: MakeTask) -> None:
    fault(cluster, "slow", "1.2")
    task = make_task()
    job = client.submit(task.script)
    client.wait_for_state(job, "COMPLETED")
    last = task.log(job).read_text().splitlines()[-2]
    assert 2.33 < float(last.split("train_step_timing in s: ")[1].split(" ")[0]) < 2.46


def test_a_job_that_does_not_fit_yet_waits_for_nodes(client: Client) -> None:
    first = client.submit("#!/bin/sh\n#SBATCH --nodes=288\nsleep 60\n")
    client.wait_for_state(first, "RUNNING")
    assert client.run("sinfo -h -o '%R %T %D %N'").out.splitlines()[0] == "batch allocated 288 demo[001-288]"
    second = client.submit("#!/bin/sh\nexit 3\n")
    until(lambda: client.queue("State,Reason")[1] == "PENDING|Resources", "wait")
    client.run(f"scancel {first}")
    client.wait_for_state(second, "FAILED")
    assert client.queue("Reason,NodeList")[1] == "NonZeroExitCode|demo001"


def test_the_environment_of_a_job(cluster: DemoCluster, client: Client) -> None:
    script = "#!/bin/sh\n#SBATCH --nodes=2 --ntasks-per-node=8 --gpus-per-node=8 --job-name=a_name\nenv\n"
    job = client.submit(script)
    client.wait_for_state(job, "COMPLETED")
    lines = (cluster.root / "home" / f"slurm-{job}.out").read_text().splitlines()
    assert {
        f"SLURM_JOB_ID={job}",
        "SLURM_JOB_NAME=a_name",
        "SLURM_JOB_NUM_NODES=2",
        "SLURM_JOB_NODELIST=demo[001-002]",
        "SLURM_NTASKS=16",
        "SLURM_NTASKS_PER_NODE=8",
    } <= set(lines)
    assert not any(line.startswith("SLURM_RESTART_COUNT") for line in lines)


def test_an_output_file_that_cannot_be_made_fails_the_job(client: Client) -> None:
    job = client.submit("#!/bin/sh\n#SBATCH --output=/nonexistent/%j.out\ntrue\n")
    client.wait_for_state(job, "FAILED")
    assert client.accounting(job, "ExitCode") == "0:53"


def test_background_processes_of_a_script_end_with_its_job(cluster: DemoCluster, client: Client) -> None:
    job = client.submit("#!/bin/sh\nsleep 60 &\necho $!\n")
    client.wait_for_state(job, "COMPLETED")
    pid = (cluster.root / "home" / f"slurm-{job}.out").read_text().strip()
    until(lambda: client.run(f"kill -0 {pid}").code != 0, "the background process to end")


def test_steps_of_missing_containers_fail_in_the_words_of_pyxis(
    cluster: DemoCluster, client: Client, make_task: MakeTask
) -> None:
    task = make_task()
    missing = task.script.replace("nvidia+nemo+25.02.01.sqsh", "none.sqsh")
    job = client.submit(missing)
    client.wait_for_state(job, "FAILED")
    log = task.log(job).read_text()
    assert "slurmstepd: error: pyxis:     [ERROR] No such file or directory: " in log
    assert log.endswith("slurmstepd: error: Failed to invoke spank plugin stack\n")
    assert "\njob exited with code 1\n" in task.batch_log(job).read_text()

    image = Path(cluster.profile.install_dir) / "images" / "nvidia+nemo+25.02.01.sqsh"
    for option, text in (
        (f"--container-image={image} --container-mounts=/nonexistent:/x", "source path does not exist: /nonexistent"),
        (f"--container-image={image} --container-mounts=:x", "invalid format: :x"),
        (f"--container-image={image} --container-workdir=/nowhere", "couldn't chdir to /nowhere: No such file"),
    ):
        log = client.on_node(f"srun {option} true")
        assert text in log
        assert log.endswith("\n1\n")
    image.write_bytes(b"half of an import")
    assert "[ERROR] Invalid image format: " in client.on_node(f"srun --container-image={image} true")


def test_a_program_that_is_missing_in_the_container_is_missed(client: Client, make_task: MakeTask) -> None:
    task = make_task()
    (task.folder / "code" / "pretrain.py").unlink()
    job = client.submit(task.script)
    client.wait_for_state(job, "FAILED")
    text = "can't open file '/nemo_run/code/pretrain.py': [Errno 2] No such file or directory"
    assert text in task.log(job).read_text()


def test_python_in_the_container_runs_the_training_only(client: Client, make_task: MakeTask) -> None:
    task = make_task("python -c 'print(6*7)'")
    job = client.submit(task.script)
    client.wait_for_state(job, "FAILED")
    assert "the simulated container of the demo does not offer that" in task.log(job).read_text()
