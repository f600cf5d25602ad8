"""`all_but`: a machine that lacks a program."""

from __future__ import annotations

import os
from pathlib import Path


def all_but(lacking: str, folder: Path) -> str:
    """A PATH with every program of this machine but that one; it is made in the folder."""
    folder.mkdir()
    for directory in map(Path, os.get_exec_path()):
        for program in directory.iterdir() if directory.is_dir() else ():
            if program.name != lacking and not os.path.lexists(folder / program.name):
                (folder / program.name).symlink_to(program)
    return str(folder)
