"""What a cluster offers for the fields of its profile. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from llmb_tui.cluster.llmb.install import request_of, settings_of
from llmb_tui.text import plural
from llmb_tui.wizard.choices import Choice

if TYPE_CHECKING:
    from llmb_tui.cluster.inventory import ClusterInventory
    from llmb_tui.cluster.llmb.install import LlmbInstall
    from llmb_tui.cluster.slurm.partition import Partition


def summary(offers: ClusterInventory) -> str:
    """What was read, in one line."""
    counts = [
        plural(len(offers.accounts), "account") if offers.accounts else "no accounts kept",
        plural(len(offers.partitions), "partition"),
        plural(len(offers.reservations), "reservation") if offers.reservations else "",
    ]
    return "read: " + ", ".join(count for count in counts if count)


def offered(offers: ClusterInventory) -> dict[str, tuple[Choice, ...]]:
    """Choices by field of the profile, the likeliest first."""
    accounts = sorted(offers.accounts, key=lambda account: account != offers.default_account)
    likely = offers.default_partition
    partitions = sorted(offers.partitions, key=lambda partition: (partition != likely, not partition.gpus))
    return {
        "account": tuple(Choice(a, a, "default" if a == offers.default_account else "") for a in accounts),
        "partition": tuple(_partition(partition) for partition in partitions),
        "cpu_partition": tuple(Choice(name, name) for name in offers.cpu_partitions),
        "qos": tuple(Choice(name, name) for name in offers.qos),
        "reservation": tuple(Choice(name, name) for name in offers.reservations),
        "install_dir": tuple(
            Choice(place.path, place.path, "" if place.free_gb is None else f"{place.free_gb:,.0f} GB free")
            for place in offers.directories
        ),
    }


def with_llmb(
    choices: Mapping[str, tuple[Choice, ...]], installs: Iterable[LlmbInstall]
) -> dict[str, tuple[Choice, ...]]:
    """The choices, and first among them what the configurations of llmb-run say, marked as theirs."""
    merged = dict(choices)
    for install in reversed(tuple(installs)):
        mark = f"in {_configuration(install)}"
        for name, value in settings_of(install).items():
            known = {choice.value: choice for choice in merged.get(name, ())}
            choice = known.pop(value, Choice(value, value))
            detail = f"{choice.detail}, {mark}" if choice.detail else mark
            merged[name] = (replace(choice, detail=detail), *known.values())
    return merged


def request_details(installs: Iterable[LlmbInstall]) -> dict[str, str]:
    """By GPU request, which configurations of llmb-run ask so."""
    details: dict[str, str] = {}
    for install in installs:
        request, count = request_of(install)
        words = f"{count} on a node, in {_configuration(install)}" if count else f"in {_configuration(install)}"
        details[request] = f"{details[request]}; {words}" if request in details else words
    return details


def _configuration(install: LlmbInstall) -> str:
    return f"llmb-run {install.release}'s configuration" if install.release else "llmb-run's configuration"


def _partition(partition: Partition) -> Choice:
    kinds = ", ".join(f"{gpus.count} × {gpus.type or 'GPU'}" for gpus in partition.gpus) or "no GPUs"
    limit = "" if partition.time_limit_s is None else f", at most {partition.time_limit_s / 3600:g} h"
    down = None if partition.is_up else "it is down"
    return Choice(partition.name, partition.name, f"{plural(partition.nodes, 'node')}, {kinds}{limit}", down)
