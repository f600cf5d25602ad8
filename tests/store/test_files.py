from __future__ import annotations

import errno
import os
import stat
import time
from pathlib import Path

import pytest

from llmb_tui.errors import LlmbError
from llmb_tui.store.files import (
    append_durable,
    make_private_directory,
    remove_leftovers,
    text_in,
    write_all_atomic,
    write_atomic,
)
from llmb_tui.store.paths import UserPaths, expand_user


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_written_files_and_their_new_directories_are_private(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"

    write_atomic(path, b"one")

    assert path.read_bytes() == b"one"
    assert mode(path) == 0o600
    assert mode(path.parent) == mode(path.parent.parent) == 0o700


def test_a_directory_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private_directory(tmp_path)
    assert mode(tmp_path) == 0o755


def test_replacing_leaves_no_other_file_behind(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"one")
    write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


def test_old_unfinished_files_of_killed_programs_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(*_: object) -> None:
        raise SystemExit

    runs = tmp_path / "runs" / "a"
    monkeypatch.setattr(os, "replace", kill)
    monkeypatch.setattr(os, "unlink", lambda _: None)
    for name in ("old", "new"):
        with pytest.raises(SystemExit):
            write_atomic(runs / name, b"x")
    monkeypatch.undo()
    (old,) = runs.glob(".old.*")
    (new,) = runs.glob(".new.*")
    (runs / "run.json").touch()
    for path in (old, runs / "run.json"):
        os.utime(path, (0, time.time() - 7200))
    remove_leftovers(tmp_path)
    remove_leftovers(tmp_path / "nowhere")
    assert set(runs.iterdir()) == {new, runs / "run.json"}


def test_a_write_that_fails_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.mkdir()  # a file cannot replace a directory

    with pytest.raises(LlmbError) as caught:
        write_atomic(path, b"two")

    assert str(path) in caught.value.what
    assert caught.value.why
    assert list(tmp_path.iterdir()) == [path]


def test_appending_creates_a_private_file_and_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "file"
    append_durable(path, b"one\n")
    append_durable(path, b"two\n")
    assert path.read_bytes() == b"one\ntwo\n"
    assert mode(path) == 0o600


def test_a_directory_that_cannot_be_made_is_a_trouble(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(LlmbError, match="Could not create the directory"):
        append_durable(tmp_path / "file" / "sub" / "journal", b"x")


def test_in_the_home_of_a_user_that_there_is_not_nothing_is_read_and_nothing_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = expand_user("~no-such-user/folder/file")
    assert text_in(path) == ""
    with pytest.raises(LlmbError, match="The directory ~no-such-user"):
        write_atomic(path, b"x")
    assert list(tmp_path.iterdir()) == []

    (tmp_path / "~no-such-user").mkdir()  # a name like another
    write_atomic(path, b"x")
    assert (tmp_path / path).read_bytes() == b"x"


def test_a_home_is_found_with_and_without_its_users_name() -> None:
    assert expand_user("~/a") == Path.home() / "a"
    assert expand_user("~root/a") == Path("~root/a").expanduser()
    assert expand_user("/a/~b") == Path("/a/~b")


def test_places_follow_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMB_TUI_CONFIG_DIR", str(tmp_path / "c"))
    monkeypatch.setenv("LLMB_TUI_STATE_DIR", str(tmp_path / "s"))

    places = UserPaths.of_user()

    assert places.clusters == tmp_path / "c" / "clusters"
    assert places.presets == tmp_path / "c" / "presets"
    assert places.runs == tmp_path / "s" / "runs"
    assert places.journal.parent == tmp_path / "s"
    assert not places.config.exists()


def test_places_without_the_environment_are_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLMB_TUI_CONFIG_DIR", raising=False)
    monkeypatch.setenv("LLMB_TUI_STATE_DIR", "")

    places = UserPaths.of_user()

    assert places.config.is_absolute()
    assert places.state.is_absolute()
    assert "llmb-tui" in str(places.config)


def test_of_several_files_all_are_written_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {tmp_path / "charts" / name: name.encode() * 1000 for name in ("a.svg", "b.svg", "c.svg")}
    sync, synced = os.fsync, list[int]()

    def full_at_the_third(handle: int) -> None:
        synced.append(handle)
        if len(synced) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    monkeypatch.setattr(os, "fsync", full_at_the_third)
    with pytest.raises(LlmbError, match=r"c\.svg") as caught:
        write_all_atomic(files)
    assert "No space left" in caught.value.why
    assert list((tmp_path / "charts").iterdir()) == []
    write_all_atomic(files)
    assert {path: path.read_bytes() for path in (tmp_path / "charts").iterdir()} == files
    (tmp_path / "z").mkdir()
    with pytest.raises(LlmbError):
        write_all_atomic({tmp_path / "new": b"x", tmp_path / "z": b"x"})
    assert {path.name for path in tmp_path.iterdir()} == {"charts", "z"}
