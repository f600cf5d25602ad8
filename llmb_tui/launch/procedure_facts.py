"""`ProcedureFacts`: everything about a procedure that is known without loading it, its words above all. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.launch.spec import Spec
from llmb_tui.plan.selection import ProcedureId


@dataclass(frozen=True, slots=True)
class ProcedureFacts:
    """One entry of the registry. Its module is loaded when a run is first checked, prepared or submitted by it."""

    id: ProcedureId
    implementation: str
    """Where its `Procedure` is: `package.module:Class`."""
    profile: type[ClusterProfile]
    """Kind of cluster profile that it runs on."""
    spec: type[Spec] | None
    """Type of its runs' specs; None if they have none."""
    name: str
    """Name that people read, such as `NVIDIA's own scripts`."""
    title: str
    """The same in places that do not say otherwise that it is a procedure."""
    started_by: str
    """Sentence of a report about what started a run, and what follows for its settings."""
    flag_help: str = ""
    """A few words for `--procedure`, by which it can be chosen; empty if it cannot be."""
    starts_runs: bool = True
    """False if another program starts its runs, which are only watched and judged here."""
    writes_dependency: bool = False
    """True if the job can be made to wait for other jobs, as a chain of runs needs."""
