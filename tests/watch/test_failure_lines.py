from __future__ import annotations

from collections.abc import Callable

import pytest

from llmb_tui.cluster.slurm.job import Job
from llmb_tui.watch.failure import explain, worst
from llmb_tui.watch.job_failure import of_job
from llmb_tui.watch.parse import StepParser

WATCHDOG = (
    "[rank368]:[E808 04:21:41.160918398 ProcessGroupNCCL.cpp:655] [Rank 368] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600001 "
    "milliseconds before timing out."
)
FAILURES = {
    WATCHDOG: "NCCL timed out",
    "[PG ID 0 PG GUID 0(default_pg) Rank 368]  failure detected by watchdog at work sequence id: 5": "NCCL timed out",
    "[userbuffers.cu:userbuffers_fp16_sum_inplace_gpu_rr_rs_oop_fp8:797] [6] Reduce-scatter: SM 18 [2]: expecting 1 "
    "got 0": "GPU hangs",
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.": "GPU ran out of memory",
    "RuntimeError: CUDA error: out of memory": "GPU ran out of memory",
    "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some of the step tasks have been OOM Killed.": (
        "host memory"
    ),
    "srun: error: cn001: task 3: Out Of Memory": "host memory",
    "sbatch: error: Cannot find GPU specification, you may not submit a job not requesting GPUs": "refused the job",
    "sbatch: error: Batch job submission failed: Invalid generic resource (gres) specification": "refused the job",
    "sbatch: error: Batch job submission failed: Invalid account or account/partition combination": "refused the job",
    "sbatch: error: invalid partition specified: nowhere": "refused the job",
    "srun: unrecognized option '--container-image=/x.sqsh'": "no Pyxis",
    "slurmstepd: error: pyxis: failed to import docker image: nvcr.io/nvidia/nemo": "container could not be started",
    "slurmstepd: error: pyxis: couldn't start container": "container could not be started",
    "slurmstepd: error: pyxis: --container-mounts: source path does not exist: /nonexist": (
        "container could not be started"
    ),
    "slurmstepd: error: pyxis:     [ERROR] No such file or directory: /x.sqsh": "container could not be started",
    "slurmstepd: error: pyxis:     curl: (6) Could not resolve host: nvcr.io": "cannot reach the container registry",
    "[ERROR] URL https://nvcr.io/proxy_auth returned error code: 401 Unauthorized": "registry refused the login",
    "Write failed because No space left on device": "file system is full",
    "tar: usr/lib/x.so: Cannot write: No space left on device": "file system is full",
    "bash: /usr/bin/python3: cannot execute binary file: Exec format error": "processor architecture",
    "slurmstepd: error: execve(): python: Exec format error": "processor architecture",
    "huggingface_hub.errors.GatedRepoError: 401 Client Error.": "refused access to a gated model",
    "OSError: 403 Client Error: Forbidden for url: https://huggingface.co/meta-llama/Llama-3.1-8B": "gated model",
    "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/api": (
        "limits the rate"
    ),
    "OSError: We couldn't connect to 'https://huggingface.co' to load this file": "cannot reach the model hub",
    "launch.sh: line 31: HF_TOKEN: unbound variable": "variable",
    "Error: Required variable HF_TOKEN is not set": "variable",
    "slurmstepd: error: *** JOB 12 ON cn001 CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***": "time limit",
    "slurmstepd: error: *** JOB 12 ON cn001 CANCELLED AT 2026-01-02T03:04:05 DUE TO NODE FAILURE ***": "A node",
    "slurmstepd: error: *** STEP 12.0 ON cn001 CANCELLED AT 2026-01-02T03:04:05 DUE TO NODE FAILURE, SEE SLURMCTLD LOG "
    "FOR DETAILS ***": "node of the job",
    "srun: error: Node failure on cn003": "node of the job",
    "slurmstepd: error: *** JOB 12 ON cn001 CANCELLED AT 2026-01-02T03:04:05 DUE TO PREEMPTION ***": "higher priority",
    "slurmstepd: error: *** JOB 12 ON cn001 CANCELLED AT 2026-01-02T03:04:05 DUE TO JOB REQUEUE ***": "into the queue",
    "slurmstepd: error: Exceeded job memory limit": "host memory",
    "slurmstepd: error: StepId=6.batch exceeded memory limit (105676800 > 104857600), being killed": "host memory",
    "srun: error: cn002: tasks 8-15: Out Of Memory": "host memory",
    "srun: error: cn002: task 8: Killed": "killed from outside",
    "srun: error: Task launch for StepId=12.0 failed on node cn002: Communication connection failure": "start the",
    "srun: error: Unable to create step for job 12: Job/step already completing or completed": "start the tasks",
    "slurmstepd: error: execve(): python: No such file or directory": "start the tasks",
    "slurmstepd: error: couldn't chdir to `/lustre/x': No such file or directory: going to /tmp instead": (
        "start the tasks"
    ),
    "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2006, remote process exited": (
        "NCCL failed"
    ),
    "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms": "find each other",
    "RuntimeError: CUDA error: uncorrectable ECC error encountered": "broken",
    "RuntimeError: The NVIDIA driver on your system is too old. CUDA driver version is insufficient": "GPU driver",
    "nvidia-container-cli: initialization error: nvml error: driver not loaded": "GPU driver",
    "[rank7]: ValueError: number of layers (5) is not divisible": "program ended with an error",
    "megatron.core.SomethingException: no": "program ended with an error",
    "AssertionError": "program ended with an error",
    "srun: error: cn001: tasks 0-7: Exited with exit code 1": "task of the job failed",
    "srun: error: Failed to invoke spank plugin stack": "task of the job failed",
    "job exited with code 1": "task of the job failed",
    "job exited with code 137": "task of the job failed",
}
HARMLESS = [
    "job exited with code 0",
    "ERROR: pip's dependency resolver does not currently take into account all the packages that are installed.",
    "tritonclient 2.51.0 requires urllib3>=2.0.7, but you have urllib3 1.26.20 which is incompatible.",
    "[NeMo E 2025-04-11 14:48:45] Invalid scale: error in amax",
    "[NeMo I 2025-04-11 14:48:45 nemo_logging:393] SLURM auto-requeueing enabled. Setting signal handlers.",
    "slurmstepd: error: *** STEP 12.0 ON cn001 CANCELLED AT 2026-01-02T03:04:05 ***",
    "slurmstepd: error: *** JOB 12 ON cn001 CANCELLED AT 2026-01-02T03:04:05 DUE to SIGNAL Terminated ***",
    "[NeMo W 2025-04-11 14:48:45] ignoring ValueError: nothing",
    "node001:123 [0] NCCL INFO NCCL_ASYNC_ERROR_HANDLING set by environment to 1",
    "pyxis: importing docker image: nvcr.io/nvidia/nemo:25.02.01",
    "UserWarning: TORCH_NCCL_TRACE_BUFFER_SIZE is not set, error traces are off",
]


@pytest.mark.parametrize(("line", "reason"), FAILURES.items(), ids=lambda text: str(text)[:40])
def test_failure_lines_are_explained(line: str, reason: str) -> None:
    found = worst(f"before\n{line}\nafter\n".encode())
    assert found is not None
    assert reason in found.reason
    assert found.line == line
    assert found.fix


@pytest.mark.parametrize("line", HARMLESS)
def test_what_only_looks_like_a_failure(line: str) -> None:
    assert explain(line.encode()) is None
    assert worst(line.encode() + b"\n") is None


def test_the_cause_wins_over_what_follows_from_it() -> None:
    lines = [
        "srun: error: cn001: tasks 0-7: Exited",
        WATCHDOG,
        "KeyError: 'x'",
        "OSError: No space left on device",
        WATCHDOG,
    ]
    found = worst("".join(line + "\n" for line in lines).encode())
    assert found is not None
    assert "full" in found.reason


def test_among_equals_the_first_wins() -> None:
    found = worst(b"[rank5]: KeyError: 'first'\n[rank6]: KeyError: 'second'\n")
    assert found is not None
    assert found.line == "[rank5]: KeyError: 'first'"


def test_the_line_is_clean_and_bounded() -> None:
    found = worst(b"\x1b[31mRuntimeError: CUDA out of memory\x1b[0m" + b"x" * 1_000_000 + b"\n")
    assert found is not None
    assert found.line.startswith("RuntimeError: CUDA out of memory")
    assert len(found.line) < 5000


def test_a_run_that_goes_on_has_not_failed(nemo_line: Callable[..., str]) -> None:
    parser = StepParser("nemo2")
    parser.feed((nemo_line(0) + "ModuleNotFoundError: No module named 'apex'\n").encode())
    assert parser.failure is not None
    parser.feed(nemo_line(1).encode())
    assert parser.failure is None


def test_clean_up_after_the_last_step_is_no_failure(nemo_line: Callable[..., str]) -> None:
    parser = StepParser("nemo2")
    log = nemo_line(48) + nemo_line(49) + "Traceback (most recent call last):\nRuntimeError: closed\n" + WATCHDOG + "\n"
    parser.feed(log.encode())
    assert parser.complete
    assert parser.failure is None


def test_a_failure_after_a_bar_is_seen_although_the_bar_is_painted_again(hydra_frame: Callable[..., str]) -> None:
    parser = StepParser("hydra")
    parser.feed((hydra_frame(3) + "\n[rank0]: KeyError: 'x'\n" + hydra_frame(3) + "\n").encode())
    assert parser.failure is not None
    assert "KeyError" in parser.failure.line


@pytest.mark.parametrize(
    ("job", "reason", "line"),
    [
        (Job("1", "a", "TIMEOUT", exit_code="0:0"), "time limit", "Slurm: TIMEOUT"),
        (Job("1", "a", "OUT_OF_MEMORY", exit_code="0:125"), "host memory", "Slurm: OUT_OF_MEMORY, exit code 0:125"),
        (
            Job("1", "a", "NODE_FAIL", bad_nodes=("cn003 is down: xid79",)),
            "node of the job failed",
            "Slurm: NODE_FAIL, cn003 is down: xid79",
        ),
        (Job("1", "a", "PREEMPTED"), "higher priority", "Slurm: PREEMPTED"),
        (Job("1", "a", "FAILED", exit_code="0:53"), "output file", "Slurm: FAILED, exit code 0:53"),
        (Job("1", "a", "FAILED", exit_code="0:9"), "killed from outside", "Slurm: FAILED, exit code 0:9"),
        (Job("1", "a", "FAILED", "JobLaunchFailure", exit_code="1:0"), "start the tasks", "exit code 1:0"),
        (Job("1", "a", "FAILED", "NonZeroExitCode", exit_code="3:0"), "ended with an error", "exit code 3:0"),
    ],
)
def test_where_the_log_says_nothing_slurm_does(job: Job, reason: str, line: str) -> None:
    found = of_job(job)
    assert found is not None
    assert reason in found.reason
    assert line in found.line
    assert found.fix


@pytest.mark.parametrize("state", ["COMPLETED", "CANCELLED", "RUNNING", "PENDING"])
def test_a_job_that_did_not_fail_has_no_reason(state: str) -> None:
    assert of_job(Job("1", "a", state)) is None


def test_slurm_tells_more_than_a_symptom_and_less_than_a_cause() -> None:
    node, late = of_job(Job("1", "a", "NODE_FAIL")), of_job(Job("1", "a", "TIMEOUT"))
    symptom, cause = worst(f"{WATCHDOG}\n".encode()), worst(b"RuntimeError: CUDA error: out of memory\n")
    weights = [failure.weight for failure in (cause, node, symptom, late) if failure]
    assert len(weights) == 4
    assert weights == sorted(weights, reverse=True)
    assert len(set(weights[1:])) == 3
