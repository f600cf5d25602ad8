"""`KINDS`: the registry of the kinds of cluster. A new kind is a folder, and one line here."""

from __future__ import annotations

from typing import Any

from llmb_tui.cluster.kind import ClusterKind
from llmb_tui.cluster.runai.kind import RUNAI
from llmb_tui.cluster.slurm.kind import SLURM

KINDS: dict[str, ClusterKind[Any]] = {kind.profile.kind: kind for kind in (SLURM, RUNAI)}
"""Kinds by name, which is the `kind` of a profile and of its file."""

UNNAMED = SLURM.profile.kind
"""Kind of a profile whose file names none."""
