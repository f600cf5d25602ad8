"""Lines that say why a run failed, in plain words with what to do; and the ones that only look like it.

A log holds thousands of lines with the word error in them. Only what is named here counts, the most
telling line wins, and among equals the first one: the ranks that follow only report that another died.
The wording is that of the programs themselves and may change between versions: matches are loose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from llmb_tui.watch.lines import shown

# How far a line is looked at on either side of the word that was found: a line can have many megabytes.
_REACH = 2000

# What broke; what noticed it; what a program says as it ends; what only says that something ended.
_CAUSE, _SYMPTOM, _LAST_WORDS, _END = 4, 3, 2, 1


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run failed, as far as one line of its log says."""

    line: str
    """The line itself, clean."""
    reason: str
    fix: str
    weight: int
    """How telling the line is; the greater wins."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[bytes]
    weight: int
    reason: str
    fix: str


def _rule(weight: int, pattern: str, reason: str, fix: str) -> _Rule:
    return _Rule(re.compile(pattern.encode()), weight, reason, fix)


# The first rule that a line fits speaks for it.
_RULES = (
    _rule(
        _CAUSE,
        r"(?i)oom[-_ ]kill|host out of memory|task \d+: Out Of Memory",
        "A node ran out of host memory and the kernel ended the task.",
        "Ask Slurm for all memory of the node (--mem=0), and look at what else runs on it.",
    ),
    _rule(
        _CAUSE,
        r"CUDA out of memory|OutOfMemoryError|CUDA error: out of memory",
        "A GPU ran out of memory.",
        "Use more GPUs, a smaller micro batch, or the recipe's own layout for this scale.",
    ),
    _rule(
        _CAUSE,
        r"No space left on device",
        "A file system is full.",
        "Free space, or choose another directory for the installation and for Enroot's cache.",
    ),
    _rule(
        _CAUSE,
        r"userbuffers.*expecting \d+ got \d+",
        "A GPU hangs in a tensor-parallel transfer.",
        "Leave that node out and run again, or have it rebooted.",
    ),
    _rule(
        _CAUSE,
        r"(?:nvcr\.io|proxy_auth).*401 Unauthorized",
        "The container registry refused the login.",
        "Put a valid key for nvcr.io into Enroot's credentials on the cluster.",
    ),
    _rule(
        _CAUSE,
        r"curl: \(\d+\) (?:Could not resolve host|Failed to connect|Connection timed out)",
        "The node cannot reach the container registry.",
        "Import the image from a node with a way out, or ask for a proxy.",
    ),
    _rule(
        _CAUSE,
        r"unrecognized option .?--container-image",
        "This cluster's srun has no Pyxis: it cannot start containers.",
        "Ask the administrators for Pyxis and Enroot, or choose a partition that has them.",
    ),
    _rule(
        _CAUSE,
        r"Exec format error",
        "A program or the container image is for another processor architecture.",
        "Import the image again for this partition's nodes (x86_64 or aarch64).",
    ),
    _rule(
        _CAUSE,
        r"429 .*(?:Too Many Requests|huggingface)|huggingface.*\b429\b",
        "The model hub limits the rate: many ranks asked at once.",
        "Fetch the tokenizer's files once before the run, then let the ranks work offline.",
    ),
    _rule(
        _CAUSE,
        r"GatedRepoError|\b40[13]\b.*(?:meta-llama|huggingface)|(?:meta-llama|huggingface).*\b40[13]\b",
        "The model hub refused access to a gated model.",
        "Ask for access on the model's page, and check the token that the run uses.",
    ),
    _rule(
        _CAUSE,
        r"couldn.t connect to .?https://huggingface\.co",
        "The compute nodes cannot reach the model hub.",
        "Fetch the tokenizer's files once before the run, or give the nodes a way out.",
    ),
    _rule(
        _CAUSE,
        r"Required variable \w+|\w+: unbound variable",
        "A variable that a script needs is not set.",
        "Set it where the run is launched, then submit again.",
    ),
    _rule(
        _CAUSE,
        r"sbatch: error:|Batch job submission failed|Invalid account or account/partition combination",
        "Slurm refused the job.",
        "Check account, partition, GPU request and time limit against what the cluster allows.",
    ),
    _rule(
        _CAUSE,
        r"DUE TO TIME LIMIT",
        "The job ran into its time limit.",
        "Raise the time limit, or find out why the run is slower than expected.",
    ),
    _rule(
        _CAUSE,
        r"DUE TO (?:NODE FAILURE|PREEMPTION)",
        "Slurm took the job's nodes away: one failed, or a job of higher priority needed them.",
        "Submit again; leave the failed node out if Slurm does not.",
    ),
    _rule(
        _SYMPTOM,
        r"(?i)pyxis: .*(?:failed|couldn.t|does not exist|error)"
        r"|\[ERROR\] (?:No such file|URL |Could|Command not found)",
        "The container could not be started.",
        "Check that the image was imported whole and that every mounted path exists on the nodes.",
    ),
    _rule(
        _SYMPTOM,
        r"Watchdog caught collective operation timeout|failure detected by watchdog",
        "A collective operation of NCCL timed out: one rank hung or died.",
        "Set TP_COMM_OVERLAP=False and run again; if it stays, look for the rank that stopped first and its node.",
    ),
    _rule(
        _LAST_WORDS,
        r"^(?:\[rank\d+\]: ?|\d+: ?)?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?:: .*)?\s*$",
        "The training program ended with an error.",
        "Read the traceback above this line in the log.",
    ),
    _rule(
        _END,
        r"(?:srun|slurmstepd): error:|job exited with code (?!0\b)\d+|Failed to invoke spank plugin stack",
        "A task of the job failed.",
        "Look for the first error before this line in the log.",
    ),
)

# How Slurm says that a job ended badly, for a log that does not say why.
_STATES = {
    "TIMEOUT": "DUE TO TIME LIMIT",
    "DEADLINE": "DUE TO TIME LIMIT",
    "OUT_OF_MEMORY": "oom-kill",
    "NODE_FAIL": "DUE TO NODE FAILURE",
    "BOOT_FAIL": "DUE TO NODE FAILURE",
    "PREEMPTED": "DUE TO PREEMPTION",
}

# Known to look like failures and to mean nothing.
_NOISE = re.compile(
    rb"Invalid scale"  # Grok on 512 GPUs and more
    rb"|tritonclient .*requires|pip's dependency resolver"
    rb"|SLURM auto-requeueing enabled"
    rb"|CANCELLED AT (?!.*DUE TO)"  # somebody cancelled the job
)

# Every line that fits a rule holds one of these. Searching for each of them is many times faster than one pattern.
_WORDS = (
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
    *(b"Required variable", b"unbound variable", b"exited with code"),
)


def explain(line: bytes) -> Failure | None:
    """What one raw line says about a failure, or None."""
    if _NOISE.search(line):
        return None
    for rule in _RULES:
        if rule.pattern.search(line):
            return Failure(shown(line), rule.reason, rule.fix, rule.weight)
    return None


def of_state(state: str) -> Failure | None:
    """What Slurm's own word for the end of a job says about why it failed."""
    found = explain(_STATES[state].encode()) if state in _STATES else None
    return replace(found, line=f"Slurm: {state}") if found else None


def worst(data: bytes, start: int = 0, end: int | None = None) -> Failure | None:
    """The most telling failure line of `data[start:end]`, which holds whole lines."""
    found: Failure | None = None
    for line in _suspects(data, start, len(data) if end is None else end):
        failure = explain(line)
        if failure and (found is None or failure.weight > found.weight):
            found = failure
    return found


def _suspects(data: bytes, start: int, end: int) -> Iterator[bytes]:
    """The lines with a word that failures have, in order, each once."""
    hits = set[int]()
    for word in _WORDS:
        at = data.find(word, start, end)
        while at >= 0:
            hits.add(at)
            at = data.find(word, at + len(word), end)
    beyond = start
    for at in sorted(hits):
        if at < beyond:
            continue
        low = max(start, at - _REACH)
        first = max(data.rfind(b"\n", low, at), data.rfind(b"\r", low, at)) + 1 or low
        ends = [where for mark in (b"\n", b"\r") if (where := data.find(mark, at, min(end, at + _REACH))) >= 0]
        beyond = min(ends, default=min(end, at + _REACH))
        yield data[first:beyond]
