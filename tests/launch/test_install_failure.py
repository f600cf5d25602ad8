"""What programs say when an install fails, word for word, and what is made of it."""

from __future__ import annotations

import pytest

from llmb_tui.launch.install_failure import explain

# (what the program said, a part of the reason, a part of what to do)
CASES = {
    "enroot: login refused": (
        "[ERROR] URL https://nvcr.io/proxy_auth returned error code: 401 Unauthorized",
        "refused to hand out the image",
        "NGC API key",
    ),
    "enroot: forbidden": (
        "[ERROR] URL https://nvcr.io/v2/nvidia/nemo/manifests/25.02.01 returned error code: 403 Forbidden",
        "refused to hand out the image",
        "NGC API key",
    ),
    "curl -f in a layer": ("curl: (22) The requested URL returned error: 401", "refused", "NGC API key"),
    "enroot: no such image": (
        "[ERROR] URL https://nvcr.io/v2/nvidia/nemo/manifests/25.02.1 returned error code: 404 Not Found",
        "no image of that name and tag",
        "withdrawn",
    ),
    "enroot: rate": ("[ERROR] URL https://nvcr.io/proxy_auth returned error code: 429 ", "limits", "Wait"),
    "enroot: server": (
        "[ERROR] URL https://nvcr.io/proxy_auth returned error code: 503 Service Unavailable",
        "out of order",
        "Install again",
    ),
    "enroot: program missing": ("[ERROR] Command not found: mksquashfs", "program that enroot needs", "administrators"),
    "curl: name": ("curl: (6) Could not resolve host: nvcr.io", "cannot reach the container registry", "proxy"),
    "curl: proxy name": ("curl: (5) Could not resolve proxy: proxy.example.org", "proxy", "https_proxy"),
    "curl: refused": (
        "curl: (7) Failed to connect to nvcr.io port 443 after 3 ms: Couldn't connect to server",
        "cannot reach the container registry",
        "proxy",
    ),
    "curl: time": (
        "curl: (28) Failed to connect to nvcr.io port 443 after 30001 ms: Timeout was reached",
        "cannot reach the container registry",
        "proxy",
    ),
    "curl: reset": ("curl: (56) Recv failure: Connection reset by peer", "download broke off", "not fetched again"),
    "curl: short": (
        "curl: (18) transfer closed with 913131 bytes remaining to read",
        "download broke off",
        "not fetched again",
    ),
    "curl: certificate": (
        "curl: (60) SSL certificate problem: unable to get local issuer certificate",
        "certificate",
        "administrators",
    ),
    "enroot: checksum": (f"Checksum mismatch: {'a1' * 32}", "download broke off", "not fetched again"),
    "mksquashfs: full": ("Write failed because No space left on device", "is full", "Free some space"),
    "zstd: full": (
        "zstd: error 70 : Write error : cannot write block : No space left on device",
        "is full",
        "Free some space",
    ),
    "tar: full": (
        "tar: usr/lib/x86_64-linux-gnu/libcurl-gnutls.so.4.7.0: Cannot write: No space left on device",
        "temporary directory of enroot is full",
        "ENROOT_TEMP_PATH",
    ),
    "quota": ("mv: error writing '/lustre/images/.x.sqsh': Disk quota exceeded", "quota", "quota raised"),
    "enroot: whiteout": (
        "enroot-aufs2ovlfs: failed to create ovlfs whiteout: /var/tmp/x/39/var/lib: Operation not permitted",
        "may not do what it needs",
        "local disk",
    ),
    "permission": (
        "mkdir: cannot create directory '/lustre/llmb': Permission denied",
        "cannot be written",
        "permissions",
    ),
    "sh: enroot": ("/lustre/step.sh: 7: enroot: not found", "program that the step needs", "PATH"),
    "slurm: account": (
        "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
        "Slurm refused the job",
        "account",
    ),
    "slurm: controller": (
        "squeue: error: slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
        "controller does not answer",
        "scontrol ping",
    ),
    "slurm: time": (
        "slurmstepd: error: *** JOB 3884617 ON node023 CANCELLED AT 2018-08-19T16:30:21 DUE TO TIME LIMIT ***",
        "time limit",
        "Install again",
    ),
    "slurm: node": (
        "slurmstepd: error: *** JOB 17 ON cn003 CANCELLED AT 2026-11-20T16:30:21 DUE TO NODE FAILURE, SEE SLURMCTLD LOG"
        " FOR DETAILS ***",
        "took away the node",
        "Install again",
    ),
    "slurm: scancel": (
        "slurmstepd: error: *** JOB 17 ON cn003 CANCELLED AT 2026-11-20T16:30:21 ***",
        "Somebody cancelled",
        "Install again",
    ),
    "slurm: memory": (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=17.batch. Some of the step tasks have been OOM Killed.",
        "out of memory",
        "CPU partition",
    ),
    "shell: killed": ("Killed", "out of memory", "CPU partition"),
}


@pytest.mark.parametrize(("said", "reason", "fix"), CASES.values(), ids=CASES.keys())
def test_the_words_of_the_programs_are_known(said: str, reason: str, fix: str) -> None:
    failure = explain(["[INFO] Fetching image manifest", said, "enroot made no image."])
    assert failure.line == said.strip()
    assert reason in failure.reason
    assert fix in failure.fix


def test_only_a_refusing_registry_makes_a_key_helpful() -> None:
    helpful = [name for name, (said, *_) in CASES.items() if explain([said]).key_would_help]
    assert helpful == ["enroot: login refused", "enroot: forbidden", "curl -f in a layer", "enroot: rate"]


def test_what_nobody_knows_is_quoted_without_a_reason() -> None:
    failure = explain(["first", "the \x1b[31mlast\x07 words", "  "])
    assert failure.line == "the last\N{REPLACEMENT CHARACTER} words"
    assert failure.reason == ""
    assert "log" in failure.fix


def test_a_silent_failure_has_no_line() -> None:
    assert explain([]).line == ""
