"""What tests tell about themselves beside passing or failing, as properties of their reports."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


def told(terminalreporter: pytest.TerminalReporter, name: str) -> Iterator[object]:
    """Every value that was told under a name. A test's last report has all of them."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "teardown":
                yield from (value for key, value in report.user_properties if key == name)
