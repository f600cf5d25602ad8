"""`additions`: mounts, folders and environment for the options of a run, and the option's mark in its name. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field

from llmb_tui.cluster.profile_check import OWN_TARGETS
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.validation import PATH, matches
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import RunOptions
from llmb_tui.preflight.secret import HUB_TOKEN

RUN_FOLDER = "/nemo_run"
"""Path of the run's folder in the container."""
NETWORK_FOLDER = "nccl"
"""Folder below the run's folder, in which NCCL writes its network lines for the first rank of each node."""
NETWORK_README = f"{NETWORK_FOLDER}/README"
"""File that makes that folder; a run with this file keeps its network lines."""
NETWORK_NOTE = "NCCL's network lines kept in a file"
"""Note on a run that keeps its network lines, for review and comparison."""
# NCCL reads these variables when it loads. If the image or the site sets NCCL_DEBUG, its output is not redirected.
_NETWORK_LINES = f"""\
if [ "$SLURM_LOCALID" = 0 ] && [ -z "$NCCL_DEBUG" ]; then \
export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET NCCL_DEBUG_FILE={RUN_FOLDER}/{NETWORK_FOLDER}/%h.%p; fi; exec "$@\""""
TOKEN = "/llmb-tui/hugging-face-token"  # noqa: S105 - its path in the container, not the token
_TOKEN_LINK = "hugging-face-token"  # noqa: S105 - its path in the run's folder, not the token


@dataclass(frozen=True, slots=True)
class Additions:
    """Items that the options of a run need, in fields of `LaunchSpec`."""

    mounts: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    links: tuple[tuple[str, str], ...] = ()
    folders: tuple[str, ...] = ()


def suffix(options: RunOptions, profile: SlurmProfile) -> str:
    """End of the experiment's name, as Nemotron4 25.04 and Llama 3.1 25.04 mark runs with special options."""
    marks = (("_pinned", profile.cpus_per_task > 0), ("_nsys", options.profile), ("_nccltrace", options.nccl_trace))
    return "".join(mark for mark, holds in marks if holds)


def additions(options: RunOptions, install: str, task_dir: str) -> Additions:
    """Items that the options need in the container.

    Raises LlmbError (exit code 1) for a checkpoint path that cannot be mounted.
    """
    checkpoint = options.load_checkpoint
    mounts = () if checkpoint is None else (_checkpoint_mount(checkpoint),)
    if not options.hub_tokenizer:
        return Additions(mounts)
    cache = f"{install}/.cache/huggingface"
    return Additions(
        # The token is in the operator's home directory, which is not mounted in the container.
        mounts=(*mounts, f"{cache}:{cache}", f"{task_dir}/{_TOKEN_LINK}:{TOKEN}:ro"),
        env={"HF_HOME": cache, "HF_TOKEN_PATH": TOKEN},
        links=((HUB_TOKEN, _TOKEN_LINK),),
        folders=(cache,),
    )


def output_files(prefix: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Files in the run's folder whose folders a profiler writes to; the recipes make these folders beforehand, too."""
    below = [word.removeprefix(f"{RUN_FOLDER}/") for word in prefix if word.startswith(f"{RUN_FOLDER}/")]
    return tuple((f"{posixpath.dirname(path)}/README", f"What {prefix[0]} writes.\n") for path in below)


def keeps_network(plan: Plan, env: Mapping[str, str]) -> bool:
    """True if NCCL's network lines of a run with these variables are kept in a file.

    A run on one node uses no network, a profile would be disturbed, and other NCCL output is not redirected.
    """
    options = plan.options
    wanted = not (options.no_network_file or options.profile or options.nccl_trace)
    return wanted and plan.nodes > 1 and not any(name.startswith("NCCL_DEBUG") for name in env)


def with_network_lines(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command, extended so that each node's first task keeps NCCL's network lines in the run's folder."""
    return ("bash", "-c", _NETWORK_LINES, "bash", *command)


def _checkpoint_mount(path: str) -> str:
    """Mount of the checkpoint's directory at the same path in the container, where NeMo looks for it."""
    top = "/" + path.lstrip("/").partition("/")[0]
    if not matches(PATH, path) or top in OWN_TARGETS:
        raise LlmbError(
            f"The checkpoint cannot be loaded from {clean_line(path) or 'an empty path'}.",
            "The container mounts it at the same path.",
            "Enter the absolute path on the cluster of the directory that contains `weights`, "
            "with letters, digits and . _ + @ = - only.",
            exit_code=1,
        )
    return f"{path}:{path}"
