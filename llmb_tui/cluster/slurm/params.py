"""Additional `#SBATCH` options, from a profile's fields and its parameter string.

The parameter string has the grammar of the recipes' `ADDITIONAL_SLURM_PARAMS`: `key=value` or a flag, separated by `;`,
or by blanks if there is no `;`. In addition, text in double quotes is not split, so that a value may be JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line

Option = tuple[str, str | None]
"""Long name without dashes, and value; None for a flag."""

PROFILE_FIELDS = ("reservation", "qos", "constraint", "segment", "exclude")
"""Fields of a profile that have the name of an `sbatch` option."""

_NAME = re.compile(r"[a-z][a-z0-9-]+", re.ASCII)
_VALUE = re.compile(r"[ -~]+")
"""Printable ASCII: whoever writes a value into a script or a command quotes it."""
_PART = re.compile(r'(?:[^;"]|"(?:[^"\\]|\\.)*"|")+')
_QUOTED = re.compile(r"""'.*'|".*\"""")

# Options that every job sets. sbatch accepts any unique prefix of an option's name.
_RESERVED = {
    name: reason
    for reason, names in (
        ("Use the cluster's account.", "account"),
        ("Use the cluster's partition.", "partition"),
        ("Use the scale of the selection.", "nodes ntasks ntasks-per-node"),
        ("Use the cluster's GPU request and GPU type.", "gpus gpus-per-node gpus-per-task gres"),
        ("Use the time limit of the selection.", "time"),
        ("Use the cluster's memory: Slurm accepts only one request.", "mem mem-per-cpu mem-per-gpu"),
        ("Use the cluster's CPUs per task.", "cpus-per-task"),
        ("Every job has exclusive nodes.", "exclusive"),
        ("The program finds the run by its job name.", "job-name"),
        ("The program finds the log by its file name.", "output open-mode"),
        ("The log contains both outputs.", "error"),
        ("The program finds the run's folder by its path.", "chdir"),
        ("A run is exactly one job.", "array dependency"),
        (
            "For another cluster of the site, set SLURM_CLUSTERS in ~/.bashrc on the login node: each command of Slurm "
            "reads it.",
            "clusters",
        ),
        ("Every run has this option.", "no-requeue"),
        ("A job that Slurm starts again would mix two runs in one result.", "requeue"),
        ("The script needs the unchanged environment.", "export export-file get-user-env"),
        ("The submission reads the job's number from the output.", "parsable quiet"),
        ("The submission does not wait for the job.", "wait"),
        ("The job would only be tested.", "test-only"),
        ("The script is made from the selection.", "wrap"),
        ("The job runs as the user who submits it.", "uid gid"),
    )
    for name in names.split()
}
# Options of every script, which may be repeated: the recipes' examples contain the first.
_REPEATABLE: tuple[Option, ...] = (("exclusive", None), ("no-requeue", None))
_FIX = "Separate `key=value` and flags by semicolons, such as `nodelist=n1,n2;comment=mine`."


def parse_slurm_params(text: str) -> tuple[Option, ...]:
    """Parse a parameter string to options, in its order.

    Raises LlmbError (exit code 1) for a part that is not an option, a duplicate, and an option that every run sets.
    """
    parts = _PART.findall(text) if ";" in text or '"' in text else text.split()
    options: dict[str, str | None] = {}
    for part in filter(None, map(str.strip, parts)):
        name, value = _option(part)
        if name in options:
            raise _refused(f"Duplicate Slurm parameter '{name}' was specified more than once.")
        options[name] = value
    return tuple(option for option in options.items() if option not in _REPEATABLE)


def sbatch_options(profile: SlurmProfile) -> tuple[Option, ...]:
    """All additional `sbatch` options of a profile.

    Raises LlmbError (exit code 1) as `parse_slurm_params` does, and if a parameter and a field set the same option.
    """
    fields = {name: value for name in PROFILE_FIELDS if (value := getattr(profile, name)) is not None}
    params = parse_slurm_params(profile.slurm_params or "")
    for name, _ in params:
        for field in fields:
            if field.startswith(name):
                raise _refused(f"Slurm parameter '{name}' is also set by the profile's field {field}.")
    return (*((name, str(value)) for name, value in fields.items()), *params)


def gpu_options(profile: SlurmProfile, gpus_per_node: int | str) -> tuple[Option, ...]:
    """Options that request the GPUs of a node, by type if the profile has one; none if Slurm counts no GPUs."""
    return gpu_request_options(profile.typed_gpu_request, gpus_per_node)


def gpu_request_options(request: str, gpus_per_node: int | str) -> tuple[Option, ...]:
    """Options for a `SlurmProfile.typed_gpu_request`."""
    way, _, gpu_type = request.partition(":")
    count = f"{gpu_type}:{gpus_per_node}" if gpu_type else str(gpus_per_node)
    value = {"gres": f"gpu:{count}", "gpus-per-node": count}.get(way)
    return () if value is None else ((way, value),)


def partition_options(partition: str) -> tuple[Option, ...]:
    """Option that names the partitions; none if Slurm or the site chooses."""
    return (("partition", partition),) if partition else ()


def arguments_of(options: Iterable[Option]) -> tuple[str, ...]:
    """Command line arguments of options, not quoted."""
    return tuple(f"--{name}" if value is None else f"--{name}={value}" for name, value in options)


def is_option(name: str, value: str | None) -> bool:
    """True if an option can be written into a batch script, which checks it again."""
    return _NAME.fullmatch(name) is not None and (value is None or _VALUE.fullmatch(value) is not None)


def _option(part: str) -> Option:
    if part.startswith("-"):
        text = clean_line(part.lstrip("-"))
        raise _refused(f"Slurm parameters should not include a leading '--': write {text!r}.")
    name, equals, value = part.partition("=")
    name = name.strip().replace("_", "-")
    value = value.strip()
    if not is_option(name, None):
        raise _refused(f"{clean_line(name)!r} is not a Slurm parameter.")
    if equals and not is_option(name, value):
        text = clean_line(value) or "nothing"
        raise _refused(f"Slurm parameter '{name}' cannot be {text}: use printable ASCII characters.")
    if _QUOTED.fullmatch(value):
        raise _refused(f"Slurm parameter '{name}' cannot be {value}: omit the outer quotes, the program quotes it.")
    option = (name, value if equals else None)
    for reserved, reason in _RESERVED.items():
        if reserved.startswith(name) and option not in _REPEATABLE:
            raise _refused(f"Slurm parameter '{name}' is set by every run. {reason}")
    return option


def _refused(why: str) -> LlmbError:
    return LlmbError("The additional Slurm parameters cannot be used.", why, _FIX, exit_code=1)
