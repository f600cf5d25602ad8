"""Further `#SBATCH` options: the recipes' `ADDITIONAL_SLURM_PARAMS` grammar, and a profile's own fields of that kind.

The grammar is the recipes' own: `key=value` or a bare flag, separated by `;`; without a `;`, by blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean_line

Option = tuple[str, str | None]
"""Long name without dashes, and value; None for a bare flag."""

PROFILE_FIELDS = ("reservation", "qos", "constraint", "segment", "exclude")
"""Fields of a profile that are options of `sbatch` by the same name."""

_NAME = re.compile(r"[a-z][a-z0-9-]+", re.ASCII)
# sbatch takes quotes and backslashes of an #SBATCH line apart itself, and takes a blank and `#` for a comment; a shell
# takes `$` and backticks for its own. No option needs them. What looks like a further option is one more for sbatch.
_VALUE = re.compile(r"(?!.* [-#])[ !#%&(-\[\]-_a-~]+", re.ASCII)

# What the job is made of. sbatch takes any unique beginning of an option's name for the option.
_OURS = {
    name: reason
    for reason, names in (
        ("The cluster's account says it.", "account"),
        ("The cluster's partition says it.", "partition"),
        ("The selection says it.", "nodes ntasks ntasks-per-node"),
        ("The cluster's GPU request says it.", "gpus gpus-per-node gpus-per-task gres"),
        ("The selection's time limit says it.", "time"),
        ("The cluster's memory says it.", "mem mem-per-cpu mem-per-gpu"),
        ("The cluster's CPUs per task say it.", "cpus-per-task"),
        ("Every job has its nodes to itself.", "exclusive"),
        ("The run is found again by its name.", "job-name"),
        ("The log is found by its name.", "output open-mode"),
        ("The log holds both.", "error"),
        ("The run's folder is known by its path.", "chdir"),
        ("One run is one job.", "array dependency"),
        ("The profile is of one cluster.", "clusters"),
        ("Every run says so already.", "no-requeue"),
        ("A job that Slurm starts again would mix two runs in one result.", "requeue"),
        ("The script needs the environment as it is.", "export export-file get-user-env"),
        ("The submission reads the job's number.", "parsable quiet"),
        ("The submission waits for nothing.", "wait"),
        ("The job is to run.", "test-only"),
        ("The script is made from the selection.", "wrap"),
        ("The job is yours.", "uid gid"),
    )
    for name in names.split()
}
# Said by every script already: the recipes' own examples hold the first.
_SAID_ALREADY: tuple[Option, ...] = (("exclusive", None), ("no-requeue", None))
_FIX = "Separate `key=value` and bare flags by semicolons, such as `nodelist=n1,n2;comment=mine`."


def parse_slurm_params(text: str) -> tuple[Option, ...]:
    """The options of a parameter string, in its order.

    Raises Trouble (exit code 1) for what is no option, is named twice, or is what every run sets by itself.
    """
    parts = text.split(";") if ";" in text else text.split()
    options: dict[str, str | None] = {}
    for part in filter(None, map(str.strip, parts)):
        name, value = _option(part)
        if name in options:
            raise _refused(f"Duplicate Slurm parameter '{name}' was specified more than once.")
        options[name] = value
    return tuple(option for option in options.items() if option not in _SAID_ALREADY)


def sbatch_options(profile: SlurmProfile) -> tuple[Option, ...]:
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


def gpu_options(profile: SlurmProfile, gpus_per_node: int) -> tuple[Option, ...]:
    """How the profile asks for the GPUs of a node; none where its Slurm counts none."""
    value = {"gres": f"gpu:{gpus_per_node}", "gpus-per-node": str(gpus_per_node)}.get(profile.gpu_request)
    return () if value is None else ((profile.gpu_request, value),)


def arguments_of(options: Iterable[Option]) -> tuple[str, ...]:
    """Options as a program takes them, not quoted."""
    return tuple(f"--{name}" if value is None else f"--{name}={value}" for name, value in options)


def is_option(name: str, value: str | None) -> bool:
    """True when this can be written into a batch script: checked again there, whoever made it."""
    return _NAME.fullmatch(name) is not None and (value is None or _VALUE.fullmatch(value) is not None)


def _option(part: str) -> Option:
    if part.startswith("-"):
        text = clean_line(part.lstrip("-"))
        raise _refused(f"Slurm parameters should not include a leading '--': write {text!r}.")
    name, equals, value = part.partition("=")
    name = name.strip().replace("_", "-")
    value = value.strip()
    if not is_option(name, None):
        raise _refused(f"{clean_line(name)!r} is no Slurm parameter.")
    if equals and not is_option(name, value):
        text = clean_line(value) or "nothing"
        takes = "it takes text without quotes, backslashes, `$`, and words that begin with `-` or `#`."
        raise _refused(f"Slurm parameter '{name}' cannot be {text}: {takes}")
    option = (name, value if equals else None)
    for ours, reason in _OURS.items():
        if ours.startswith(name) and option not in _SAID_ALREADY:
            raise _refused(f"Slurm parameter '{name}' is set by every run. {reason}")
    return option


def _refused(why: str) -> Trouble:
    return Trouble("The further Slurm parameters cannot be used.", why, _FIX, exit_code=1)
