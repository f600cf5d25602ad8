"""`ClusterInventory`: the accounts, partitions, directories and other choices that a cluster offers its user."""

from __future__ import annotations

import platform
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace

from llmb_tui.cluster.batch import Answer, run_batch
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.accounting import (
    ASSOCIATIONS,
    DEFAULT_ACCOUNT,
    accounts_of,
    parse_associations,
    qos_of,
)
from llmb_tui.cluster.slurm.errors import slurm_error
from llmb_tui.cluster.slurm.partition import SINFO_FORMAT, Partition, parse_partitions, sinfo
from llmb_tui.cluster.slurm.profile import LOCAL, GpuRequest, SlurmProfile
from llmb_tui.cluster.validation import PATH, matches
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line, count_in

_DEADLINE_S = 45.0
IF_IT_ANSWERS = '[ "$rc_ping" -eq 0 ] && '
"""Prefix of a Slurm command after `ping`: if the controller hangs, every command would wait 10 s."""
CONFIG = (
    "scontrol show config | grep -E "
    "'^(ClusterName|SelectType|AccountingStorageEnforce|PlugStackConfig|JobSubmitPlugins) '"
)
"""Snippet for `run_batch` that prints the settings for `parse_config`."""

# Each line is `free KiB|install directory`.
_DIRECTORIES = """
offer() {
    if [ -d "$1" ] && [ -w "$1" ]; then
        printf '%s|%s\\n' "$(limited 4 df -Pk "$1" | awk 'END { print $(NF - 2) }')" "$2"
    fi
}
place=$LLMB_INSTALL
while [ -n "$place" ] && [ ! -e "$place" ]; do place=${place%/*}; done
offer "$place" "$LLMB_INSTALL"
offer_below() { offer "$1" "${1%/}/llmb"; }
each_place offer_below
"""


@dataclass(frozen=True, slots=True)
class Directory:
    """A possible install directory, which need not exist yet."""

    path: str
    free_gb: float | None
    """Free space in decimal GB; None if `df` did not print it."""


@dataclass(frozen=True, slots=True)
class ClusterInventory:
    """Choices of one user on one cluster. Names are clean text."""

    user: str
    home: str
    accounts: tuple[str, ...]
    """The user's accounts; empty if the cluster has no accounting, or it did not answer."""
    default_account: str | None
    partitions: tuple[Partition, ...]
    qos: tuple[str, ...]
    reservations: tuple[str, ...]
    gpu_request: GpuRequest | None
    """Suitable request for GPUs; None if `sinfo` shows no nodes."""
    directories: tuple[Directory, ...]
    """Possible install directories, the most likely one first."""

    @property
    def default_partition(self) -> Partition | None:
        """The site's default if it has whole GPUs, else the partition with most nodes with GPUs, or the default."""
        up = [partition for partition in self.partitions if partition.is_up]
        default = next((partition for partition in up if partition.is_default), None)
        if default is not None and default.has_whole_gpus:
            return default
        with_gpus = [partition for partition in up if partition.has_whole_gpus]
        return max(with_gpus, key=lambda partition: partition.training_nodes, default=default)

    @property
    def cpu_partitions(self) -> tuple[str, ...]:
        """Partitions without GPUs; empty if no partition has GPUs."""
        if not any(partition.gpus for partition in self.partitions):
            return ()
        return tuple(partition.name for partition in self.partitions if not partition.gpus)

    def with_defaults(self, profile: SlurmProfile) -> SlurmProfile:
        """Return the profile with defaults in all required fields that are empty."""
        partition = self.default_partition
        account = self.default_account or next(iter(self.accounts), self.user)
        directory = self.directories[0].path if self.directories else f"{self.home}/llmb"
        return replace(
            profile,
            account=profile.account or account,
            partition=profile.partition or (partition.name if partition else ""),
            install_dir=profile.install_dir or directory,
            gpu_request=profile.gpu_request if profile.partition else self.gpu_request or profile.gpu_request,
        )


def read_inventory(session: Session) -> ClusterInventory:
    """Read the choices of a cluster, in one remote call.

    Raises SlurmError if Slurm is missing or its controller does not answer, and the errors of `Session.run`.
    """
    return parse_inventory(run_batch(session, _COMMANDS, _DEADLINE_S))


def parse_inventory(answers: dict[str, Answer]) -> ClusterInventory:
    """Parse the answers to the commands of `read_inventory`. Raises SlurmError."""
    if answers["ping"].exit_code != 0:
        raise slurm_error("scontrol ping", answers["ping"])
    if answers["nodes"].exit_code != 0:
        raise slurm_error("sinfo", answers["nodes"])
    config = parse_config(answers["config"].text)
    associations = parse_associations(_text_if_successful(answers["associations"]), config.get("ClusterName", ""))
    accounts = tuple(map(clean_line, accounts_of(associations)))
    default = clean_line(_text_if_successful(answers["default"]).partition("\n")[0].strip())
    partitions = tuple(parse_partitions(answers["nodes"].text))
    identity = [clean_line(line) for line in answers["who"].text.splitlines()] + ["", ""]
    return ClusterInventory(
        user=identity[0],
        home=identity[1],
        accounts=accounts,
        default_account=default if default in accounts else None,
        partitions=partitions,
        qos=tuple(map(clean_line, qos_of(associations))),
        reservations=tuple(re.findall(r"(?m)^ReservationName=([\w.+@=-]+)", answers["reservations"].text)),
        gpu_request=fitting_request(partitions, config),
        directories=_directories(answers["directories"].text),
    )


def unfilled_local_profile() -> SlurmProfile:
    """Make a profile that is sufficient to run commands here. Raises LlmbError (exit code 1) if Slurm is missing."""
    if shutil.which("sbatch") is None:
        raise LlmbError(
            "This machine is not a login node: `sbatch` is not on the PATH.",
            f"The cluster {LOCAL!r} is for running llmb-tui on the login node itself, without SSH.",
            "Choose a saved cluster (`llmb-tui clusters` lists them), or load Slurm's module first.",
            exit_code=1,
        )
    return SlurmProfile(LOCAL, platform.node() or "localhost", "", "", "", transport="local")


def local_profile(offers: ClusterInventory) -> SlurmProfile:
    """Make the complete profile from the default account, the default partition and `$LLMB_INSTALL` or a guess.

    Raises LlmbError (exit code 1) if Slurm has no partition that is up.
    """
    if offers.default_partition is None:
        raise LlmbError(
            "This login node has no partition that is up.",
            "`sinfo` lists none.",
            "Ask the cluster's administrators, or save a profile that names one.",
            exit_code=1,
        )
    return offers.with_defaults(unfilled_local_profile())


def parse_config(text: str) -> dict[str, str]:
    """Parse the output of `scontrol show config` to settings by name."""
    return dict(re.findall(r"(?m)^(\w+)\s*=\s*(.*?)\s*$", text))


def fitting_request(partitions: tuple[Partition, ...], config: Mapping[str, str]) -> GpuRequest | None:
    """Choose the request for GPUs: none if Slurm counts no GPUs in any partition, `gres` if Slurm is too old.

    `partitions`: all partitions of the cluster. GPUs are requested if any of them has GPUs.
    """
    if not any(partition.groups for partition in partitions):
        return None
    if not any(partition.gpus for partition in partitions):
        return "none"
    return "gpus-per-node" if config.get("SelectType", "cons_tres").endswith("cons_tres") else "gres"


def _text_if_successful(answer: Answer) -> str:
    return answer.text if answer.exit_code == 0 else ""


def _directories(text: str) -> tuple[Directory, ...]:
    """Parse the directories that are valid in a profile, each once."""
    directories: dict[str, Directory] = {}
    for line in text.splitlines():
        free, _, path = line.partition("|")
        if matches(PATH, path):
            kib = count_in(free)
            free_gb = None if kib is None else kib * 1024 / 1e9
            directories.setdefault(path, Directory(path, free_gb))
    return tuple(directories.values())


_COMMANDS = {
    "ping": "limited 11 scontrol ping",
    "config": IF_IT_ANSWERS + CONFIG,
    "nodes": IF_IT_ANSWERS + sinfo("-o", SINFO_FORMAT),
    "reservations": IF_IT_ANSWERS + "scontrol -o show reservation",
    "associations": ASSOCIATIONS,
    "default": DEFAULT_ACCOUNT,
    "who": 'id -un; printf "%s\\n" "$HOME"',
    "directories": remote_text("places.sh") + _DIRECTORIES,
}
