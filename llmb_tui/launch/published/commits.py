"""`look_for_commits`: are the commits that a setup script takes by their ids public? Asked from the cluster.

It is what the install step does that looks for them, in a temporary directory and with less patience.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.failures import DeadlinePassed
from llmb_tui.cluster.preflight.report import Check, CheckStatus, Preflight
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.session import Session
from llmb_tui.launch.install_step import InstallStep
from llmb_tui.launch.published.steps import published_steps
from llmb_tui.launch.step_state import StepState
from llmb_tui.plan.plan import Plan, Problem
from llmb_tui.text import clean_line

COMMITS = "commits"
"""Id of the check, and beginning of the step's."""

_TITLE = "Commits it takes"
_DEADLINE_S = 25.0
_MISSING = re.compile(r"Commit \w+ is not in \S+\.")
_CHOOSE = "Choose another GPU type, or the direct procedure."

# $1 is the file that says that the install has found them.
_LOOK = """
[ ! -s "$1" ] || {{ echo "The install has found them."; exit 0; }}
owner=$$
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
shift
set -- "$dir/found" "$@"
exec 2>&1
{work}
"""


def commits_step(recipe: Recipe, plan: Plan, profile: ClusterProfile) -> InstallStep | None:
    """The install step of a plan that looks for them; None where its setup script takes none, or is not known."""
    if recipe.published is None or plan.container is None:
        return None
    return next((step for step in published_steps(recipe, plan, profile) if step.id.startswith(f"{COMMITS}-")), None)


def look_for_commits(session: Session, step: InstallStep) -> Check:
    """Look for the commits of an install step. One that is not public fails; what cannot be asked is a warning.

    Raises what `Session.run` raises, but `DeadlinePassed`.
    """
    count = (len(step.args) - 1) // 2
    needed = f"{count} commits that the setup script fetches by their ids"
    try:
        done = session.run_script(_LOOK.format(work=step.work), step.args, deadline_s=_DEADLINE_S)
    except DeadlinePassed:
        return _check("warning", "the git host did not answer in time", needed)
    said = [line for raw in done.stdout.splitlines() if (line := clean_line(raw).strip())]
    missing = next((line for line in said if _MISSING.fullmatch(line)), "")
    if missing:
        return _check("failed", f"{missing} It may not be public.", needed, _CHOOSE)
    if done.exit_code:
        return _check("warning", f"could not be asked for: {said[-1] if said else 'no answer'}", needed)
    if any("does not tell" in line for line in said):
        return _check("warning", "the git host does not tell", needed)
    return _check("ok", "all are there", needed)


def _check(status: CheckStatus, found: str, needed: str, mend: str = "") -> Check:
    if status == "warning":
        mend = "The install looks for them again, before anything that takes long."
    return Check(COMMITS, _TITLE, status, found, needed, mend)


def with_commits(
    session: Session,
    report: Preflight,
    step: InstallStep | None,
    on_progress: Callable[[Preflight], None] | None = None,
) -> Preflight:
    """The report with a check for the commits of that step. Raises as `look_for_commits` does."""
    if step is None:
        return report
    report = Preflight((*report.checks, look_for_commits(session, step)))
    if on_progress is not None:
        on_progress(report)
    return report


def why_not_public(check: Check | None, steps: tuple[StepState, ...]) -> Problem | None:
    """A commit that is not public stands against the published procedure: by an early look, or by the install step."""
    if check is not None and check.status == "failed":
        return Problem("procedure", "error", check.found, check.mend)
    for step in steps:
        if step.id.startswith(f"{COMMITS}-") and step.status == "failed" and _MISSING.fullmatch(step.detail):
            return Problem("procedure", "error", f"{step.detail} It may not be public.", _CHOOSE)
    return None
