"""`all_but`: a PATH that lacks one program."""

from __future__ import annotations

import os
from pathlib import Path


def all_but(lacking: str, folder: Path) -> str:
    """A PATH with every program of this machine except `lacking`; its folder of links is `folder`."""
    folder.mkdir()
    for directory in map(Path, os.get_exec_path()):
        for program in directory.iterdir() if directory.is_dir() else ():
            if program.name != lacking and not os.path.lexists(folder / program.name):
                (folder / program.name).symlink_to(program)
    return str(folder)
