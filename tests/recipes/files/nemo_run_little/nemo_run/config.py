"""Where NeMo-Run keeps what it knows of its experiments."""

from pathlib import Path


def get_nemorun_home() -> str:
    """Its usual place."""
    return str(Path.home() / ".nemo_run")
