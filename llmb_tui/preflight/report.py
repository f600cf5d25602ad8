"""`Preflight`: what was found on a cluster, what is needed, and how to mend the difference."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.language.states import CheckStatus

_OF_REQUEST = frozenset(
    "account partition qos reservation constraint exclude segment nodes time-limit gpus gpu-request cpu trial "
    "gpu-type claims pull-secret hub-credential".split()
)
"""Ids of the checks whether the cluster gives what is asked of it; the others are about the cluster itself."""
NETWORK_VARIABLES, PATH_VARIABLES = "environment", "environment-paths"
"""Ids of the checks that have variables to take."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the preflight table. Texts are clean of control characters."""

    id: str
    title: str
    status: CheckStatus
    found: str
    needed: str
    fix: str
    """Empty when nothing is to be done."""
    bring: tuple[str, ...] = ()
    """Paths on the cluster that would do instead, once a person has brought them there."""
    variables: tuple[tuple[str, str], ...] = ()
    """(name, value) of what was found and the cluster's profile could take."""
    unserved: bool = False
    """What is asked for may be right, and the cluster does not give it, or does not say, at the moment."""

    @property
    def wrong_request(self) -> bool:
        """True where it failed by what is asked for, which has to be another; else it is the cluster that fails."""
        return self.status == "failed" and self.id in _OF_REQUEST and not self.unserved


@dataclass(frozen=True, slots=True)
class Preflight:
    """All checks of one cluster for one plan. Nothing was queued to make it."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """True unless a check failed; warnings do not gate."""
        return not self.failed

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that gate."""
        return tuple(check for check in self.checks if check.status == "failed")

    @property
    def bring(self) -> tuple[str, ...]:
        """What has to be brought by hand, where nothing else gates; empty else."""
        if not all(check.bring for check in self.failed):
            return ()
        return tuple(path for check in self.failed for path in check.bring)

    @property
    def exit_code(self) -> int:
        """What a verb answers: 1 where only what was asked for is wrong, 2 where the cluster itself fails."""
        if self.passed:
            return 0
        return 1 if all(check.wrong_request for check in self.failed) else 2
