"""`additions`: what the options of a run put around its command: a name, mounts, folders, environment. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field

from llmb_tui.cluster.profile_check import OWN_TARGETS
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.validation import PATH, matches
from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean_line
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import RunOptions
from llmb_tui.preflight.secret import HUB_TOKEN

RUN_FOLDER = "/nemo_run"
"""The run's folder in the container."""
NETWORK_FOLDER = "nccl"
"""Folder below the run's, into which the first rank of each node lets NCCL write its network lines."""
NETWORK_README = f"{NETWORK_FOLDER}/README"
"""File that makes that folder; a run that has it keeps those lines."""
NETWORK_NOTE = "NCCL's network lines kept in a file"
"""For who reviews or compares a run that keeps them."""
# NCCL reads these variables when it loads. If the image or the site sets NCCL_DEBUG, its lines stay where they go.
_NETWORK_LINES = f"""\
if [ "$SLURM_LOCALID" = 0 ] && [ -z "$NCCL_DEBUG" ]; then \
export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET NCCL_DEBUG_FILE={RUN_FOLDER}/{NETWORK_FOLDER}/%h.%p; fi; exec "$@\""""
TOKEN = "/llmb-tui/hugging-face-token"  # noqa: S105 - where it is in the container, not what it is
_TOKEN_LINK = "hugging-face-token"  # noqa: S105 - as above, in the run's folder


@dataclass(frozen=True, slots=True)
class Additions:
    """What the options of a run need; the fields are those of `LaunchSpec`."""

    mounts: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    links: tuple[tuple[str, str], ...] = ()
    folders: tuple[str, ...] = ()


def suffix(options: RunOptions, profile: SlurmProfile) -> str:
    """End of the experiment's name, as Nemotron4 25.04 and Llama 3.1 25.04 name what is no plain benchmark run."""
    marks = (("_pinned", profile.cpus_per_task > 0), ("_nsys", options.profile), ("_nccltrace", options.nccl_trace))
    return "".join(mark for mark, holds in marks if holds)


def additions(options: RunOptions, install: str, task_dir: str) -> Additions:
    """What the options need in the container.

    Raises Trouble (exit code 1) for a checkpoint that cannot be mounted where it is.
    """
    checkpoint = options.load_checkpoint
    mounts = () if checkpoint is None else (_checkpoint_mount(checkpoint),)
    if not options.hub_tokenizer:
        return Additions(mounts)
    cache = f"{install}/.cache/huggingface"
    return Additions(
        # The token itself is in the operator's home directory, which the container does not see.
        mounts=(*mounts, f"{cache}:{cache}", f"{task_dir}/{_TOKEN_LINK}:{TOKEN}:ro"),
        env={"HF_HOME": cache, "HF_TOKEN_PATH": TOKEN},
        links=((HUB_TOKEN, _TOKEN_LINK),),
        folders=(cache,),
    )


def output_files(prefix: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Files in the run's folder that make the folders which a profiler writes to, as the recipes do beforehand."""
    below = [word.removeprefix(f"{RUN_FOLDER}/") for word in prefix if word.startswith(f"{RUN_FOLDER}/")]
    return tuple((f"{posixpath.dirname(path)}/README", f"What {prefix[0]} writes.\n") for path in below)


def keeps_network(plan: Plan, env: Mapping[str, str]) -> bool:
    """Whether NCCL writes down which network it uses, in a run with these variables.

    A run on one node uses none; a profile is disturbed by it; and what NCCL writes otherwise is not redirected.
    """
    options = plan.options
    wanted = not (options.no_network_file or options.profile or options.nccl_trace)
    return wanted and plan.nodes > 1 and not any(name.startswith("NCCL_DEBUG") for name in env)


def with_network_lines(command: tuple[str, ...]) -> tuple[str, ...]:
    """A command that, as the first task of its node, lets NCCL write its network lines into the run's folder."""
    return ("bash", "-c", _NETWORK_LINES, "bash", *command)


def _checkpoint_mount(path: str) -> str:
    """The checkpoint's directory at the same place in the container, where NeMo is told to look for it."""
    top = "/" + path.lstrip("/").partition("/")[0]
    if not matches(PATH, path) or top in OWN_TARGETS:
        raise Trouble(
            f"The checkpoint cannot be loaded from {clean_line(path) or 'nowhere'}.",
            "It is mounted in the container at the same place.",
            "Give the absolute path on the cluster of the directory that `weights` is in, "
            "of letters, digits and . _ + @ = - only.",
            exit_code=1,
        )
    return f"{path}:{path}"
