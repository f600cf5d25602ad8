"""`settings_of`: what the configuration of an installation says for the fields of a cluster profile. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from llmb_tui.cluster.llmb.install import LlmbInstall
from llmb_tui.cluster.profile import ClusterProfile, GpuRequest
from llmb_tui.cluster.profile_check import WrongField, check_profile
from llmb_tui.cluster.slurm.params import PROFILE_FIELDS

_ANY = ClusterProfile(name="any", host="any", account="any", partition="any", install_dir="/any")
# Neither a field nor a further parameter: it is the GPU request.
_GPUS = "gpus-per-node"
_FIELD = {"account": "account", "partition": "partition", "mem": "memory", **{name: name for name in PROFILE_FIELDS}}


def settings_of(install: LlmbInstall) -> dict[str, str]:
    """Text by name of the profile's field. What a profile cannot have is left out."""
    gpu, cpu = dict(install.gpu), dict(install.cpu)
    found = {_FIELD[name]: value for name, value in gpu.items() if name in _FIELD}
    found["install_dir"] = install.root
    if cpu.get("partition") and cpu["partition"] != gpu.get("partition"):
        found["cpu_partition"] = cpu["partition"]
    further = [
        f"{name}={value}" if value else name for name, value in gpu.items() if name not in _FIELD and name != _GPUS
    ]
    # Each with its semicolon: where there is none, blanks separate.
    found["slurm_params"] = "".join(f"{option};" for option in further if _may_be("slurm_params", f"{option};"))
    return {name: value for name, value in found.items() if value and _may_be(name, value)}


def request_of(install: LlmbInstall) -> tuple[GpuRequest, str]:
    """How llmb-run asks for GPUs, and for how many on a node; empty where it does not."""
    count = dict(install.gpu).get(_GPUS, "")
    return ("gpus-per-node", count) if count else ("none", "")


def _may_be(name: str, value: str) -> bool:
    if name == "segment":
        return value.isdecimal() and int(value) > 0
    changed: dict[str, Any] = {name: value}
    try:
        check_profile(replace(_ANY, **changed))
    except WrongField:
        return False
    return True
