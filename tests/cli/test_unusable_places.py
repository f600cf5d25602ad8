"""Unusable directories of state and configuration: a message names them, on the screen too."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from llmb_tui.cli import main
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.services import Services
from llmb_tui.store.paths import CONFIG_VARIABLE, STATE_VARIABLE, UserPaths
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import Failure
from tests.kit.pilot import SIZE, on_screen, on_top
from tests.kit.runs import make_run
from tests.kit.unknown_user import use_unknown_user_id
from tests.kit.unprivileged import not_root

SELECTION = ("-w", "nemotron4@25.04", "-s", "15b", "--gpu", "h100", "-d", "fp8", "--scale", "64")
VERBS = (
    ("jobs",),
    ("watch", "a1", "--once"),
    ("cancel", "a1"),
    ("results", "a1"),
    ("compare", "a1"),
    ("compare", "--nodes"),
    ("plan", *SELECTION, "--cluster", "eos"),
    ("list", "-w", "grok1"),
    ("clusters",),
    ("clusters", "add", "new", "--host", "h", "--account", "a", "--partition", "p", "--install-dir", "/x"),
    ("config", "show"),
    ("config", "validate"),
)


@pytest.fixture
def places(user_places: UserPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UserPaths:
    """Directories with a cluster and a run."""
    monkeypatch.setenv("HOME", str(tmp_path))
    services = Services(user_places)
    services.clusters.save(SlurmProfile("eos", "localhost", "a", "p", "/x", port=1))
    services.runs.save(make_run("a1", job_state="FAILED", cluster="eos"))
    return user_places


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
WHICH: dict[str, Callable[[UserPaths], Path]] = {
    "state": lambda places: places.state,
    "runs": lambda places: places.runs,
    "run": lambda places: places.runs / "a1",
    "clusters": lambda places: places.clusters,
    "presets": lambda places: places.presets,
    "config": lambda places: places.config,
}


def run_verb(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(words)
    printed = capsys.readouterr()
    assert "internal error" not in printed.err, (words, printed.err)
    return code, printed.out + printed.err


@pytest.mark.parametrize("which", WHICH)
def test_unusable_directories_cause_no_internal_error(
    which: str, places: UserPaths, capsys: pytest.CaptureFixture[str]
) -> None:
    place = WHICH[which](places)
    place.mkdir(parents=True, exist_ok=True)
    whole = places.state.parent.with_suffix(".whole")
    shutil.copytree(places.state.parent, whole)
    for broken in BREAKS:
        broken(place)
        with not_root():
            told = {words: run_verb(capsys, *words) for words in VERBS}
        place.chmod(0o700) if not place.is_symlink() else place.unlink()
        shutil.rmtree(places.state.parent)
        shutil.copytree(whole, places.state.parent)
        assert {code for code, _ in told.values()} <= {0, 1, 2, 4}
        if broken in (a_file, to_itself, closed):
            naming = {words[0]: code for words, (code, text) in told.items() if str(place) in text}
            assert NAMED_BY[which] in naming, (broken.__name__, told)
            assert which not in ("state", "runs") or naming["jobs"] == naming["results"] == 2
    shutil.rmtree(whole)


@pytest.mark.usefixtures("places")
def test_an_unreadable_log_file_is_reported_with_a_fix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").write_text("a\n")
    (tmp_path / "log").chmod(0)
    with not_root():
        assert main(["logs", str(tmp_path / "log")]) == 2
    printed = " ".join(capsys.readouterr().err.split())
    assert f"Could not read {tmp_path}/log. Permission denied. Change its permissions" in printed


@pytest.mark.parametrize("words", [("jobs",), ("list",), ("clusters",), ("config", "path"), ("watch", "x")])
def test_a_missing_home_is_reported_with_the_variables_to_set(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use_unknown_user_id(monkeypatch)
    for name in (CONFIG_VARIABLE, STATE_VARIABLE, "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert main([*words, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["error"]["what"], document["id"]) == ("The home directory is unknown.", None)
    assert CONFIG_VARIABLE in document["error"]["fix"]


@pytest.mark.parametrize("broken", [a_file, to_itself])
async def test_the_screen_shows_the_error_message_of_the_command(
    places: UserPaths, broken: Callable[[Path], None]
) -> None:
    broken(places.state)
    app = LlmbApp(Services(places))
    async with app.run_test(size=SIZE) as pilot:
        await on_top(pilot, Failure)
        assert "Could not read the runs in" in on_screen(app)
        assert "Internal error" not in on_screen(app)
