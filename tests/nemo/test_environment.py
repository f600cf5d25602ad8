"""The folder `.nemo`: an incomplete part never counts as complete. Nothing is installed here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nemo import environment


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty replacement for the folder, with its own lock files."""
    locks = tmp_path / "locks"
    locks.mkdir()
    for name in ("requirements.lock", "requirements-9.9.9.lock"):
        (locks / name).write_text("nemo-toolkit==9.9.9\n")
    monkeypatch.setattr(environment, "HERE", locks)
    monkeypatch.setattr(environment, "ROOT", tmp_path / ".nemo")
    return tmp_path / ".nemo"


def fill(path: Path) -> None:
    path.mkdir(parents=True)
    (path / "nemo.py").write_text("")


def cut_short(path: Path) -> None:
    fill(path)
    (path / "half.py").write_text("")
    raise KeyboardInterrupt


def make_both() -> None:
    for name in ("venv", "9.9.9"):
        environment._part(name, fill)


@pytest.mark.usefixtures("root")
def test_a_version_that_was_not_made_is_refused() -> None:
    with pytest.raises(RuntimeError, match="has not been made: run"):
        environment.command("9.9.9")


def test_an_interrupted_environment_is_built_again(root: Path) -> None:
    make_both()
    argv, variables = environment.command("9.9.9")
    assert argv == [str(root / "venv/bin/python")]
    assert variables["PYTHONPATH"].endswith(f":{root / '9.9.9'}")
    (root / "9.9.9" / ".complete").unlink()
    with pytest.raises(KeyboardInterrupt):
        environment._part("9.9.9", cut_short)
    with pytest.raises(RuntimeError):
        environment.command("9.9.9")
    make_both()
    assert not (root / "9.9.9" / "half.py").exists()
    environment.command("9.9.9")


def test_a_complete_environment_is_not_built_again(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_both()
    (root / "9.9.9" / "mine.py").write_text("")
    make_both()
    assert (root / "9.9.9" / "mine.py").exists()
    assert capsys.readouterr().out.endswith(f"{root / '9.9.9'} is as it should be\n")


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("changed", ["requirements.lock", "requirements-9.9.9.lock"])
def test_a_changed_lock_file_invalidates_the_environment(changed: str) -> None:
    make_both()
    (environment.HERE / changed).write_text("nemo-toolkit==9.9.8\n")
    with pytest.raises(RuntimeError):
        environment.command("9.9.9")


def test_making_an_environment_outside_linux_raises_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(RuntimeError, match="need Linux; this is darwin"):
        environment.make()
    assert not root.exists()


def test_every_package_is_pinned_and_no_lock_names_a_host() -> None:
    for path in Path(__file__).parent.glob("requirements*.lock"):
        lines = path.read_text().splitlines()
        assert lines
        assert all(line.count("==") == 1 and not set(line) & set(":/@ ") for line in lines), path
