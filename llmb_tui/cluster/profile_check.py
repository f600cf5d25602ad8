"""Checks of a profile's values for commands, scripts and files, shared by the kinds of cluster. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.quoting import one_line
from llmb_tui.cluster.validation import ENV_NAME, matches
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line

_PROFILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SECRET_NAME = re.compile(r"(?:^|_)(?:KEY|PASSWD|CREDENTIALS?)(?:_|$)|(?:TOKEN|PASSWORD|SECRET|APIKEY)(?:_|$)")
_SECRET_VALUE = re.compile(r"\b(?:hf_|nvapi-)[A-Za-z0-9_-]{16,}")
# Variables that the batch script itself depends on.
_RESERVED_ENV = frozenset(
    "PATH HOME IFS ENV BASH_ENV TORCHX_MAX_RETRIES SLURM_JOB_ID SLURM_JOB_NODELIST SLURM_RESTART_COUNT".split()
)
OWN_TARGETS = ("/", "/nemo_run")
"""Container paths that are not available to additional mounts: every run mounts its own files there."""

Rules = Mapping[str, tuple[re.Pattern[str], str]]
"""By field name: the pattern that a text must match, and the remedy for a text that does not."""
NAME_RULES: Rules = {"name": (_PROFILE_NAME, "Use at most 64 letters, digits, dots, dashes and underscores.")}


class InvalidFieldError(LlmbError):
    """A profile has an invalid value. Exit code 1."""

    def __init__(self, field: str, value: str, fix: str, why: str = "") -> None:
        self.field = field
        """Name of the field; `env.NAME` for an environment variable."""
        text = repr(clean_line(value)) if value else "empty"
        super().__init__(f"The cluster's {clean_line(field)} cannot be {text}.", why, fix, exit_code=1)


def check_texts(profile: ClusterProfile, rules: Rules, not_empty: Mapping[str, str]) -> None:
    """Raise `InvalidFieldError` for the first text that breaks a rule, or is empty although it is required."""
    for field in fields(profile):
        name, value = field.name, getattr(profile, field.name)
        if not isinstance(value, str):
            continue
        _check_text(name, value)
        if name in rules and not matches(rules[name][0], value):
            raise InvalidFieldError(name, value, rules[name][1])
        if name in not_empty and not value:
            raise InvalidFieldError(name, value, not_empty[name])


def _check_text(name: str, value: str) -> None:
    """Raise `InvalidFieldError` for a text that is not printable, or looks like a secret."""
    try:
        one_line(value, name)
    except LlmbError as error:
        raise InvalidFieldError(name, value, error.fix, error.why) from error
    if _SECRET_VALUE.search(value):
        raise _secret(name)


def check_env(env: tuple[tuple[str, str], ...]) -> None:
    """Raise `InvalidFieldError` for an environment variable that cannot be set for a run."""
    for name, value in env:
        field = f"env.{name}"
        if not ENV_NAME.fullmatch(name):
            fix = "Use capital letters, digits and underscores: NeMo-Run writes names in capitals."
            raise InvalidFieldError("env", name, fix, "It is not a valid name of an environment variable.")
        if name in _RESERVED_ENV:
            raise InvalidFieldError(
                field, value, "Remove the variable.", "The batch script itself depends on this variable."
            )
        if _SECRET_NAME.search(name) or _SECRET_VALUE.search(value):
            raise _secret(field)
        _check_text(field, value)


def _secret(field: str) -> InvalidFieldError:
    return InvalidFieldError(
        field,
        "a secret",
        "Remove it: the program asks for a secret when it needs one, and stores it elsewhere.",
        "It looks like a token, key or password, and profiles are files that people copy.",
    )
