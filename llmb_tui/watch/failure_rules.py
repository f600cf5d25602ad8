"""What lines of a failed run mean. The wording is that of the programs, and changes: matches are loose."""

from __future__ import annotations

import re
from dataclasses import dataclass

CAUSE, SYMPTOM, STOPPED, LAST_WORDS, END = 5, 4, 3, 2, 1
"""What broke; what noticed it; who stopped it; what a program says as it ends; what only says that it ended."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a line that fits a pattern says."""

    pattern: re.Pattern[bytes]
    weight: int
    reason: str
    fix: str


def _rule(weight: int, pattern: str, reason: str, fix: str) -> Rule:
    return Rule(re.compile(pattern.encode()), weight, reason, fix)


OUT_OF_MEMORY = _rule(
    CAUSE,
    r"(?i)oom[-_ ]kill|host out of memory|tasks? [\d,-]+: Out Of Memory|exceeded (?:job )?memory limit",
    "A node ran out of host memory and the kernel or Slurm ended the task.",
    "Ask Slurm for all memory of the node (--mem=0), and look at what else runs on it.",
)
NODE_FAILURE = _rule(
    CAUSE,
    r"DUE TO NODE FAILURE|error: Node failure on ",
    "A node of the job failed.",
    "Submit again; leave the failed node out if Slurm does not.",
)
PREEMPTION = _rule(
    CAUSE,
    r"DUE TO PREEMPTION",
    "Slurm took the job's nodes away for a job of higher priority.",
    "Submit again, or ask for a QOS or partition that is not preempted.",
)
TIME_LIMIT = _rule(
    STOPPED,
    r"DUE TO TIME LIMIT",
    "The job ran into its time limit.",
    "Raise the time limit, or find out why the run is slower than expected.",
)
NOT_STARTED = _rule(
    SYMPTOM,
    r"Task launch for .* failed on node|Application launch failed|Unable to create step for job|error: execve\(\): |"
    r"error: couldn.t chdir to |error: Could not open (?:stdout|stderr|stdin) file",
    "Slurm could not start the tasks.",
    "Check that the run's folder and programs are there and readable on every node.",
)
KILLED = _rule(
    END,
    r"error: \S+: tasks? [\d,-]+: Killed",
    "A task was killed from outside.",
    "If nothing before this line says why, its node most often ran out of host memory: ask for all of it (--mem=0).",
)
# The first rule that a line fits speaks for it.
RULES = (
    OUT_OF_MEMORY,
    _rule(
        CAUSE,
        r"CUDA out of memory|OutOfMemoryError|CUDA error: out of memory",
        "A GPU ran out of memory.",
        "Use more GPUs, a smaller micro batch, or the recipe's own layout for this scale.",
    ),
    _rule(
        CAUSE,
        r"No space left on device",
        "A file system is full.",
        "Free space, or choose another directory for the installation and for Enroot's cache.",
    ),
    _rule(
        CAUSE,
        r"userbuffers.*expecting \d+ got \d+",
        "A GPU hangs in a tensor-parallel transfer.",
        "Leave that node out and run again, or have it rebooted.",
    ),
    _rule(
        CAUSE,
        r"(?:nvcr\.io|proxy_auth).*401 Unauthorized",
        "The container registry refused the login.",
        "Put a valid key for nvcr.io into Enroot's credentials on the cluster.",
    ),
    _rule(
        CAUSE,
        r"curl: \(\d+\) (?:Could not resolve host|Failed to connect|Connection timed out)",
        "The node cannot reach the container registry.",
        "Import the image from a node with a way out, or ask for a proxy.",
    ),
    _rule(
        CAUSE,
        r"unrecognized option .?--container-image",
        "This cluster's srun has no Pyxis: it cannot start containers.",
        "Ask the administrators for Pyxis and Enroot, or choose a partition that has them.",
    ),
    _rule(
        CAUSE,
        r"Exec format error",
        "A program or the container image is for another processor architecture.",
        "Import the image again for this partition's nodes (x86_64 or aarch64).",
    ),
    _rule(
        CAUSE,
        r"429 .*(?:Too Many Requests|huggingface)|huggingface.*\b429\b",
        "The model hub limits the rate: many ranks asked at once.",
        "Fetch the tokenizer's files once before the run, then let the ranks work offline.",
    ),
    _rule(
        CAUSE,
        r"GatedRepoError|\b40[13]\b.*(?:meta-llama|huggingface)|(?:meta-llama|huggingface).*\b40[13]\b",
        "The model hub refused access to a gated model.",
        "Ask for access on the model's page, and check the token that the run uses.",
    ),
    _rule(
        CAUSE,
        r"couldn.t connect to .?https://huggingface\.co",
        "The compute nodes cannot reach the model hub.",
        "Fetch the tokenizer's files once before the run, or give the nodes a way out.",
    ),
    _rule(
        CAUSE,
        r"Required variable \w+|\w+: unbound variable",
        "A variable that a script needs is not set.",
        "Set it where the run is launched, then submit again.",
    ),
    _rule(
        CAUSE,
        r"\bpretrain\.py \S+: .* has NeMo \d",
        "The container's NeMo does not know a setting of the preset.",
        "Choose a container that the preset names, or correct the preset.",
    ),
    _rule(
        CAUSE,
        r"FileNotFoundError: Checkpoint file not found",
        "The container does not see the checkpoint that shall be loaded.",
        "Give the directory in which `weights` lies, on a file system that all nodes share.",
    ),
    _rule(
        CAUSE,
        r"sbatch: error:|Batch job submission failed|Invalid account or account/partition combination",
        "Slurm refused the job.",
        "Check account, partition, GPU request and time limit against what the cluster allows.",
    ),
    NODE_FAILURE,
    PREEMPTION,
    TIME_LIMIT,
    _rule(
        STOPPED,
        r"DUE TO JOB REQUEUE",
        "The job was put back into the queue.",
        "Nothing: Slurm starts it again, and that start has a log of its own.",
    ),
    _rule(
        CAUSE,
        r"uncorrectable (?:ECC|NVLink) error|CUDA error: (?:unknown error|hardware)",
        "A GPU or its link is broken.",
        "Leave that node out and run again, and tell the cluster's administrators.",
    ),
    _rule(
        CAUSE,
        r"(?i)CUDA driver version is insufficient|driver/library version mismatch|no CUDA-capable device|"
        r"nvidia-container-cli: .*error",
        "The node's GPU driver does not fit the container, or the job sees no GPU.",
        "Check the GPU request and the driver's version against what the container needs.",
    ),
    NOT_STARTED,
    _rule(
        SYMPTOM,
        r"(?i)pyxis: .*(?:failed|couldn.t|does not exist|error)"
        r"|\[ERROR\] (?:No such file|URL |Could|Command not found)",
        "The container could not be started.",
        "Check that the image was imported whole and that every mounted path exists on the nodes.",
    ),
    _rule(
        SYMPTOM,
        r"Watchdog caught collective operation timeout|failure detected by watchdog",
        "A collective operation of NCCL timed out: one rank hung or died.",
        "Set TP_COMM_OVERLAP=False and run again; if it stays, look for the rank that stopped first and its node.",
    ),
    _rule(
        SYMPTOM,
        r"nccl(?:System|Internal|Remote|UnhandledCuda)Error|NCCL error in|NCCL communicator was aborted",
        "NCCL failed: a link between the GPUs broke, or another rank died first.",
        "Look for the rank that stopped first and its node; run again without that node.",
    ),
    _rule(
        SYMPTOM,
        r"DistNetworkError|TCPStore.*timed? ?out|client socket has timed out",
        "The ranks did not find each other in time.",
        "Look for a node on which the container started late or not at all.",
    ),
    _rule(
        LAST_WORDS,
        r"^(?:\[rank\d+\]: ?|\d+: ?)?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?:: .*)?\s*$",
        "The training program ended with an error.",
        "Read the traceback above this line in the log.",
    ),
    KILLED,
    _rule(
        END,
        r"(?:srun|slurmstepd): error:|job exited with code (?!0\b)\d+|Failed to invoke spank plugin stack",
        "A task of the job failed.",
        "Look for the first error before this line in the log.",
    ),
)

# Known to look like failures and to mean nothing.
NOISE = re.compile(
    rb"Invalid scale"  # Grok on 512 GPUs and more
    rb"|tritonclient .*requires|pip's dependency resolver"
    rb"|SLURM auto-requeueing enabled"
    rb"|CANCELLED AT (?!.*DUE TO)"  # somebody cancelled the job
)

# Every line that fits a rule holds one of these. Searching for each of them is many times faster than one pattern.
WORDS = (
    *(
        b"rror",
        b"[ERROR]",
        b"Exception",
        b"atchdog",
        b"No space left",
        b"userbuffers",
        b"nrecognized option",
        b"curl: (",
    ),
    *(b"Required variable", b"unbound variable", b"exited with code", b"pretrain.py "),
)
