"""What programs say when an install fails, word for word, and what is made of it."""

from __future__ import annotations

import pytest

from llmb_tui.launch.install_failure import explain

# (what the program said, a part of the reason, a part of what to do)
CASES = {
    "commit that is not public": (
        "Commit f260da5d65fccdf9c78283647f7497d9428fb654 is not in https://github.com/NVIDIA/NeMo.git.",
        "may not be public",
        "another GPU type, or choose the direct procedure",
    ),
    "git: name": (
        "fatal: unable to access 'https://github.com/NVIDIA/NeMo/': Could not resolve host: github.com",
        "cannot reach the git host",
        "a bundle of each repository",
    ),
    "git: login": (
        "fatal: could not read Username for 'https://github.com': terminal prompts disabled",
        "asks for a login",
        "Ask NVIDIA",
    ),
    "git: tag": (
        "fatal: Remote branch v25.04 not found in upstream origin",
        "does not have the release's tag",
        "with all tags",
    ),
    "git: short": (
        "fatal: fetch-pack: invalid index-pack output",
        "broke off",
        "goes on where it stopped",
    ),
    "git: owner": (
        "fatal: detected dubious ownership in repository at '/lustre/llmb/llmb_repo'",
        "belongs to somebody else",
        "of your own",
    ),
    "git: too old": (
        "This git is too old for what was brought to /lustre/llmb/offline: git version 2.25.1.",
        "git 2.31",
        "newer git",
    ),
    "python": (
        "No suitable Python: 3.12 is needed, and neither a module, conda nor uv has it. Found: none.",
        "No Python",
        "uv or Miniconda",
    ),
    "python on the nodes": (
        "The environment's Python does not run on cn001: /lustre/llmb/venvs/nemotron4-25.04/bin/python",
        "nodes do not have",
        "on every node",
    ),
    "pip: version": (
        "ERROR: Could not find a version that satisfies the requirement scipy<1.13.0 (from versions: none)",
        "no version of a package",
        "wheels",
    ),
    "pip: network": (
        "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by 'NewConnectionError('<pip._vendor."
        "urllib3.connection.HTTPSConnection>: Failed to establish a new connection: [Errno 101]')': /simple/scipy/",
        "cannot reach the Python package index",
        "a folder `wheels`",
    ),
    "pip: compiler": (
        "error: command 'gcc' failed: No such file or directory",
        "no working compiler",
        "gcc",
    ),
    "pip: header": (
        "sox.c:12:10: fatal error: Python.h: No such file or directory",
        "no working compiler",
        "header files",
    ),
    "pip: build": ("error: subprocess-exited-with-error", "could not be built", "step's log"),
    "pip: conflict": ("ERROR: ResolutionImpossible: for help visit", "no set of packages", "direct procedure"),
    "pip: full": (
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
        "is full",
        "Free some space",
    ),
    "hub: no token": (
        "There is no Hugging Face token on the cluster.",
        "needs a token",
        "Give your Hugging Face token",
    ),
    "hub: gated": (
        "huggingface_hub.errors.GatedRepoError: 403 Client Error. (Request ID: Root=1-6)",
        "no access to that model yet",
        "model's page",
    ),
    "hub: rate": (
        "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/api",
        "limits",
        "Wait some minutes",
    ),
    "setup: bash": ("Requires Bash 4.2 or greater.", "too old", "newer one"),
    "setup: variable": (
        "./setup.sh: line 30: STAGE_PATH: unbound variable",
        "lacks a variable",
        "step's log",
    ),
    "setup: srun": (
        "srun: error: Unable to allocate resources: Invalid account or account/partition combination specified",
        "Slurm refused",
        "account",
    ),
    "setup: patch": ("error: patch failed: scripts/performance/helpers.py:27", "patch does not fit", "step's log"),
    "changed checkout": (
        "/lustre/llmb/llmb_repo has local changes:  M nemotron4-340b/launch.sh",
        "left as it is",
        "Move it away",
    ),
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


def test_who_refuses_says_which_key_would_help() -> None:
    keys = {name: explain([said]).key_would_help for name, (said, *_) in CASES.items()}
    helpful = {key: [name for name in keys if keys[name] == key] for key in ("ngc", "hugging-face")}
    assert helpful == {
        "ngc": ["enroot: login refused", "enroot: forbidden", "curl -f in a layer", "enroot: rate"],
        "hugging-face": ["hub: no token", "hub: gated"],
    }


def test_what_nobody_knows_is_quoted_without_a_reason() -> None:
    failure = explain(["first", "the \x1b[31mlast\x07 words", "  "])
    assert failure.line == "the last\N{REPLACEMENT CHARACTER} words"
    assert failure.reason == ""
    assert "log" in failure.fix


def test_a_silent_failure_has_no_line() -> None:
    assert explain([]).line == ""
