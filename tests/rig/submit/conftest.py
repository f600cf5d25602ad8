from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from llmb_tui.catalog.load import load_presets
from tests.kit.report_properties import reported_values
from tests.recipes.outside import Outside, of
from tests.rig.cluster import Rig
from tests.rig.submit.intents import Intents, Laptop, Tally
from tests.rig.submit.trial import Trial
from tests.rig.submit.upstream_intents import UpstreamIntents, recorded_sbatch

_AT_MOST_ONCE = "at-most-once"


@pytest.fixture(scope="session")
def intents(rig: Rig) -> Intents:
    """Makes runs for the rig."""
    return Intents(rig)


@pytest.fixture
def laptop(tmp_path: Path) -> Laptop:
    """What one machine remembers."""
    return Laptop(tmp_path)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """This Slurm takes jobs quickly, so less time than by default settles what was lost."""
    monkeypatch.setattr("llmb_tui.launch.login_node.TAKEN_WITHIN_S", 10.0)
    monkeypatch.setattr("llmb_tui.launch.login_node.ASK_AGAIN_AFTER_S", 0.2)


@pytest.fixture
def tally(request: pytest.FixtureRequest, print_at_end: Callable[[str], None]) -> Iterator[Tally]:
    """Outcomes of the test's submissions, printed at the end of all tests."""
    made = Tally()
    yield made
    if made.submissions:
        request.node.user_properties.append((_AT_MOST_ONCE, made.counts()))
        print_at_end(f"at most once, {request.node.name}: {made}")


@pytest.fixture
def direct(rig: Rig, intents: Intents, laptop: Laptop, tally: Tally) -> Trial:
    """Submissions of our own script."""
    return Trial(rig, intents, laptop, tally)


@pytest.fixture
def trial(request: pytest.FixtureRequest) -> Trial:
    """Submissions that are interrupted, of the procedure that a test is parametrised with, else of our own script."""
    trial: Trial = request.getfixturevalue(getattr(request, "param", "direct"))
    return trial


@contextmanager
def _installed(rig: Rig, name: str) -> Iterator[UpstreamIntents]:
    outside = of(rig)
    with pytest.MonkeyPatch.context() as monkeypatch, outside.reachable():
        outside.use_presets(monkeypatch)
        outside.need_little("nemo_run")
        made = UpstreamIntents(rig, load_presets(), name)
    yield made
    made.site.close()


@pytest.fixture(scope="session")
def _nemotron(rig: Rig) -> Iterator[UpstreamIntents]:
    """Installed once for all tests of the process, as the next."""
    with _installed(rig, "nemotron4-25.04") as made:
        yield made


@pytest.fixture(scope="session")
def _grok(rig: Rig) -> Iterator[UpstreamIntents]:
    with _installed(rig, "grok1-25.02") as made:
        yield made


@pytest.fixture
def nemo_run(_nemotron: UpstreamIntents, outside: Outside, laptop: Laptop, tally: Tally) -> Iterator[Trial]:
    """Launches of Nemotron4 25.04, where NeMo-Run calls sbatch."""
    with recorded_sbatch(outside.rig):
        yield Trial(outside.rig, _nemotron, laptop, tally)


@pytest.fixture
def batch(_grok: UpstreamIntents, outside: Outside, laptop: Laptop, tally: Tally) -> Iterator[Trial]:
    """Launches of Grok1 25.02, whose launch script is the batch script."""
    with recorded_sbatch(outside.rig):
        yield Trial(outside.rig, _grok, laptop, tally)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell what became of the submissions that were interrupted, in every process together."""
    outcomes = [Tally.of(counts) for counts in reported_values(terminalreporter, _AT_MOST_ONCE)]
    if outcomes:
        terminalreporter.write_line(f"at most once: {sum(outcomes, Tally())}")
