"""`reported_values`: values that tests attach to their reports as properties."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


def reported_values(terminalreporter: pytest.TerminalReporter, name: str) -> Iterator[object]:
    """Yield every value that was reported under a name. The last report of a test contains all its values."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "teardown":
                yield from (value for key, value in report.user_properties if key == name)
