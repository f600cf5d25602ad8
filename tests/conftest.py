"""The rig's fixtures, hypothesis's settings, and the list of tests that this machine cannot run for lack of a rig."""

from __future__ import annotations

import functools
import gc
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.kit.report_properties import reported_values
from tests.kit.warm import SOCKET, Warm

if TYPE_CHECKING:
    from pathlib import Path

    from llmb_tui.catalog.catalog import Catalog
    from llmb_tui.catalog.recipe import Recipe
    from llmb_tui.cluster.reconnector import Reconnector
    from tests.recipes.outside import Outside
    from tests.rig.cluster import Rig

NOT_RUN = "not run: "
AT_END = "printed at the end"
_RECIPE_VARIABLES = ("BASE_URL", "APP_ID", "APP_SECRET", "PROJECT_NAME", "PVC_DIR", "RUN_CONF_MOUNTS")
"""Variables that describe a site to NVIDIA's recipes for Run:ai, and to `clusters add`."""
_OF_TESTS = {SOCKET, "LLMB_TUI_NO_RIG", "LLMB_TUI_WRITE_GOLDEN"}
_RIGS: dict[str, Rig] = {}
"""The rigs of this process, by the name of their fixture."""

# The duration of an example depends on the machine's load, not on the program.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `make quick`."""
    parser.addoption("--quick", action="store_true", help="skip each test as soon as it starts a program or a server")


def pytest_configure(config: pytest.Config) -> None:
    """Start the processes that all workers of a test run share, and set one time zone: pictures show local times."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    if SOCKET not in os.environ and not config.option.quick:
        folder = tempfile.TemporaryDirectory(prefix="llmb-tui-warm-")
        warm = Warm(folder.name)
        os.environ[SOCKET] = warm.place
        config.add_cleanup(folder.cleanup)
        config.add_cleanup(lambda: os.environ.__delitem__(SOCKET))
        config.add_cleanup(warm.close)


SLOW_FILES = (
    "tests/rig/submit/",
    "tests/rig/install/",
    "tests/rig/",
    "tests/watch/test_watch_monitor.py",
    "tests/journey/",
)
"""Paths of files that take a minute and more, most of it waiting for a cluster; the longest first."""
BUSY_FILES = ("tests/ui/", "tests/launch/", "")
"""Paths of files that keep a processor busy; the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the files: the longest first, waiting and busy ones in turn, so that no worker ends with one long file."""
    files = {name: list(tests) for name, tests in itertools.groupby(items, lambda item: item.nodeid.partition("::")[0])}
    waiting = [name for name in files if name.startswith(SLOW_FILES)]
    working = [name for name in files if name not in waiting]
    waiting.sort(key=lambda name: next(at for at, start in enumerate(SLOW_FILES) if name.startswith(start)))
    working.sort(key=lambda name: next(at for at, start in enumerate(BUSY_FILES) if name.startswith(start)))
    in_turn = itertools.chain.from_iterable(itertools.zip_longest(waiting, working))
    items[:] = [test for name in in_turn if name is not None for test in files[name]]


def pytest_collection_finish() -> None:
    """Freeze the imported objects, so that garbage collections skip them; each screen keeps 100,000 objects as well."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 10)


@pytest.fixture(scope="session", autouse=True)
def _no_programs_if_quick(request: pytest.FixtureRequest) -> None:
    """With `--quick`, skip a test as soon as it starts a program or a server."""

    def skip(event: str, _arguments: object) -> None:
        if event in ("subprocess.Popen", "socket.bind"):
            pytest.skip("it starts a program or a server")

    if request.config.option.quick:
        sys.addaudithook(skip)


@pytest.fixture(scope="session", autouse=True)
def _nothing_of_the_developer() -> Iterator[None]:
    """Isolate the tests from the developer's settings and keyring: neither reads nor changes them."""
    import keyring
    from keyring.backends.fail import Keyring

    with pytest.MonkeyPatch.context() as monkeypatch:
        for name in os.environ.keys() - _OF_TESTS:
            if name.startswith("LLMB_TUI_") or name in _RECIPE_VARIABLES:
                monkeypatch.delenv(name)
        monkeypatch.setenv("PYTHON_KEYRING_BACKEND", f"{Keyring.__module__}.{Keyring.__name__}")
        keyring.set_keyring(Keyring())  # type: ignore[no-untyped-call]
        yield


@pytest.fixture(scope="session", autouse=True)
def _warm_renderer() -> Iterator[None]:
    """Render scripts without importing NeMo-Run each time, which takes three seconds."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        command = (*Warm.python(), "-m", "llmb_tui.launch.direct.render_worker")
        monkeypatch.setattr("llmb_tui.launch.direct.render.COMMAND", command)
        yield


@pytest.fixture(scope="session", autouse=True)
def _presets_once() -> Iterator[None]:
    """Parse and check the package's presets once in each process, unless their files change.

    Parsing takes 50 ms of a processor, in hundreds of tests. A test that reads a preset directly still parses it again.
    """
    from llmb_tui.catalog import load
    from llmb_tui.toml.read import builtin_dir

    folder, read = builtin_dir(), load.read_preset
    unchanged = functools.lru_cache(maxsize=None)(lambda file, *_: read(file))

    def parse_once(file: Path) -> Recipe:
        stat = file.stat() if file.parent == folder else None
        return read(file) if stat is None else unchanged(file, stat.st_mtime_ns, stat.st_size)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(load, "read_preset", parse_once)
        yield


@pytest.fixture
def _cold_renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Render in a new Python process, as outside of tests."""
    command = (sys.executable, "-m", "llmb_tui.launch.direct.render_worker")
    monkeypatch.setattr("llmb_tui.launch.direct.render.COMMAND", command)


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """The package's presets."""
    from tests.kit.runs import CATALOG

    return CATALOG


@pytest.fixture(scope="session")
def rig() -> Iterator[Rig]:
    """SSH servers and Slurm with accounting."""
    yield from _start_rig("rig")


@pytest.fixture(scope="session")
def rig_without_accounting() -> Iterator[Rig]:
    """SSH servers and Slurm without slurmdbd."""
    yield from _start_rig("rig_without_accounting", accounting=False)


@pytest.fixture(scope="session")
def login() -> Iterator[Rig]:
    """SSH servers only."""
    yield from _start_rig("login", slurm=False)


@pytest.fixture
def outside(rig: Rig) -> Iterator[Outside]:
    """The rig with stand-ins for the servers that the recipes' scripts use: GitHub, pip's index and Hugging Face."""
    from tests.recipes import outside

    servers = outside.of(rig)
    with servers.reachable():
        yield servers


def _start_rig(name: str, **parts: bool) -> Iterator[Rig]:
    from tests.rig.cluster import Rig

    if reason := Rig.unavailable():
        pytest.skip(f"{NOT_RUN}{reason}")
    rig = _RIGS[name] = Rig(**parts).start()
    yield rig
    del _RIGS[name]
    rig.stop()


@pytest.fixture(autouse=True)
def _nothing_sent_yet() -> None:
    """Forget secrets that other tests of this process have sent."""
    from llmb_tui.language.redact import sent_secrets

    sent_secrets.clear()


@pytest.fixture(autouse=True)
def _tidy_rigs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Remove the jobs and faults of the rigs that a test has used."""
    yield
    for name in _RIGS.keys() & set(request.fixturenames):
        _RIGS[name].tidy()


@pytest.fixture(autouse=True)
def _no_link_stays(_links: list[Reconnector]) -> Iterator[None]:
    """Stop the reconnections that a test leaves behind: the port may soon belong to the login node of another test."""
    before = len(_links)
    yield
    for link in _links[before:]:
        link.close()
    del _links[before:]


@pytest.fixture(scope="session")
def _links() -> Iterator[list[Reconnector]]:
    """The links that were made in this process and not closed in their test."""
    from llmb_tui.cluster.reconnector import Reconnector

    links: list[Reconnector] = []
    init = Reconnector.__init__

    def record_link(link: Reconnector, *arguments: Any) -> None:
        init(link, *arguments)
        links.append(link)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(Reconnector, "__init__", record_link)
        yield links


@pytest.fixture
def print_at_end(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """A function that prints a sentence at the end of all tests, from any worker process."""
    return lambda sentence: request.node.user_properties.append((AT_END, sentence))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the tests' sentences, then the name of every test that was not run, grouped by reason."""
    for sentence in reported_values(terminalreporter, AT_END):
        terminalreporter.write_line(str(sentence))
    reasons: dict[str, list[str]] = {}
    for report in terminalreporter.stats.get("skipped", []):
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        _, separator, reason = text.partition(NOT_RUN)
        if separator:
            reasons.setdefault(reason, []).append(report.nodeid)
    for reason, names in reasons.items():
        terminalreporter.section(f"{NOT_RUN}{reason}")
        for name in names:
            terminalreporter.line(name)
