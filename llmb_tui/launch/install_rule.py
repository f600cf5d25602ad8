"""`InstallRule`: what a line in the log of an install step means. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from llmb_tui.launch.secret import SecretId

AGAIN = "Install again: it goes on where it stopped."


@dataclass(frozen=True, slots=True)
class InstallRule:
    """A line that matches says why a step failed."""

    pattern: re.Pattern[str]
    reason: str
    fix: str
    key_would_help: SecretId | None = None
    """The key with which it may work."""


def rule(pattern: str, reason: str, fix: str, *, key_would_help: SecretId | None = None) -> InstallRule:
    """A rule for lines in which `pattern` is found."""
    return InstallRule(re.compile(pattern), reason, fix, key_would_help)
