"""What a person's login shell sets for the network, and a job would lack.

Jobs start from a shell that reads no profile, so that no run depends on whose shell it was; where a site names its
network adapters in a profile, NVIDIA's users have those names and our jobs do not. Of csh and tcsh, which take no
command together with `-l`, it is what `.cshrc` sets, and not `.login`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.preflight.check_group import Answers, CommandChecks, ok, warning
from llmb_tui.preflight.needs import Needs
from llmb_tui.preflight.report import NETWORK_VARIABLES, PATH_VARIABLES, Check

_TITLE, _PATHS_TITLE = "Site's variables", "Site's paths"
_PATHS = ("LD_LIBRARY_PATH", "PATH")
_THESE = r"((NCCL|UCX|FI)_[A-Z0-9_]*|LD_LIBRARY_PATH|PATH)"
_ONLY_THESE = f"grep -E '^{_THESE}='"
# What a profile complains of is no variable, and under `set -x` may be a secret.
_LOGIN = f"""
case ${{SHELL##*/}} in csh | tcsh) as=-c ;; *) as=-lc ;; esac
limited 8 "${{SHELL:-/bin/sh}}" $as env 2>/dev/null </dev/null | {_ONLY_THESE}
"""


def environment_group(needs: Needs) -> CommandChecks:
    """Compares the shell that jobs start from with a login shell; no other variable leaves the cluster."""
    commands = {"job": f"env | {_ONLY_THESE}", "login": _LOGIN}
    return CommandChecks(commands, lambda answers: environment_checks(answers, needs.profile))


def environment_checks(answers: Answers, profile: SlurmProfile) -> Iterator[Check]:
    """What jobs would lack. Paths are named apart: they reach into the container, and replace its own."""
    job, login = (_variables(answers[name].text) for name in ("job", "login"))
    has = job | dict(profile.env)
    lacking = tuple((name, value) for name, value in sorted(login.items()) if has.get(name) != value)
    network = tuple((name, value) for name, value in lacking if name not in _PATHS)
    paths = tuple((name, value) for name, value in lacking if name in _PATHS)
    needed = "NCCL_*, UCX_* and FI_* of a login shell"
    if network:
        found = f"jobs would lack {', '.join(f'{name}={value}' for name, value in network)}"
        fix = (
            "v takes them into the cluster's profile (`env` of its file). Without them NCCL may take TCP or the wrong "
            "adapters, which can cost tens of percent."
        )
        yield replace(warning(NETWORK_VARIABLES, _TITLE, found, needed, fix), variables=network)
    else:
        found = "jobs have what a login shell sets" if login else "a login shell does not say what it sets"
        yield ok(NETWORK_VARIABLES, _TITLE, found, needed)
    if paths:
        names = " and ".join(name for name, _ in paths)
        found = f"{names} of a login shell {'differ' if len(paths) > 1 else 'differs'}"
        # The batch script itself runs by PATH, so that one is never taken.
        library = tuple((name, value) for name, value in paths if name != "PATH")
        yield replace(
            ok(PATH_VARIABLES, _PATHS_TITLE, found, "any; they would reach into the container"), variables=library
        )


def _variables(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value for name, _, value in pairs if re.fullmatch(_THESE, name)}
