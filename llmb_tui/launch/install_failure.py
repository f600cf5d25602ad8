"""`explain`: why an install step failed, from what its programs said, in plain words with what to do. Pure.

The wording is that of enroot (docker.sh, common.sh), curl, mksquashfs, tar, zstd, git, pip and Slurm themselves, and
may change between versions: matches are loose. That of our own remote scripts is exact. Of several lines that are known
the most telling one is quoted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from llmb_tui.launch.install_rule import AGAIN, rule
from llmb_tui.launch.published.install_failure import PUBLISHED_RULES
from llmb_tui.launch.secret import SecretId
from llmb_tui.text import clean_line


@dataclass(frozen=True, slots=True)
class InstallFailure:
    """Why a step failed, as far as one line of its log says."""

    line: str
    """The line itself, clean; empty where nothing was said."""
    reason: str
    """Empty where the line is not known."""
    fix: str
    key_would_help: SecretId | None = None
    """The key with which it may work."""


_BY_HAND = "Ask the administrators for a way out or a proxy (https_proxy), or put the file there by hand."

# The most telling first. What names a file system comes before what only says that it is full.
_ENDED = (
    rule(
        r"Unable to contact slurm controller|Socket timed out|slurm_load_\w+ error: .*(?:timed out|Unable)",
        "Slurm's controller does not answer, and this step has to be a job here.",
        "Wait until `scontrol ping` answers, and install again.",
    ),
    rule(
        r"sbatch: (?:error|fatal): |Batch job submission failed",
        "Slurm refused the job of this step.",
        "Correct the account, the partition or the QOS in the cluster's profile, or set a CPU partition there.",
    ),
    rule(
        r"^tar: .*(?:No space left on device|Disk quota exceeded)",
        "The temporary directory of enroot is full: the image is unpacked there.",
        "Set ENROOT_TEMP_PATH in ~/.bashrc on the cluster to a directory on a local disk with room, and install again.",
    ),
    rule(
        r"Disk quota exceeded",
        "Your disk quota on that file system is used up.",
        "Free some space there, have the quota raised, or choose another install directory; then install again.",
    ),
    rule(
        r"No space left on device",
        "The file system of the install directory is full.",
        "Free some space there, or choose another install directory; then install again.",
    ),
    rule(
        r"DUE TO TIME LIMIT",
        "The job of this step ran into its time limit.",
        f"{AGAIN} What was downloaded is not fetched again.",
    ),
    rule(
        r"DUE TO (?:NODE FAILURE|PREEMPTION)",
        "Slurm took away the node that this step ran on.",
        AGAIN,
    ),
    rule(r"CANCELLED AT", "Somebody cancelled the job of this step.", AGAIN),
    rule(
        r"(?i)oom[-_ ]?kill|out of memory|cannot allocate memory|^Killed$",
        "The node ran out of memory, or allows too little of it to one user.",
        "Install again when it is less busy; on a login node with tight limits set a CPU partition in the profile.",
    ),
)

_IMAGE = (
    rule(
        r"returned error code: 40[123]\b|\(22\).*error: 40[123]\b",
        "The container registry refused to hand out the image.",
        "Give a valid NGC API key for this cluster; if you gave one, it is wrong, has expired, or has no access.",
        key_would_help="ngc",
    ),
    rule(
        r"returned error code: 429\b|\(22\).*error: 429",
        "The container registry limits how much may be pulled.",
        "Wait some minutes and install again; with an NGC API key it may allow more.",
        key_would_help="ngc",
    ),
    rule(
        r"returned error code: 404\b|\(22\).*error: 404",
        "The container registry has no image of that name and tag.",
        "It may have been withdrawn, or another login is needed: look for it in the NGC catalogue.",
    ),
    rule(
        r"returned error code: 407\b|Received HTTP code 40[37] from proxy|\(5\) Could not resolve proxy",
        "The proxy on the way to the internet refused or cannot be found.",
        "Correct https_proxy in ~/.bashrc on the cluster, or ask the administrators for it.",
    ),
    rule(
        r"returned error code: 5\d\d\b|\(22\).*error: 5\d\d",
        "The container registry is out of order.",
        f"Wait some minutes. {AGAIN}",
    ),
    rule(
        r"SSL certificate problem|server certificate verification failed|curl: \((?:35|51|58|60|77)\)",
        "The certificate of the server was not accepted.",
        "A proxy may look into connections here: ask the administrators for its certificate.",
    ),
    rule(
        r"curl: \((?:6|7|28)\)|Could not resolve host|Failed to connect to|Connection timed out after",
        "The node cannot reach the container registry.",
        _BY_HAND,
    ),
    rule(
        r"curl: \((?:16|18|52|55|56|92)\)|Checksum mismatch|unexpected end of file|premature end",
        "The download broke off.",
        f"{AGAIN} The layers that are there are not fetched again.",
    ),
    rule(
        r"Command not found: \S+",
        "A program that enroot needs is missing on that node.",
        "Ask the administrators to install it; enroot names it in the line.",
    ),
    rule(
        r"(?:sh|bash|env)\b.*: (?:sbatch|enroot)\b.*(?:not found|No such file)",
        "A program that the step needs is missing on that node.",
        "Ask the administrators for it, or make it known to shells that are not interactive (PATH in ~/.bashrc).",
    ),
    rule(
        r"enroot-nsenter|user namespace|failed to create ovlfs whiteout|Operation not permitted",
        "Enroot may not do what it needs on that node or in its temporary directory.",
        "Enroot needs user namespaces, and a temporary directory on a local disk: ask the administrators.",
    ),
    rule(
        r"Exec format error", "A program on that node is for another processor architecture.", "Ask the administrators."
    ),
    rule(
        r"Read-only file system|Permission denied",
        "A directory cannot be written.",
        "Mend its permissions, or choose an install directory that you may write to.",
    ),
    rule(
        r"Stale file handle|Input/output error|Transport endpoint is not connected",
        "The file system failed.",
        f"Tell the administrators. {AGAIN}",
    ),
    rule(
        r"FATAL ERROR|Failed to write to output filesystem|enroot made no image",
        "The image could not be written.",
        f"Look at the step's log on the cluster. {AGAIN}",
    ),
)

_RULES = (*_ENDED, *PUBLISHED_RULES, *_IMAGE)


def explain(lines: Iterable[str]) -> InstallFailure:
    """The most telling of the lines of a log; its last line, without a reason, where none is known."""
    cleaned = [line for raw in lines if (line := clean_line(raw).strip())]
    for known in _RULES:
        for line in cleaned:
            if known.pattern.search(line):
                return InstallFailure(line, known.reason, known.fix, known.key_would_help)
    return InstallFailure(cleaned[-1] if cleaned else "", "", "Look at the step's log on the cluster. " + AGAIN)
