"""`ProcedureFacts`: names, types and texts of a procedure that are known without loading it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.launch.spec import Spec
from llmb_tui.plan.selection import ProcedureId


@dataclass(frozen=True, slots=True)
class ProcedureFacts:
    """One entry of the registry. The procedure's module is loaded when it first checks, prepares or submits a run."""

    id: ProcedureId
    implementation: str
    """Location of its `Procedure` class: `package.module:Class`."""
    profile: type[ClusterProfile]
    """Kind of cluster profile that it supports."""
    spec: type[Spec] | None
    """Type of its runs' specs; None if they have none."""
    title: str
    """Name that people read, such as `our script`."""
    started_by: str
    """Sentence of a report: how the run was launched, and the consequence for its settings."""
    flag_help: str = ""
    """Help text of its value for `--procedure`; empty if it cannot be chosen there."""
    starts_runs: bool = True
    """False if another program launches its runs, and this program only follows and judges them."""
    writes_dependency: bool = False
    """True if the job can be made to wait for other jobs, as a chain of runs needs."""
