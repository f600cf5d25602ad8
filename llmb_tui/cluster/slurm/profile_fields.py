"""Fields of a Slurm profile that the user enters in a form or as flags. Pure."""

from __future__ import annotations

from dataclasses import replace

from llmb_tui.cluster.profile_check import InvalidFieldError
from llmb_tui.cluster.profile_fields import ProfileField, needed, texts_from_profile, values_from_texts
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.slurm.profile_check import check_profile

EMPTY = SlurmProfile(name="", host="", account="", partition="", install_dir="")


REACH = (
    ProfileField("name", "name", "your name for it", needed=True),
    ProfileField("host", "host", "login node, or its name in your ssh configuration", needed=True),
    ProfileField("port", "port", "as ssh would"),
    ProfileField("user", "user", "as ssh would"),
    ProfileField("identity_file", "identity file", "as ssh would: agent, keys, jump hosts"),
)
"""Fields for the connection."""

USE = (
    ProfileField("account", "account", needed=True),
    ProfileField("partition", "partition", "none: Slurm or the site chooses"),
    ProfileField("install_dir", "install directory", "on a file system that all nodes share", needed=True),
)
"""Fields of every job."""

MORE = (
    ProfileField("cpu_partition", "CPU partition", "for work without a GPU"),
    ProfileField("qos", "QOS"),
    ProfileField("reservation", "reservation"),
    ProfileField("constraint", "constraint", "gpu&memory"),
    ProfileField("gpu_type", "GPU type", "any; h100 requests gpu:h100:8"),
    ProfileField("segment", "segment", "nodes in an NVLink block"),
    ProfileField("exclude", "exclude nodes", "cn[003,007]"),
    ProfileField("memory", "memory", "the whole node's, or 500G"),
    ProfileField("cpus_per_task", "CPUs per task", "no pinning"),
    ProfileField("numa_binding", "NUMA binding", "yes, if the recipe has it"),
    ProfileField("mpi", "MPI type", "the recipe's, pmix"),
    ProfileField("vboost", "vboost", "no; yes needs sudo on the nodes"),
    ProfileField("slurm_params", "Slurm parameters", "key=value;key=value;flag"),
    ProfileField("mounts", "mounts", "/data:/data:ro, /scratch:/scratch"),
    ProfileField("env", "environment", "NAME=value; NAME=value"),
    ProfileField("group_writable", "group may write", "no; yes shares new files of the install"),
    ProfileField("read_only", "read-only", "no; yes: the cluster is never changed"),
)
"""Fields that some sites need."""

FIELDS = (*REACH, *USE, *MORE)
"""All fields of the form."""

EXTRA_FIELDS = (
    ProfileField("known_hosts", "file of known host keys", "as ssh would"),
    ProfileField("ssh_config", "OpenSSH configuration", "your own; none: read no file"),
    ProfileField("transport", "transport", "ssh; local: this machine is the login node"),
    ProfileField("gpu_request", "GPU request", "gpus-per-node, gres or none"),
)
"""Fields that the form shows in another way, or not at all."""


def slurm_texts_of(profile: SlurmProfile) -> dict[str, str]:
    """Texts of a profile's values in the form, by field; a default value is an empty text."""
    return texts_from_profile(profile, FIELDS, EMPTY)


def reachable(base: SlurmProfile, texts: dict[str, str]) -> SlurmProfile:
    """Make a profile that is sufficient for a connection. Raises LlmbError; InvalidFieldError for an invalid field."""
    host = texts["host"] or ("localhost" if base.transport == "local" else "")
    if not host:
        raise InvalidFieldError("host", "", "Enter the login node, or its name in your ssh configuration.")
    return replace(base, **values_from_texts(REACH[2:], texts, EMPTY), host=host)


def profile_of(base: SlurmProfile, texts: dict[str, str]) -> SlurmProfile:
    """Make the complete profile; fields that the form does not show are those of `base`.

    Raises InvalidFieldError for the first invalid field.
    """
    needed((field for field in FIELDS if field.name != "host" or base.transport != "local"), texts)
    profile = replace(reachable(base, texts), name=texts["name"], **values_from_texts((*USE, *MORE), texts, EMPTY))
    check_profile(profile)
    return profile
