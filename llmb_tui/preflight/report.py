"""`Preflight`: the checks of a cluster, with found and needed values and remedies."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.language.states import CheckStatus

_REQUEST_CHECKS = frozenset(
    "account partition qos reservation constraint exclude segment nodes time-limit gpus gpu-request cpu trial "
    "gpu-type claims pull-secret hub-credential".split()
)
"""Ids of the checks of the request to the cluster; the other checks are of the cluster itself."""
NETWORK_VARIABLES, PATH_VARIABLES = "environment", "environment-paths"
"""Ids of the checks with variables that a profile could take over."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the preflight table. Texts are clean of control characters."""

    id: str
    title: str
    status: CheckStatus
    found: str
    needed: str
    fix: str
    """Remedy; empty if none is needed."""
    bring: tuple[str, ...] = ()
    """Paths on the cluster to which the user can copy the missing files instead."""
    variables: tuple[tuple[str, str], ...] = ()
    """Found variables, (name, value), that the cluster's profile could take over."""
    unserved: bool = False
    """Whether the request may be right, but the cluster does not fulfil it, or does not answer, at present."""

    @property
    def wrong_request(self) -> bool:
        """True if it failed because of the request, which must be changed; False if the cluster fails."""
        return self.status == "failed" and self.id in _REQUEST_CHECKS and not self.unserved


@dataclass(frozen=True, slots=True)
class Preflight:
    """All checks of one cluster for one plan. Nothing was queued to make it."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """True unless a check failed; warnings do not block."""
        return not self.failed

    @property
    def failed(self) -> tuple[Check, ...]:
        """Failed checks, which block the next step."""
        return tuple(check for check in self.checks if check.status == "failed")

    @property
    def bring(self) -> tuple[str, ...]:
        """Paths that the user must copy to the cluster; empty if another check blocks, too."""
        if not all(check.bring for check in self.failed):
            return ()
        return tuple(path for check in self.failed for path in check.bring)

    @property
    def exit_code(self) -> int:
        """Exit code of a verb: 1 if only the request is wrong, 2 if the cluster itself fails."""
        if self.passed:
            return 0
        return 1 if all(check.wrong_request for check in self.failed) else 2
