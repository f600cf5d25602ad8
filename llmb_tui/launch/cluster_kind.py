"""`kind_of`: the kind of cluster of a run."""

from __future__ import annotations

from typing import Any

from llmb_tui.cluster.kind import ClusterKind
from llmb_tui.cluster.kinds import KINDS
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.launch.run import Run


def kind_of(run: Run) -> ClusterKind[Any]:
    """The kind of cluster of a run, even if the cluster's profile has been removed."""
    return KINDS[PROCEDURES[run.procedure].profile.kind]
