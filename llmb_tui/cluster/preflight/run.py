"""Preflight: ask a cluster what a plan needs to know before anything is installed or queued. Under a minute."""

from __future__ import annotations

from collections.abc import Callable

from llmb_tui.cluster.batch import NO_ANSWER, run_batch
from llmb_tui.cluster.failures import DeadlinePassed
from llmb_tui.cluster.preflight.examination import Answers, Examination, cleaned
from llmb_tui.cluster.preflight.login_node import login_node_examination
from llmb_tui.cluster.preflight.needs import Needs
from llmb_tui.cluster.preflight.network import network_examination
from llmb_tui.cluster.preflight.report import Preflight
from llmb_tui.cluster.preflight.scheduler import slurm_examination
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.session import Session
from llmb_tui.plan.plan import Plan

_NOTHING = Needs()


def run_preflight(
    session: Session,
    profile: ClusterProfile,
    plan: Plan | None,
    on_progress: Callable[[Preflight], None] | None = None,
    needs: Needs = _NOTHING,
) -> Preflight:
    """Check a cluster, for a plan or, without one, on its own. Nothing is queued, nothing is written.

    `on_progress` is told what is known so far. Raises what `Session.run` raises; what Slurm says or refuses to say
    is in the checks.
    """
    report = Preflight(())
    for examination in (
        slurm_examination(profile, plan),
        login_node_examination(profile, needs),
        network_examination(profile, needs),
    ):
        checks = examination.judge(_ask(session, examination))
        report = Preflight((*report.checks, *map(cleaned, checks)))
        if on_progress is not None:
            on_progress(report)
    return report


def _ask(session: Session, examination: Examination) -> Answers:
    """The answers to its commands; none where a file system hung until the deadline."""
    try:
        return run_batch(session, examination.commands, examination.deadline_s)
    except DeadlinePassed:
        return dict.fromkeys(examination.commands, NO_ANSWER)
