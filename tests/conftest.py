"""The rig's fixtures, for all tests, and the list of what was not run because this machine cannot have a rig."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.told import told

if TYPE_CHECKING:
    from tests.recipes.outside import Outside
    from tests.rig.cluster import Rig

NOT_RUN = "not run: "
TOLD = "told"
_RUNNING: list[Rig] = []


@pytest.fixture(scope="session")
def rig() -> Iterator[Rig]:
    """SSH servers and Slurm with accounting."""
    yield from _started()


@pytest.fixture(scope="session")
def rig_without_accounting() -> Iterator[Rig]:
    """SSH servers and Slurm without slurmdbd."""
    yield from _started(accounting=False)


@pytest.fixture(scope="session")
def login() -> Iterator[Rig]:
    """SSH servers only."""
    yield from _started(slurm=False)


@pytest.fixture
def outside(rig: Rig) -> Iterator[Outside]:
    """The rig, with stand-ins of what the recipes' own procedures get from GitHub, pip's index and Hugging Face."""
    from tests.recipes import outside

    made = outside.of(rig)
    with made.reachable():
        yield made


def _started(**parts: bool) -> Iterator[Rig]:
    from tests.rig.cluster import Rig

    if reason := Rig.unavailable():
        pytest.skip(f"{NOT_RUN}{reason}")
    started = Rig(**parts).start()
    _RUNNING.append(started)
    yield started
    _RUNNING.remove(started)
    started.stop()


@pytest.fixture(autouse=True)
def _tidy_rigs() -> Iterator[None]:
    """Leave every rig without jobs and faults."""
    yield
    for started in _RUNNING:
        started.tidy()


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Takes a sentence that is printed at the end of all tests, in whatever process this one runs."""
    return lambda sentence: request.node.user_properties.append((TOLD, sentence))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have told, then name every test that was not run, by the reason."""
    for sentence in told(terminalreporter, TOLD):
        terminalreporter.write_line(str(sentence))
    reasons: dict[str, list[str]] = {}
    for report in terminalreporter.stats.get("skipped", []):
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        _, found, reason = text.partition(NOT_RUN)
        if found:
            reasons.setdefault(reason, []).append(report.nodeid)
    for reason, names in reasons.items():
        terminalreporter.section(f"{NOT_RUN}{reason}")
        for name in names:
            terminalreporter.line(name)
