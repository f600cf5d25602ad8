"""Checks of network variables that the user's login shell sets and jobs would lack.

Jobs start from a shell that reads no profile, so that no run depends on its user's shell. If a site names its network
adapters in a profile, NVIDIA's scripts have these names, but this program's jobs do not. csh and tcsh accept no command
together with `-l`: for them, only variables of `.cshrc` are read, not those of `.login`.
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
_NAMES = r"((NCCL|UCX|FI)_[A-Z0-9_]*|LD_LIBRARY_PATH|PATH)"
_GREP_NAMES = f"grep -E '^{_NAMES}='"
# Error messages of a profile are not variables, and with `set -x` they may contain secrets.
_LOGIN = f"""
case ${{SHELL##*/}} in csh | tcsh) as=-c ;; *) as=-lc ;; esac
limited 8 "${{SHELL:-/bin/sh}}" $as env 2>/dev/null </dev/null | {_GREP_NAMES}
"""


def environment_group(needs: Needs) -> CommandChecks:
    """Compare the shell of jobs with a login shell. No other variables are read from the cluster."""
    commands = {"job": f"env | {_GREP_NAMES}", "login": _LOGIN}
    return CommandChecks(commands, lambda answers: environment_checks(answers, needs.profile))


def environment_checks(answers: Answers, profile: SlurmProfile) -> Iterator[Check]:
    """Make the checks of missing variables. Paths have their own check: in a container they replace its paths."""
    job, login = (_variables(answers[name].text) for name in ("job", "login"))
    has = job | dict(profile.env)
    lacking = tuple((name, value) for name, value in sorted(login.items()) if has.get(name) != value)
    network = tuple((name, value) for name, value in lacking if name not in _PATHS)
    paths = tuple((name, value) for name, value in lacking if name in _PATHS)
    needed = "NCCL_*, UCX_* and FI_* of a login shell"
    if network:
        found = f"missing in jobs: {', '.join(f'{name}={value}' for name, value in network)}"
        fix = (
            "In the wizard, v adds them to the profile (`env` in its file). Without them NCCL may use TCP or the wrong "
            "adapters, which can cost tens of percent."
        )
        yield replace(warning(NETWORK_VARIABLES, _TITLE, found, needed, fix), variables=network)
    else:
        found = "jobs have the same as a login shell" if login else "the login shell did not list its variables"
        yield ok(NETWORK_VARIABLES, _TITLE, found, needed)
    if paths:
        names = " and ".join(name for name, _ in paths)
        found = f"a login shell sets another {names}"
        # PATH is never taken over: the batch script itself depends on it.
        library = tuple((name, value) for name, value in paths if name != "PATH")
        yield replace(
            ok(PATH_VARIABLES, _PATHS_TITLE, found, "any; they would also apply in the container"), variables=library
        )


def _variables(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value for name, _, value in pairs if re.fullmatch(_NAMES, name)}
