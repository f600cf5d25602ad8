"""`ClusterProfile`: how to reach a cluster and what to ask of it, for each kind of cluster. It never holds a secret."""

from __future__ import annotations

from typing import TypeAlias

from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.cluster.slurm.profile import SlurmProfile

ClusterProfile: TypeAlias = SlurmProfile | RunaiProfile
"""One saved cluster."""
