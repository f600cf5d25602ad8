"""`slurm_version`: which Slurm a cluster has, for options that not every version knows."""

from __future__ import annotations

import re

from llmb_tui.cluster.session import Session

Version = tuple[int, int]

SEGMENT_SINCE: Version = (24, 5)
"""The first Slurm whose `sbatch` knows `--segment`: its list of changes, CHANGELOG/slurm-24.05.md."""
SRUN_OUTPUT_SINCE: Version = (23, 2)
"""The first Slurm whose `srun` reads SRUN_OUTPUT and SRUN_ERROR: its release notes, RELEASE_NOTES of 23.02."""


def slurm_version(session: Session) -> Version | None:
    """Year and month of the login node's `sbatch`; None where it does not say. Raises what `Session.run` raises."""
    return parse_version(session.run_script("sbatch --version").stdout)


def parse_version(text: str) -> Version | None:
    """Year and month in a text such as `slurm 23.11.4`."""
    found = re.search(r"\b(\d+)\.(\d+)", text, re.ASCII)
    return (int(found[1]), int(found[2])) if found else None
