"""The registry of procedures: one entry each. No other module lists them all. Pure."""

from __future__ import annotations

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.launch.direct.facts import FACTS as DIRECT
from llmb_tui.launch.llmb.facts import FACTS as LLMB
from llmb_tui.launch.procedure_facts import ProcedureFacts
from llmb_tui.launch.runai.facts import FACTS as RUNAI
from llmb_tui.launch.upstream.facts import FACTS as UPSTREAM
from llmb_tui.plan.selection import DEFAULT_PROCEDURE, ProcedureId

PROCEDURES: dict[ProcedureId, ProcedureFacts] = {facts.id: facts for facts in (DIRECT, UPSTREAM, LLMB, RUNAI)}
"""Entries by id: the default first, then the others in the order in which they are offered."""


def procedures_for(profile: ClusterProfile | None) -> tuple[ProcedureFacts, ...]:
    """Procedures for a kind of cluster, even if another program launches their runs; None: the default's kind."""
    kind = PROCEDURES[DEFAULT_PROCEDURE].profile if profile is None else type(profile)
    return tuple(facts for facts in PROCEDURES.values() if facts.profile is kind)


def procedures_on(profile: ClusterProfile | None) -> tuple[ProcedureId, ...]:
    """Procedures that can launch a run on a cluster, the default one first; None: no cluster is selected."""
    return tuple(facts.id for facts in procedures_for(profile) if facts.starts_runs)


def procedure_on(profile: ClusterProfile | None, wanted: ProcedureId) -> ProcedureId:
    """The selected procedure, or the default one if the cluster does not support it."""
    offered = procedures_on(profile)
    return wanted if wanted in offered else offered[0]
