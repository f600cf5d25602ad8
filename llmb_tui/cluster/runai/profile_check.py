"""`check_runai_profile`: checks of a Run:ai profile's values for requests and pods. Pure."""

from __future__ import annotations

import re

from llmb_tui.cluster.profile_check import NAME_RULES, OWN_TARGETS, InvalidFieldError, Rules, check_env, check_texts
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.cluster.validation import PATH, matches

_BASE_URL = re.compile(r"https://(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?/api/v1")
_LAST_PORT = 65535
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_ONE_NAME = "Use letters, digits, dots, dashes and underscores, with a letter or digit at both ends."
_RULES: Rules = {
    **NAME_RULES,
    "base_url": (_BASE_URL, "Enter https://HOST/api/v1, with the host name of Run:ai's web pages."),
    "app_id": (_NAME, f"Enter the id of an application or service account in Run:ai. {_ONE_NAME}"),
    "project": (_NAME, _ONE_NAME),
    "node_pool": (_NAME, _ONE_NAME),
    "image_pull_secret": (_NAME, _ONE_NAME),
    "hub_credential": (_NAME, _ONE_NAME),
}
_FILES = ("kubeconfig", "ca_file")
_OWN_ENV = ("LLMB_FILES", "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Variables that the workload itself and the training operator set."""


def check_runai_profile(profile: RunaiProfile) -> None:
    """Raise `InvalidFieldError` for the first invalid field."""
    check_texts(profile, _RULES, dict.fromkeys(_FILES, "Enter the path of a file, or remove the field."))
    port = re.search(r":([0-9]+)/", profile.base_url)
    if port is not None and not 1 <= int(port[1]) <= _LAST_PORT:
        raise InvalidFieldError("base_url", profile.base_url, f"Enter a port from 1 to {_LAST_PORT}.")
    targets = _check_mounts(profile.mounts)
    work_dir = profile.work_dir
    if work_dir and not (matches(PATH, work_dir) and any(f"{work_dir}/".startswith(f"{path}/") for path in targets)):
        fix = f"Choose a directory below {' or '.join(targets)}." if targets else "Enter the mount first."
        raise InvalidFieldError(
            "work_dir", work_dir, fix, "The work directory must be in a volume, to persist after the pods."
        )
    check_env(profile.env)
    for name, value in profile.env:
        if name in _OWN_ENV:
            raise InvalidFieldError(
                f"env.{name}", value, "Remove the variable.", "The workload itself depends on this variable."
            )


def split_claim(mount: str) -> tuple[str, str, str]:
    """Split a mount to name, path in the pods and claim. Raises `InvalidFieldError`."""
    name, _, rest = mount.partition(":")
    path, _, claim = rest.partition(":")
    if not (_LABEL.fullmatch(name) and matches(PATH, path) and _NAME.fullmatch(claim)):
        fix = "Write NAME:PATH:CLAIM with the name of a persistent volume claim, such as data:/data:shared-data."
        raise InvalidFieldError("mounts", mount, fix)
    return name, path.rstrip("/") or "/", claim


def _check_mounts(mounts: tuple[str, ...]) -> list[str]:
    """Check the mounts, and return their paths."""
    names: list[str] = []
    paths: list[str] = []
    for mount in mounts:
        name, path, _ = split_claim(mount)
        if path in OWN_TARGETS:
            raise InvalidFieldError(
                "mounts", mount, "Choose another path.", f"Every run mounts its own files at {path}."
            )
        for value, seen in ((name, names), (path, paths)):
            if value in seen:
                raise InvalidFieldError("mounts", mount, "Remove one of them.", f"{value} is in two mounts.")
            seen.append(value)
    return paths
