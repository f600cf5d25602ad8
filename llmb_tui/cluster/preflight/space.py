"""Checks of the room where is installed: free space, quota, number of files. Pure.

The snippets follow one that sets `$directory`, the nearest directory that exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from llmb_tui.cluster.preflight.containers import BIGGEST_IMAGE_GB, SMALLEST_IMAGE_GB
from llmb_tui.cluster.preflight.examination import Answers, failed, ok, warning
from llmb_tui.cluster.preflight.needs import Needs
from llmb_tui.cluster.preflight.report import Check

# The recipes' documentation: an environment takes 1 to 10 GB.
_SMALLEST_VENV_GB, _BIGGEST_VENV_GB = 1, 10
# Script, configuration and log of a run; tens of MB at most.
_RUN_GB = 1
# An environment with PyTorch and its libraries has some 60,000 files.
_VENV_FILES = 100_000
_RUN_FILES = 1000


@dataclass(frozen=True, slots=True)
class Quota:
    """One quota of the user's."""

    left_gb: float | None
    """Decimal GB; None where blocks are not limited."""
    files_left: int | None


def space_commands() -> dict[str, str]:
    """For `space_checks`."""
    return {
        "df": 'limited 6 df -Pk "$directory"',
        "inodes": 'limited 6 df -Pi "$directory"',
        # Without -s, which would print rounded numbers with letters; -w keeps a line in one.
        "quota": "limited 5 quota -w",
        "lfs": 'limited 5 lfs quota -q -u "$(id -un)" "$directory"',
    }


def space_checks(answers: Answers, needs: Needs, *, image_is_there: bool) -> Iterator[Check]:
    """Free space always; files and quota where somebody limits them."""
    least, most, what = _needed(needs, image_is_there)
    device, free_gb = _free(answers["df"].text)
    yield _space(free_gb, least, most, what)
    files = _VENV_FILES if needs.venv else _RUN_FILES
    inodes = _inodes(answers["inodes"].text)
    if inodes is not None and inodes < files:
        mend = "Remove files that are no longer needed, or choose another directory."
        yield failed("inodes", "Files", f"{inodes:,} more can be made", f"{files:,}", mend)
    quota = lustre_quota(answers["lfs"].text) or unix_quota(answers["quota"].text, device)
    if quota is not None:
        yield _quota(quota, least, most, what, files)


def _needed(needs: Needs, image_is_there: bool) -> tuple[float, float, str]:
    """Least and most GB that are needed yet, and for what."""
    least, most, parts = float(_RUN_GB), float(_RUN_GB), ["runs"]
    if not image_is_there:
        least, most, parts = SMALLEST_IMAGE_GB, BIGGEST_IMAGE_GB, ["a container image"]
    if needs.venv:
        least, most = least + _SMALLEST_VENV_GB, most + _BIGGEST_VENV_GB
        parts.append("a Python environment")
    return least, most, " and ".join(parts)


def _space(free_gb: float | None, least: float, most: float, what: str) -> Check:
    needed = f"{least:g} to {most:g} GB for {what}" if most > least else f"{most:g} GB for {what}"
    if free_gb is None:
        return warning("disk", "Free space", "unknown", needed, "`df` gave no number: look for yourself.")
    found = f"{free_gb:,.0f} GB"
    if free_gb < least:
        return failed("disk", "Free space", found, needed, "Free some space, or choose another directory.")
    if free_gb < most:
        return warning("disk", "Free space", found, needed, "It may not be enough: watch the import.")
    return ok("disk", "Free space", found, needed)


def _quota(quota: Quota, least: float, most: float, what: str, files: int) -> Check:
    found = "no limit" if quota.left_gb is None else f"{quota.left_gb:,.0f} GB left"
    needed = f"{least:g} to {most:g} GB for {what}" if most > least else f"{most:g} GB for {what}"
    mend = "Remove what you no longer need, ask for more, or choose a directory on another file system."
    if quota.files_left is not None:
        found += f", {quota.files_left:,} files"
    if (quota.left_gb is not None and quota.left_gb < least) or (
        quota.files_left is not None and quota.files_left < files
    ):
        return failed("quota", "Your quota", found, f"{needed}, {files:,} files", mend)
    if quota.left_gb is not None and quota.left_gb < most:
        return warning("quota", "Your quota", found, needed, f"It may not be enough. {mend}")
    return ok("quota", "Your quota", found, needed)


def _free(text: str) -> tuple[str, float | None]:
    """Device and free decimal GB by the last line of `df -Pk`."""
    last = text.strip().rpartition("\n")[2]
    cells = re.fullmatch(r"(.*?)\s+\d+\s+\d+\s+(\d+)\s+\S+\s+/.*", last)
    return (cells[1], int(cells[2]) * 1024 / 1e9) if cells else ("", None)


def _inodes(text: str) -> int | None:
    """How many files can be made, by `df -Pi`; None where the file system does not count them, or df is another."""
    heading, _, last = text.strip().rpartition("\n")
    cells = re.fullmatch(r".*?\s(\d+)\s+\d+\s+(\d+)\s+\S+\s+/.*", last)
    counted = cells is not None and "IFree" in heading and int(cells[1]) > 0
    return int(cells[2]) if cells is not None and counted else None


def unix_quota(text: str, device: str) -> Quota | None:
    """The user's quota on a device, by `quota -w`; None where there is none."""
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 7 and words[0] == device:
            return _quota_of(words[1:])
    return None


def lustre_quota(text: str) -> Quota | None:
    """The user's quota by `lfs quota -q`; None where there is none, or no Lustre."""
    words = text.split()
    return _quota_of(words[1:]) if len(words) >= 9 and words[0].startswith("/") else None


def _quota_of(cells: list[str]) -> Quota | None:
    """Both print: used, soft, hard, [grace], then the same for files; KiB. A star marks what is exceeded."""
    numbers = [int(cell.rstrip("*")) for cell in cells if cell.rstrip("*").isdecimal()]
    if len(numbers) < 6:
        return None
    used, soft, hard, files, files_soft, files_hard = numbers[:6]
    limit, files_limit = hard or soft, files_hard or files_soft
    if not limit and not files_limit:
        return None
    left = (limit - used) * 1024 / 1e9 if limit else None
    return Quota(left, files_limit - files if files_limit else None)
