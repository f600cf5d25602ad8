"""`Preflight`: what was found on a cluster, what is needed, and how to mend the difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CheckStatus = Literal["ok", "warning", "failed"]


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


@dataclass(frozen=True, slots=True)
class Preflight:
    """All checks of one cluster for one plan. Nothing was queued to make it."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """True unless a check failed; warnings do not gate."""
        return all(check.status != "failed" for check in self.checks)
