"""Folders of this machine that a rig shows to its operator."""

from __future__ import annotations

from tests.rig.cluster import Rig


def test_a_shared_folder_is_readable_without_access_to_its_parent_and_not_writable(login: Rig) -> None:
    closed = login.directory / "closed"
    closed.mkdir(mode=0o700)
    folder = closed / "with blanks"
    folder.mkdir()
    (folder / "file").write_text("text")
    first, second = login.lend(folder), login.lend(folder)
    assert first != second
    assert login.as_operator(["cat", str(folder / "file")]).returncode != 0
    assert login.as_operator(["cat", str(second / "file")]).stdout == "text"
    assert "Read-only" in login.as_root(["touch", str(second / "new")]).stderr
