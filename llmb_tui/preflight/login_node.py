"""Checks of the login node: Enroot, Python, the install directory, its free space and quota. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from llmb_tui.cluster.quoting import shell_join
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.language.quantities import count, gigabytes
from llmb_tui.language.text import count_in
from llmb_tui.preflight.check_group import Answers, CommandChecks, failed, first_line, last_line, ok, warning
from llmb_tui.preflight.needs import Needs
from llmb_tui.preflight.report import Check

# Source: the recipes' documentation. An image needs 5 to 60 GB, an environment without a measurement 1 to 10 GB.
_SMALLEST_IMAGE_GB, _BIGGEST_IMAGE_GB = 5, 60
_SMALLEST_VENV_GB, _BIGGEST_VENV_GB = 1, 10
# Source: NVIDIA/dgxc-benchmarking 841f546 (2026-07-30), README.md, Cluster-Specific Prerequisites and Enroot / Pyxis
# settings.
_HOOK = "50-slurm-pytorch.sh"
_SITE_SETTINGS = ("ENROOT_REMAP_ROOT", "ENROOT_ROOTFS_WRITABLE")
_ADAPTERS = {"NCCL_IB_HCA", "MELLANOX_VISIBLE_DEVICES"}
_LONGEST_ROW = 4096
"""Number of characters that are read of a row of `df`, which has a path at most."""
_NO_ENROOT = "not on the login node"
_NOT_FOUND = 127
"""Exit code of a program that the shell does not find."""
# Script, configuration and log of a run; tens of MB at most.
_RUN_GB = 1
# An environment with PyTorch and its libraries has about 60,000 files.
_VENV_FILES = 100_000
_RUN_FILES = 1000
# This program's names in an install directory. Other files there are not checked.
_OWN_NAMES = (
    ".llmb-tui .llmb-tui/steps .llmb-tui/code .llmb-tui/published images venvs workloads published offline .cache"
)
# Prints the nearest existing directory and whether it is writable. For the install directory itself it also prints its
# owner and group, and those of the entries with this program's names.
_DIRECTORY = """
directory=%s
install=$directory
while [ ! -e "$directory" ]; do directory=$(dirname "$directory"); done
printf '%%s\\n' "$directory"
if [ -d "$directory" ] && [ -w "$directory" ]; then echo writable; else echo read-only; fi
if [ "$directory" = "$install" ]; then
    echo "me $(id -u)"
    stat -L -c 'is %%u %%a %%U . %%G' "$directory"
    for name in %s; do
        if [ -e "$directory/$name" ] || [ -L "$directory/$name" ]; then
            stat -c "is %%u %%a %%U $name %%G" "$directory/$name"
            [ ! -L "$directory/$name" ] || echo "link $name"
        fi
    done
fi
"""


@dataclass(frozen=True, slots=True)
class _Quota:
    """One quota of the user."""

    left_gb: float | None
    """Remaining decimal GB; None if space is not limited."""
    files_left: int | None


def login_node_group(needs: Needs) -> CommandChecks:
    """Make the checks of the login node. A hanging file system delays them until their deadline."""
    commands = {
        "install": _DIRECTORY % (shell_join([needs.profile.install_dir.rstrip("/") or "/"]), _OWN_NAMES),
        "image": "limited 4 " + shell_join(["test", "-s", needs.image]) if needs.image else "false",
        "set_up": "limited 4 " + shell_join(["test", "-s", needs.set_up]) if needs.set_up else "false",
        "df": 'limited 6 df -Pk "$directory"',
        "inodes": 'limited 6 df -Pi "$directory"',
        # No -s, which would print rounded numbers with units; -w does not split lines.
        "quota": "limited 5 quota -w",
        "lfs": 'limited 5 lfs quota -q -u "$(id -un)" "$directory"',
        "enroot": f"( {remote_text('enroot_environment.sh', 'enroot_settings.sh')} )",
        "python": remote_text("pythons.sh"),
        "modules": "limited 5 " + shell_join(["sh", "-c", remote_text("python_modules.sh")]),
    }
    return CommandChecks(commands, lambda answers: login_node_checks(answers, needs))


def login_node_checks(answers: Answers, needs: Needs) -> Iterator[Check]:
    image_is_there = answers["image"].exit_code == 0
    yield from _enroot_checks(answers, needs, image_is_there=image_is_there)
    yield _install_dir(answers, needs.profile)
    yield from _space_checks(answers, needs)
    yield _python(answers, needs)


def _install_dir(answers: Answers, profile: SlurmProfile) -> Check:
    install_dir = profile.install_dir
    lines, needed = answers["install"].text.splitlines(), f"{install_dir}, writable"
    if len(lines) < 2:
        fix = "Check the path. The file system may hang."
        return failed("install-dir", "Install directory", first_line(answers["install"]), needed, fix)
    directory, access = lines[:2]
    if access != "writable":
        fix = "Choose a directory that you may write to, on a file system that all nodes share."
        return failed("install-dir", "Install directory", f"{directory} is not writable", needed, fix)
    if directory.rstrip("/") != install_dir.rstrip("/"):
        return ok("install-dir", "Install directory", f"will be created in {directory}", needed)
    return _write_access(answers["install"].text, profile, needed)


def _write_access(text: str, profile: SlurmProfile, needed: str) -> Check:
    """Check that other users cannot change what jobs run there, or redirect the program by links.

    A sticky bit does not help in a world-writable directory: anyone could create the program's own names there first.
    """
    name, directory = ("install-dir", "Install directory"), profile.install_dir.rstrip("/")
    me = "".join(re.findall(r"(?m)^me (\d+)$", text))
    links = re.findall(r"(?m)^link (\S+)$", text)
    if links:
        fix = "Links in an install directory are not followed: move their targets there, or choose another directory."
        return failed(*name, f"{', '.join(links)}: a symbolic link", f"{needed}, without links", fix)
    entries = re.findall(r"(?m)^is (\d+) (\d+) (\S+) (\S+) (.+)$", text)

    def path_of(below: str) -> str:
        return directory if below == "." else f"{directory}/{below}"

    if paths := [path_of(below) for _, mode, _, below, _ in entries if int(mode, 8) & 0o002]:
        fix = (
            f"Every user could change what your jobs run. If it is yours, run `chmod o-w {' '.join(paths)}`; else "
            "choose a directory of your own or of your group."
        )
        return failed(*name, f"{', '.join(paths)}: every user may write", f"{needed}, not by every user", fix)
    foreign = {owner: below for uid, _, owner, below, _ in reversed(entries) if me and uid not in (me, "0")}
    owners = ", ".join(f"{directory if below == '.' else below} belongs to {owner}" for owner, below in foreign.items())
    if foreign and not profile.group_writable:
        fix = (
            "Its owner can change what your jobs run. Choose a directory of your own. If your group shares this "
            "install and you trust its members, set `group_writable = true` in the profile."
        )
        return failed(*name, owners, f"{needed}, your own", fix)
    # Many systems give each user a private group of the same name.
    shared = {
        path_of(below): group for _, mode, owner, below, group in entries if int(mode, 8) & 0o020 and group != owner
    }
    if shared and not profile.group_writable:
        fix = (
            "Its members can change what your jobs run. If they share this install and you trust them, set "
            f"`group_writable = true` in the profile; otherwise run `chmod g-w {' '.join(shared)}`."
        )
        found = ", ".join(f"{path}: the group {group} may write" for path, group in shared.items())
        return warning(*name, found, f"{needed}, only by you", fix)
    return ok(*name, f"writable; {owners}" if foreign else "writable", needed)


def _python(answers: Answers, needs: Needs) -> Check:
    pythons: dict[str, tuple[str, bool]] = {}
    for kind, name, version in re.findall(r"(?m)^(python|bare) (\S+) (\d+\.\d+\.\d+)$", answers["python"].text):
        if version not in {other for other, _ in pythons.values()}:
            pythons[name] = (version, kind == "python")
    tools = re.findall(r"(?m)^tool (\S+)$", answers["python"].text)
    modules = re.findall(r"(?im)^(python\S*/(\d+\.\d+(?:\.\d+)?))", answers["modules"].text)
    words = [
        f"{name} {version}" + ("" if has_venv else ", without venv") for name, (version, has_venv) in pythons.items()
    ]
    words += [*tools, *(f"module {name}" for name, _ in modules)]
    text = "; ".join(words) or "none"
    if not needs.venv:
        least = f"{needs.python} or newer, " if needs.python else ""
        return ok("python", "Python", text, f"{least}only for NVIDIA's scripts" if needs.known else "any")
    required = needs.python or "3.10.12"
    needed = f"{required}{'' if needs.python_only else ' or newer'}, for the environment"
    versions = [version for version, has_venv in pythons.values() if has_venv] + [version for _, version in modules]
    if tools or any(_fits(version, required, only=needs.python_only) for version in versions):
        return ok("python", "Python", text, needed)
    fix = f"Load a module with Python {required}, or install uv (one file, without root) in your home directory."
    return failed("python", "Python", text, needed, fix)


def _fits(version: str, required: str, *, only: bool) -> bool:
    """True if a version has the parts of the required one or, unless `only`, is newer."""
    if only:
        return version.split(".")[: required.count(".") + 1] == required.split(".")
    return _parts(version) >= _parts(required)


def _parts(version: str) -> tuple[int, ...]:
    """Parts of a version for comparison; a missing third part may be any number."""
    return (*map(int, version.split(".")), 99, 99)[:3]


def _enroot_checks(answers: Answers, needs: Needs, *, image_is_there: bool) -> Iterator[Check]:
    """Check Enroot, its settings, and the space where it unpacks images."""
    enroot, needed = answers["enroot"], "enroot on the login node"
    if enroot.exit_code != 0:
        found = (
            _NO_ENROOT if enroot.exit_code == _NOT_FOUND else f"does not start on the login node: {last_line(enroot)}"
        )
        if image_is_there:
            yield ok("enroot", "Enroot", f"{found}; the image is there", needed)
            return
        partition = needs.profile.cpu_partition or needs.profile.partition
        where = f" in partition {partition}" if partition else ""
        fix = f"A job{where} will import the container image; like other jobs, it waits in the queue."
        yield warning("enroot", "Enroot", f"{found}, so its settings were not checked", needed, fix)
        return
    version, *rest = enroot.text.strip().split("\n")
    settings = [line.removeprefix("ENROOT_") for line in rest if line.startswith("ENROOT_")]
    yield ok("enroot", "Enroot", "; ".join([f"enroot {version}", *settings]), needed)
    yield _site_settings(rest, needs)
    if needs.known and not image_is_there:
        yield from _unpacking(enroot.text)


def _site_settings(lines: list[str], needs: Needs) -> Check:
    """Check the settings of NVIDIA's newest README. It only warns, because the nodes may have other settings."""
    name = ("enroot-settings", "Enroot's settings")
    given = dict(line.partition(" ")[::2] for line in lines)
    one_node = needs.plan is not None and needs.plan.nodes == 1
    wanted = [
        (f"hook {_HOOK}", "hook" in given, f"copy {_HOOK} from Enroot's extra hooks into hooks.d"),
        *((key, key in given, f"set {key} yes in enroot.conf") for key in _SITE_SETTINGS),
    ]
    if not one_node:
        named = "adapters" in given or not _ADAPTERS.isdisjoint(dict(needs.profile.env))
        wanted.append(("network adapters", named, "set the adapters (NCCL_IB_HCA) in environ.d/*.env"))
    needed = f"{', '.join(setting for setting, _, _ in wanted)}, as in NVIDIA's newest README"
    if "unread" in given:
        fix = "Check them yourself: the program `enroot` on the login node is not NVIDIA's script, which reads them."
        return warning(*name, "could not be read", needed, fix)
    site = given.get("site")
    where = f"in {site} of the login node" if site else "on the login node, which has no readable enroot.conf"
    missing = [(setting, remedy) for setting, is_there, remedy in wanted if not is_there]
    if not missing:
        return ok(*name, f"{', '.join(setting for setting, _, _ in wanted)} {where}", needed)
    fix = (
        "The nodes may have other settings than the login node, and a run may not need them. If it does, ask the "
        f"administrators to {', '.join(remedy for _, remedy in missing)}, on all nodes."
    )
    return warning(*name, f"no {', no '.join(setting for setting, _ in missing)} {where}", needed, fix)


def _unpacking(text: str) -> Iterator[Check]:
    """Check the directory where Enroot unpacks images, if it is known."""
    name = ("enroot-space", "Space to unpack")
    needed = f"{gigabytes(_SMALLEST_IMAGE_GB)} to {gigabytes(_BIGGEST_IMAGE_GB)} for the layers of an image"
    fix = "In ~/.bashrc, set ENROOT_TEMP_PATH to a directory with more space on a local disk of the login node."
    if unusable := re.search(r"(?m)^no_temp (.*)$", text):
        fix = "In ~/.bashrc, set ENROOT_TEMP_PATH to a directory on a local disk of the login node."
        yield failed(*name, f"{unusable[1]} does not exist, or you may not write to it", needed, fix)
    elif free := re.search(r"(?m)^free (\d+) (.*)$", text):
        free_gb = int(free[1]) * 1024 / 1e9
        found = f"{gigabytes(free_gb)} in {free[2]}"
        if free_gb < _SMALLEST_IMAGE_GB:
            yield failed(*name, found, needed, fix)
        elif free_gb < _BIGGEST_IMAGE_GB:
            yield warning(*name, found, needed, f"It may not be enough: watch the import. {fix}")
        else:
            yield ok(*name, found, needed)


def _space_checks(answers: Answers, needs: Needs) -> Iterator[Check]:
    """Check the free space, and files and quota if they are limited."""
    image, environment = answers["image"].exit_code != 0, needs.venv and answers["set_up"].exit_code != 0
    least, most, needed = _needed(needs, image=image, environment=environment)
    device, free_gb = _free(answers["df"].text)
    yield _space(free_gb, least, most, needed)
    files = _VENV_FILES if environment else _RUN_FILES
    inodes = _inodes(answers["inodes"].text)
    if inodes is not None and inodes < files:
        fix = "Remove files that are no longer needed, or choose another directory."
        yield failed("inodes", "Files", f"{count(inodes)} more possible", count(files), fix)
    quota = _lustre_quota(answers["lfs"].text) or _unix_quota(answers["quota"].text, device)
    if quota is not None:
        yield _quota(quota, least, most, needed, files)


def _needed(needs: Needs, *, image: bool, environment: bool) -> tuple[float, float, str]:
    """Least and most GB for the missing image and environment, and the same as a text."""
    least, most, parts = float(_RUN_GB), float(_RUN_GB), ["runs"]
    if image:
        least, most, parts = _SMALLEST_IMAGE_GB, _BIGGEST_IMAGE_GB, ["a container image"]
    if environment:
        measured = needs.environment_gb
        least += measured or _SMALLEST_VENV_GB
        most += measured or _BIGGEST_VENV_GB
        parts.append("a Python environment" + (f" (measured: {gigabytes(measured)})" if measured else ""))
    purpose = " and ".join(parts)
    at_least = f"{gigabytes(least)} to " if most > least else ""
    return least, most, f"{at_least}{gigabytes(most)} for {purpose}"


def _space(free_gb: float | None, least: float, most: float, needed: str) -> Check:
    if free_gb is None:
        return warning("disk", "Free space", "unknown", needed, "`df` printed no number: check it yourself.")
    found = gigabytes(free_gb)
    if free_gb < least:
        return failed("disk", "Free space", found, needed, "Free some space, or choose another directory.")
    if free_gb < most:
        return warning("disk", "Free space", found, needed, "It may not be enough: watch the import.")
    return ok("disk", "Free space", found, needed)


def _quota(quota: _Quota, least: float, most: float, needed: str, files: int) -> Check:
    found = "no limit" if quota.left_gb is None else f"{gigabytes(quota.left_gb)} left"
    fix = "Remove files, ask for a larger quota, or choose a directory on another file system."
    if quota.files_left is not None:
        found += f", {count(quota.files_left)} files"
    if (quota.left_gb is not None and quota.left_gb < least) or (
        quota.files_left is not None and quota.files_left < files
    ):
        return failed("quota", "Your quota", found, f"{needed}, {count(files)} files", fix)
    if quota.left_gb is not None and quota.left_gb < most:
        return warning("quota", "Your quota", found, needed, f"It may not be enough. {fix}")
    return ok("quota", "Your quota", found, needed)


def _free(text: str) -> tuple[str, float | None]:
    """Parse device and free decimal GB from the last line of `df -Pk`."""
    last = text.strip().rpartition("\n")[2][:_LONGEST_ROW]
    cells = re.fullmatch(r"(.*?)\s+\d+\s+\d+\s+(\d+)\s+\S+\s+/.*", last)
    return (cells[1], int(cells[2]) * 1024 / 1e9) if cells else ("", None)


def _inodes(text: str) -> int | None:
    """Parse the number of free inodes from `df -Pi`; None if the file system or this `df` does not count them."""
    heading, _, last = text.strip().rpartition("\n")
    cells = re.fullmatch(r".*?\s(\d+)\s+\d+\s+(\d+)\s+\S+\s+/.*", last[:_LONGEST_ROW])
    counted = cells is not None and "IFree" in heading and int(cells[1]) > 0
    return int(cells[2]) if cells is not None and counted else None


def _unix_quota(text: str, device: str) -> _Quota | None:
    """Parse the user's quota on a device from `quota -w`; None if there is none."""
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 7 and words[0] == device:
            return _quota_of(words[1:])
    return None


def _lustre_quota(text: str) -> _Quota | None:
    """Parse the user's quota from `lfs quota -q`; None if there is no quota or no Lustre."""
    words = text.split()
    return _quota_of(words[1:]) if len(words) >= 9 and words[0].startswith("/") else None


def _quota_of(cells: list[str]) -> _Quota | None:
    """Parse the cells of both programs, in KiB: used, soft, hard, [grace], and the same for files; `*` is exceeded."""
    numbers = [number for cell in cells if (number := count_in(cell.rstrip("*"))) is not None]
    if len(numbers) < 6:
        return None
    used, soft, hard, files, files_soft, files_hard = numbers[:6]
    limit, files_limit = hard or soft, files_hard or files_soft
    if not limit and not files_limit:
        return None
    left = (limit - used) * 1024 / 1e9 if limit else None
    return _Quota(left, files_limit - files if files_limit else None)
