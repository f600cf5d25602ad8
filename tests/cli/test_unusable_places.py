"""Directories of state and configuration that cannot be used: a sentence that names them, on the screen too."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from llmb_tui.cli import main
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.services import Services
from llmb_tui.store.paths import CONFIG_VARIABLE, STATE_VARIABLE, Places
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import Failure
from tests.kit.pilot import SIZE, on_screen, on_top
from tests.kit.runs import make_run

SELECTION = ("-w", "nemotron4@25.04", "-s", "15b", "--gpu", "h100", "-d", "fp8", "--scale", "64")
VERBS = (
    ("jobs",),
    ("watch", "a1", "--once"),
    ("cancel", "a1"),
    ("results", "a1"),
    ("plan", *SELECTION, "--cluster", "eos"),
    ("list", "-w", "grok1"),
    ("clusters",),
    ("clusters", "add", "new", "--host", "h", "--account", "a", "--partition", "p", "--install-dir", "/x"),
    ("config", "show"),
    ("config", "validate"),
)
NOBODY = 65534
WARM: list[tuple[int, str]] = []
"""What the verbs said once: what they import late may lie where only root gets to."""


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    """With a cluster and a run, where another user than root gets to."""
    base = Path(tempfile.mkdtemp(prefix="llmb-tui-places-"))
    base.chmod(0o755)
    made = Places(base / "config", base / "state")
    monkeypatch.setenv(CONFIG_VARIABLE, str(made.config))
    monkeypatch.setenv(STATE_VARIABLE, str(made.state))
    monkeypatch.setenv("HOME", str(base))
    services = Services(made)
    services.clusters.save(ClusterProfile("eos", "localhost", "a", "p", "/x", port=1))
    services.runs.save(make_run("a1", job_state="FAILED", cluster="eos"))
    yield made
    shutil.rmtree(base)


@contextmanager
def not_root(places: Places) -> Iterator[None]:
    """As the owner of all that, who is not root: root may read and write everything."""
    if os.geteuid() != 0:
        yield
        return
    base = places.state.parent
    for path in (base, *base.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def a_file(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    path.write_text("x")


def to_itself(path: Path) -> None:
    shutil.rmtree(path)
    path.symlink_to(path.name)


def closed(path: Path) -> None:
    path.chmod(0)


def only_listed(path: Path) -> None:
    path.chmod(0o400)


def read_only(path: Path) -> None:
    path.chmod(0o500)


BREAKS = (a_file, to_itself, closed, only_listed, read_only)
NAMED_BY = {
    "state": "jobs",
    "runs": "jobs",
    "run": "results",
    "clusters": "clusters",
    "presets": "list",
    "config": "jobs",
}
WHICH: dict[str, Callable[[Places], Path]] = {
    "state": lambda places: places.state,
    "runs": lambda places: places.runs,
    "run": lambda places: places.runs / "a1",
    "clusters": lambda places: places.clusters,
    "presets": lambda places: places.presets,
    "config": lambda places: places.config,
}


def said_by(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(words)
    said = capsys.readouterr()
    assert "fault of its own" not in said.err, (words, said.err)
    return code, said.out + said.err


@pytest.mark.parametrize("which", WHICH)
def test_no_verb_stops_on_a_fault_of_its_own(which: str, places: Places, capsys: pytest.CaptureFixture[str]) -> None:
    if not WARM:
        WARM.extend(said_by(capsys, *words) for words in VERBS)
    place = WHICH[which](places)
    place.mkdir(parents=True, exist_ok=True)
    whole = places.state.parent.with_suffix(".whole")
    shutil.copytree(places.state.parent, whole)
    for broken in BREAKS:
        broken(place)
        with not_root(places):
            told = {words: said_by(capsys, *words) for words in VERBS}
        place.chmod(0o700) if not place.is_symlink() else place.unlink()
        shutil.rmtree(places.state.parent)
        shutil.copytree(whole, places.state.parent)
        assert {code for code, _ in told.values()} <= {0, 1, 2, 4}
        if broken in (a_file, to_itself, closed):
            naming = {words[0]: code for words, (code, text) in told.items() if str(place) in text}
            assert NAMED_BY[which] in naming, (broken.__name__, told)
            assert which not in ("state", "runs") or naming["jobs"] == naming["results"] == 2
    shutil.rmtree(whole)


@pytest.mark.parametrize("broken", [a_file, to_itself])
async def test_the_screen_says_it_in_the_same_words(places: Places, broken: Callable[[Path], None]) -> None:
    broken(places.state)
    app = LlmbApp(Services(places))
    async with app.run_test(size=SIZE) as pilot:
        await on_top(pilot, Failure)
        assert "Could not read the runs in" in on_screen(app)
        assert "should not have happened" not in on_screen(app)
