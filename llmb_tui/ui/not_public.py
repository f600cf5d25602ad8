"""`NotPublic`: commits that are not public, as far as was found out: by cluster, recipe and GPU type."""

# ruff: noqa: PLC0415 - the room that judges imports too much for the first frame
from __future__ import annotations

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.plan.plan import Problem
from llmb_tui.plan.selection import Selection
from llmb_tui.ui.found import Found

_Key = tuple[ClusterProfile, str, str, str]


class NotPublic:
    """It outlives a change of the answers; a later look that finds them corrects it."""

    def __init__(self) -> None:
        self._known: dict[_Key, Problem] = {}

    def learn(self, found: Found) -> bool:
        """Take over what a look or an install says of them. True when that is something new."""
        from llmb_tui.launch.published.commits import COMMITS, why_not_public

        if found.profile is None or found.selection is None:
            return False
        checks = found.preflight.checks if found.preflight is not None else ()
        check = next((check for check in checks if check.id == COMMITS), found.commits)
        problem, key = why_not_public(check, found.steps), _key(found.profile, found.selection)
        before = self._known.get(key)
        if problem is not None:
            self._known[key] = problem
        elif check is not None and check.status == "ok":
            self._known.pop(key, None)
        return self._known.get(key) != before

    def against(self, profile: ClusterProfile | None, selection: Selection | None) -> tuple[Problem, ...]:
        """What stands against the published procedure there."""
        problem = self._known.get(_key(profile, selection)) if profile and selection else None
        return (problem,) if problem is not None else ()


def _key(profile: ClusterProfile, selection: Selection) -> _Key:
    return profile, selection.workload, selection.release, selection.gpu
