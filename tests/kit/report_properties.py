"""`reported_values`: values that tests report in addition to passing or failing, as properties of their reports."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


def reported_values(terminalreporter: pytest.TerminalReporter, name: str) -> Iterator[object]:
    """Yield every value that was reported under a name. A test's last report has all of its values."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "teardown":
                yield from (value for key, value in report.user_properties if key == name)
