"""`look_for_commits`: check, from the cluster, that the commits which a setup script fetches by id are public.

The check repeats the corresponding install step in a temporary directory, with shorter timeouts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from llmb_tui.cluster.failures import DeadlineError
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session, login_node
from llmb_tui.language.redact import server_words
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

_TITLE = "Required commits"
_DEADLINE_S = 25.0
_MISSING = re.compile(r"Commit \w+ is not in \S+\.")
_CHOOSE = "Choose another GPU type, or our script."


def look_for_commits(session: Session, step: InstallStep) -> Check:
    """Look for the commits of an install step: failed if one is not public, a warning if that cannot be checked.

    Raises the errors of `Session.run`, except `DeadlineError`.
    """
    count = (len(step.args) - 1) // 2
    needed = f"{count} commits that the setup script fetches by id"
    try:
        script = remote_text("inside.sh", "early_commits.sh") + step.work
        result = session.run_script(script, step.args, deadline_s=_DEADLINE_S)
    except DeadlineError:
        return _check("warning", "the git host did not answer in time", needed)
    lines = [line for raw in result.stdout.splitlines() if (line := clean_line(server_words(raw)))]
    missing = next((line for line in lines if _MISSING.fullmatch(line)), "")
    if missing:
        return _check("failed", f"{missing} It may not be public.", needed, _CHOOSE)
    if result.exit_code:
        return _check("warning", f"could not be checked: {lines[-1] if lines else 'no answer'}", needed)
    if any("does not tell" in line for line in lines):
        return _check("warning", "the git host does not report this", needed)
    return _check("ok", "all exist", needed)


def _check(status: CheckStatus, found: str, needed: str, fix: str = "") -> Check:
    if status == "warning":
        fix = "The install checks again, before any long step."
    return Check(COMMITS, _TITLE, status, found, needed, fix)


def commits_group(request: RunRequest) -> tuple[CheckGroup, ...]:
    """Check group for the commits that a setup script fetches by id; empty if it fetches none."""
    step = _commits_step(request)
    return (lambda cluster, _: (look_for_commits(login_node(cluster), step),),) if step is not None else ()


def commit_objections(
    request: RunRequest, checks: Sequence[Check], steps: Sequence[StepState]
) -> tuple[Problem, ...] | None:
    """Problem of a commit that is not public, by an early check or the install step; None if neither shows anything."""
    for check in checks:
        if check.id == COMMITS and check.status == "failed":
            return (Problem("procedure", "error", check.found, check.fix),)
    step = _commits_step(request)
    for state in steps:
        if step and state.id == step.id and state.status == "failed" and _MISSING.fullmatch(state.detail):
            return (Problem("procedure", "error", f"{state.detail} It may not be public.", _CHOOSE),)
    return () if any(check.id == COMMITS and check.status == "ok" for check in checks) else None


def _commits_step(request: RunRequest) -> InstallStep | None:
    """The install step that looks for the commits; None if there is none, or the request cannot use the scripts."""
    known = request.recipe.upstream is not None and request.plan.container is not None
    if not known or type(request.profile) is not FACTS.profile:
        return None
    return commits_step(request)
