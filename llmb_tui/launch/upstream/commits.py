"""`look_for_commits`: are the commits that a setup script takes by their ids public? Asked from the cluster.

It is what the install step does that looks for them, in a temporary directory and with less patience.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from llmb_tui.cluster.failures import DeadlinePassed
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session, login_node
from llmb_tui.language.states import CheckStatus
from llmb_tui.language.text import clean_line
from llmb_tui.launch.install_step import InstallStep
from llmb_tui.launch.step_state import StepState
from llmb_tui.launch.upstream.facts import FACTS
from llmb_tui.launch.upstream.install import commits_step
from llmb_tui.plan.plan import Problem
from llmb_tui.preflight.check_group import CheckGroup
from llmb_tui.preflight.report import Check
from llmb_tui.request import RunRequest

COMMITS = "commits"
"""Id of the check."""

_TITLE = "Commits it takes"
_DEADLINE_S = 25.0
_MISSING = re.compile(r"Commit \w+ is not in \S+\.")
_CHOOSE = "Choose another GPU type, or the direct procedure."


def look_for_commits(session: Session, step: InstallStep) -> Check:
    """Look for the commits of an install step. One that is not public fails; what cannot be asked is a warning.

    Raises what `Session.run` raises, but `DeadlinePassed`.
    """
    count = (len(step.args) - 1) // 2
    needed = f"{count} commits that the setup script fetches by their ids"
    try:
        script = remote_text("inside.sh", "early_commits.sh") + step.work
        result = session.run_script(script, step.args, deadline_s=_DEADLINE_S)
    except DeadlinePassed:
        return _check("warning", "the git host did not answer in time", needed)
    lines = [line for raw in result.stdout.splitlines() if (line := clean_line(raw).strip())]
    missing = next((line for line in lines if _MISSING.fullmatch(line)), "")
    if missing:
        return _check("failed", f"{missing} It may not be public.", needed, _CHOOSE)
    if result.exit_code:
        return _check("warning", f"could not be asked for: {lines[-1] if lines else 'no answer'}", needed)
    if any("does not tell" in line for line in lines):
        return _check("warning", "the git host does not tell", needed)
    return _check("ok", "all are there", needed)


def _check(status: CheckStatus, found: str, needed: str, fix: str = "") -> Check:
    if status == "warning":
        fix = "The install looks for them again, before anything that takes long."
    return Check(COMMITS, _TITLE, status, found, needed, fix)


def commits_group(request: RunRequest) -> tuple[CheckGroup, ...]:
    """For the preflight: the check for the commits that a setup script takes; none where it takes none by their ids."""
    step = _commits_step(request)
    return (lambda cluster, _: (look_for_commits(login_node(cluster), step),),) if step is not None else ()


def commit_objections(
    request: RunRequest, checks: Sequence[Check], steps: Sequence[StepState]
) -> tuple[Problem, ...] | None:
    """A commit that is not public, by an early check or by the install step; None if neither shows anything."""
    for check in checks:
        if check.id == COMMITS and check.status == "failed":
            return (Problem("procedure", "error", check.found, check.fix),)
    step = _commits_step(request)
    for state in steps:
        if step and state.id == step.id and state.status == "failed" and _MISSING.fullmatch(state.detail):
            return (Problem("procedure", "error", f"{state.detail} It may not be public.", _CHOOSE),)
    return () if any(check.id == COMMITS and check.status == "ok" for check in checks) else None


def _commits_step(request: RunRequest) -> InstallStep | None:
    """The install step that looks for them; None too where the scripts or the image are not known, or cannot run."""
    known = request.recipe.upstream is not None and request.plan.container is not None
    if not known or type(request.profile) is not FACTS.profile:
        return None
    return commits_step(request)
