"""Folder in which NeMo-Run stores its experiments."""

from pathlib import Path


def get_nemorun_home() -> str:
    """Default path of the folder."""
    return str(Path.home() / ".nemo_run")
