"""Further `#SBATCH` options: the recipes' `ADDITIONAL_SLURM_PARAMS` grammar, and a profile's own fields of that kind.

The grammar is the recipes' own: `key=value` or a bare flag, separated by `;`; without a `;`, by blanks.
"""

from __future__ import annotations

import re

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.errors import Trouble
from llmb_tui.text import clean_line

Option = tuple[str, str | None]
"""Long name without dashes, and value; None for a bare flag."""

PROFILE_FIELDS = ("reservation", "qos", "constraint", "segment", "exclude")
"""Fields of a profile that are options of `sbatch` by the same name."""

_NAME = re.compile(r"[a-z][a-z0-9-]+", re.ASCII)
# sbatch takes quotes and backslashes of an #SBATCH line apart itself; no option needs them.
_VALUE = re.compile(r"[ !#-&(-\[\]-~]+", re.ASCII)

# What the job is made of. sbatch takes any unique beginning of an option's name for the option.
_OURS = {
    "account": "The cluster's account says it.",
    "partition": "The cluster's partition says it.",
    "nodes": "The selection says it.",
    "ntasks": "The selection says it.",
    "ntasks-per-node": "The selection says it.",
    "gpus": "The cluster's GPU request says it.",
    "gpus-per-node": "The cluster's GPU request says it.",
    "gpus-per-task": "The cluster's GPU request says it.",
    "gres": "The cluster's GPU request says it.",
    "time": "The selection's time limit says it.",
    "mem": "The cluster's memory says it.",
    "mem-per-cpu": "The cluster's memory says it.",
    "mem-per-gpu": "The cluster's memory says it.",
    "cpus-per-task": "The cluster's CPUs per task say it.",
    "exclusive": "Every job has its nodes to itself.",
    "job-name": "The run is found again by its name.",
    "output": "The log is found by its name.",
    "error": "The log holds both.",
    "open-mode": "The log is found by its name.",
    "chdir": "The run's folder is known by its path.",
    "array": "One run is one job.",
    "dependency": "One run is one job.",
    "clusters": "The profile is of one cluster.",
    "no-requeue": "Every run says so already.",
    "requeue": "A job that Slurm starts again would mix two runs in one result.",
    "export": "The script needs the environment as it is.",
    "export-file": "The script needs the environment as it is.",
    "get-user-env": "The script needs the environment as it is.",
    "parsable": "The submission reads the job's number.",
    "quiet": "The submission reads the job's number.",
    "wait": "The submission waits for nothing.",
    "test-only": "The job is to run.",
    "wrap": "The script is made from the selection.",
    "uid": "The job is yours.",
    "gid": "The job is yours.",
}
# Said by every script already: the recipes' own examples hold the first.
_SAID_ALREADY: tuple[Option, ...] = (("exclusive", None), ("no-requeue", None))
_FIX = "Separate `key=value` and bare flags by semicolons, such as `nodelist=n1,n2;comment=mine`."


def parse_slurm_params(text: str) -> tuple[Option, ...]:
    """The options of a parameter string, in its order.

    Raises Trouble (exit code 1) for what is no option, is named twice, or is what every run sets by itself.
    """
    parts = text.split(";") if ";" in text else text.split()
    found: dict[str, str | None] = {}
    for part in filter(None, map(str.strip, parts)):
        name, value = _option(part)
        if name in found:
            raise _refused(f"Duplicate Slurm parameter '{name}' was specified more than once.")
        found[name] = value
    return tuple(option for option in found.items() if option not in _SAID_ALREADY)


def sbatch_options(profile: ClusterProfile) -> tuple[Option, ...]:
    """Every further `sbatch` option of a profile.

    Raises Trouble (exit code 1) as `parse_slurm_params` does, and where a parameter says what a field says too.
    """
    fields = {name: value for name in PROFILE_FIELDS if (value := getattr(profile, name)) is not None}
    params = parse_slurm_params(profile.slurm_params or "")
    for name, _ in params:
        for field in fields:
            if field.startswith(name):
                raise _refused(f"Slurm parameter '{name}' is a field of the profile too: {field} is set there.")
    return (*((name, str(value)) for name, value in fields.items()), *params)


def is_option(name: str, value: str | None) -> bool:
    """True when this can be written into a batch script: checked again there, whoever made it."""
    return _NAME.fullmatch(name) is not None and (value is None or _VALUE.fullmatch(value) is not None)


def _option(part: str) -> Option:
    if part.startswith("-"):
        shown = clean_line(part.lstrip("-"))
        raise _refused(f"Slurm parameters should not include a leading '--': write {shown!r}.")
    name, equals, value = part.partition("=")
    name = name.strip().replace("_", "-")
    value = value.strip()
    if not is_option(name, None):
        raise _refused(f"{clean_line(name)!r} is no Slurm parameter.")
    if equals and not is_option(name, value):
        shown = clean_line(value) or "nothing"
        raise _refused(f"Slurm parameter '{name}' cannot be {shown}: it takes text without quotes and backslashes.")
    option = (name, value if equals else None)
    for ours, reason in _OURS.items():
        if ours.startswith(name) and option not in _SAID_ALREADY:
            raise _refused(f"Slurm parameter '{name}' is set by every run. {reason}")
    return option


def _refused(why: str) -> Trouble:
    return Trouble("The further Slurm parameters cannot be used.", why, _FIX, exit_code=1)
