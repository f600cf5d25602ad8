"""`KINDS`: the registry of the kinds of cluster. Another kind is a folder, and a line here."""

from __future__ import annotations

from typing import Any

from llmb_tui.cluster.kind import ClusterKind
from llmb_tui.cluster.runai.kind import RUNAI
from llmb_tui.cluster.slurm.kind import SLURM

KINDS: dict[str, ClusterKind[Any]] = {kind.profile.kind: kind for kind in (SLURM, RUNAI)}
"""By name, as the `kind` of a profile and of its file."""

UNNAMED = SLURM.profile.kind
"""Kind of a profile whose file names none."""
