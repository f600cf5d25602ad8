"""Checks of the login node itself: Enroot, Python, and the file system that is installed on. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llmb_tui.cluster.preflight.containers import ENROOT, enroot_checks
from llmb_tui.cluster.preflight.examination import Answers, Examination, failed, ok, said
from llmb_tui.cluster.preflight.needs import Needs
from llmb_tui.cluster.preflight.report import Check
from llmb_tui.cluster.preflight.space import space_checks, space_commands
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.quoting import shell_join

# The nearest directory that exists, and whether it may be written to.
_DIRECTORY = """
directory=%s
while [ ! -e "$directory" ]; do directory=$(dirname "$directory"); done
printf '%%s\\n' "$directory"
if [ -d "$directory" ] && [ -w "$directory" ]; then echo writable; else echo read-only; fi
"""
_PYTHON = """
for name in python3.12 python3.13 python3.11 python3.10 python3; do
    command -v "$name" >/dev/null 2>&1 && limited 5 "$name" -c '
import sys
try:
    import ensurepip
    kind = "python"
except ImportError:
    kind = "bare"
print(kind, sys.argv[1], "%d.%d.%d" % sys.version_info[:3])' "$name"
done
for name in uv conda mamba; do command -v "$name" >/dev/null 2>&1 && echo "tool $name"; done
"""
# `module` is a function that only some shells have from the start.
_MODULES = """
command -v module >/dev/null 2>&1 || for file in /etc/profile.d/lmod.sh /etc/profile.d/modules.sh \
    /usr/share/lmod/lmod/init/sh /usr/share/Modules/init/sh; do
    [ -r "$file" ] && . "$file" && break
done
command -v module >/dev/null 2>&1 && module -t avail python 2>&1 | grep -i '^python' | head -n 20
"""


def login_node_examination(profile: ClusterProfile, needs: Needs) -> Examination:
    """What is installed on the login node, and where there is room. A file system that hangs costs its deadline."""
    commands = {
        "install": _DIRECTORY % shell_join([profile.install_dir]),
        "image": "limited 4 " + shell_join(["test", "-s", needs.image]) if needs.image else "false",
        **space_commands(),
        "enroot": f"( {ENROOT} )",
        "python": _PYTHON,
        "modules": "limited 5 " + shell_join(["sh", "-c", _MODULES]),
    }
    return Examination(commands, lambda answers: login_node_checks(answers, profile, needs), deadline_s=15)


def login_node_checks(answers: Answers, profile: ClusterProfile, needs: Needs) -> Iterator[Check]:
    """All of them."""
    image_is_there = answers["image"].exit_code == 0
    yield from enroot_checks(answers, profile, needs, image_is_there=image_is_there)
    yield _install_dir(answers, profile)
    yield from space_checks(answers, needs, image_is_there=image_is_there)
    yield _python(answers, needs)


def _install_dir(answers: Answers, profile: ClusterProfile) -> Check:
    lines, needed = answers["install"].text.splitlines(), f"{profile.install_dir}, writable"
    if len(lines) < 2:
        mend = "Check the path; the file system may hang."
        return failed("install-dir", "Install directory", said(answers["install"]), needed, mend)
    directory, access = lines[:2]
    if access != "writable":
        mend = "Choose a directory that you may write to, on a file system that all nodes share."
        return failed("install-dir", "Install directory", f"{directory} is not writable", needed, mend)
    exists = directory.rstrip("/") == profile.install_dir.rstrip("/")
    return ok("install-dir", "Install directory", "writable" if exists else f"to be made in {directory}", needed)


def _python(answers: Answers, needs: Needs) -> Check:
    pythons: dict[str, tuple[str, bool]] = {}
    for kind, name, version in re.findall(r"(?m)^(python|bare) (\S+) (\d+\.\d+\.\d+)$", answers["python"].text):
        if version not in {known for known, _ in pythons.values()}:
            pythons[name] = (version, kind == "python")
    tools = re.findall(r"(?m)^tool (\S+)$", answers["python"].text)
    modules = re.findall(r"(?im)^(python\S*/(\d+\.\d+(?:\.\d+)?))", answers["modules"].text)
    shown = [f"{name} {version}" + ("" if whole else ", without venv") for name, (version, whole) in pythons.items()]
    shown += [*tools, *(f"module {name}" for name, _ in modules)]
    text = "; ".join(shown) or "none"
    if not needs.venv:
        least = f"{needs.python} or newer, " if needs.python else ""
        return ok("python", "Python", text, f"{least}only for the published procedure" if needs.known else "any")
    named = needs.python or "3.10.12"
    needed = f"{named}{'' if needs.python_only else ' or newer'}, for the environment"
    versions = [version for version, whole in pythons.values() if whole] + [version for _, version in modules]
    if tools or any(_fits(version, named, only=needs.python_only) for version in versions):
        return ok("python", "Python", text, needed)
    mend = f"Load a module with Python {named}, or install uv (one file, without root) in your home directory."
    return failed("python", "Python", text, needed, mend)


def _fits(version: str, named: str, *, only: bool) -> bool:
    """Whether it is the named version, as far as that names one; or, unless only that is right, a newer one."""
    if only:
        return version.split(".")[: named.count(".") + 1] == named.split(".")
    return _parts(version) >= _parts(named)


def _parts(version: str) -> tuple[int, ...]:
    """To compare by; a module that names no third part may have any."""
    parts = [int(part) for part in version.split(".")]
    return tuple(parts + [99] * (3 - len(parts))) if len(parts) < 3 else tuple(parts)
