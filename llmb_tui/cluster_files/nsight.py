"""`ProfileSummary`: GPU time by kernel from an Nsight Systems profile, as `nsys stats` reports it."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from math import isfinite

from llmb_tui.cluster.link import Link
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.errors import LlmbError
from llmb_tui.language.redact import server_words
from llmb_tui.language.text import clean_line, short_line

TOP = 5
"""Number of kernels in a summary."""
_DEADLINE_S = 600.0
_MISSING = "llmb-nsys missing"


@dataclass(frozen=True, slots=True)
class KernelTime:
    """All launches of one kernel. The name is clean."""

    name: str
    time_pct: float
    """Share of the time of all kernels."""
    total_s: float
    launches: int


@dataclass(frozen=True, slots=True)
class ProfileSummary:
    """Summary of one rank's profile."""

    kernels: tuple[KernelTime, ...]
    """Kernels with the longest total times."""
    total_s: float
    """Total time of all kernels; concurrent kernels count separately."""
    nccl_pct: float
    """Share of NCCL's kernels: communication, and waiting for it."""


def summarize(place: Session | Link, path: str) -> ProfileSummary | None:
    """Summary of the profile at an absolute path on a login node or here; None if there is no `nsys`.

    Takes as long as unpacking the profile, at most ten minutes. Raises LlmbError if `nsys` cannot read it, and whatever
    `run_script` raises.
    """
    result = place.run_script(remote_text("nsys_stats.sh"), [path], deadline_s=_DEADLINE_S)
    if _MISSING in result.stdout.splitlines():
        return None
    summary = parse_kernels(result.stdout)
    if summary is None:
        output = [line for line in (result.stdout + result.stderr).splitlines() if line.strip()]
        why = (
            short_line(server_words(output[-1]))
            if output
            else f"It ended with exit code {result.exit_code} and no output."
        )
        raise LlmbError(
            f"`nsys stats` gives no result for {clean_line(path)}.", why, "Open it in Nsight Systems itself."
        )
    return summary


def parse_kernels(text: str) -> ProfileSummary | None:
    """Parse the CSV of the report `cuda_gpu_kern_sum`, which follows other output of nsys; None if there is none."""
    lines = text.splitlines()
    heads = [i for i, line in enumerate(lines) if line.lstrip('"').startswith(("Time (%)", "Time(%)"))]
    if not heads:
        return None
    names = _cells(lines[heads[0]])
    kernels = []
    for line in lines[heads[0] + 1 :]:
        row = dict(zip(names, _cells(line), strict=False))
        try:
            share = float(row.get("Time (%)") or row.get("Time(%)") or "")
            seconds, launches = float(row["Total Time (ns)"]) / 1e9, int(float(row["Instances"]))
            if isfinite(share) and isfinite(seconds):
                kernels.append(KernelTime(clean_line(row["Name"]), share, seconds, launches))
        except (KeyError, ValueError, TypeError, OverflowError):
            continue  # a cut line, or other output of nsys
    if not kernels:
        return None
    kernels.sort(key=lambda kernel: -kernel.total_s)
    total_s = sum(kernel.total_s for kernel in kernels)
    nccl_s = sum(kernel.total_s for kernel in kernels if "nccl" in kernel.name.lower())
    return ProfileSummary(tuple(kernels[:TOP]), total_s, 100 * nccl_s / total_s if total_s else 0.0)


def _cells(line: str) -> list[str]:
    """Cells of one line, parsed alone so that a cut quote affects no other line; empty for a line that is too long."""
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []
