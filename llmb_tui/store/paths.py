"""`Places`: the directories of one user's configuration and state."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from llmb_tui.errors import Trouble

_APP = "llmb-tui"
CONFIG_VARIABLE, STATE_VARIABLE = "LLMB_TUI_CONFIG_DIR", "LLMB_TUI_STATE_DIR"
"""Environment variables that name other directories than the platform's own."""


class _Below:
    """A path below one of the two directories."""

    def __init__(self, directory: str, name: str) -> None:
        self._directory = directory
        self._name = name

    def __get__(self, places: Places, _: type[Places]) -> Path:
        directory: Path = getattr(places, self._directory)
        return directory / self._name


@dataclass(frozen=True, slots=True)
class Places:
    """Where things are kept. Nothing is created here: `store.files` makes directories when it writes."""

    config: Path
    """What a person may edit and copy to another machine."""
    state: Path
    """What this machine remembers of runs."""

    settings = _Below("config", "config.toml")
    """File of what is set for all clusters and runs."""
    clusters = _Below("config", "clusters")
    """Directory of cluster profiles, one TOML file each."""
    presets = _Below("config", "presets")
    """Directory of the user's own presets."""
    failures = _Below("config", "failures")
    """Directory of the user's own failure rules."""
    runs = _Below("state", "runs")
    """Directory of runs, one folder each."""
    suites = _Below("state", "suites")
    """Directory of suites, one folder each."""
    catalog = _Below("state", "catalog.json")
    """File with the presets as they were read last."""
    runs_done = _Below("state", "runs-done.json")
    """File with what is told of runs that are done, as it was made last."""
    journal = _Below("state", "journal.jsonl")
    """File that intents and their outcomes are written to before and after they happen."""

    @classmethod
    def of_user(cls) -> Places:
        """The platform's own directories, or LLMB_TUI_CONFIG_DIR and LLMB_TUI_STATE_DIR where they are set."""
        return cls(
            config=_place(CONFIG_VARIABLE, lambda: platformdirs.user_config_dir(_APP, appauthor=False)),
            state=_place(STATE_VARIABLE, lambda: platformdirs.user_state_dir(_APP, appauthor=False)),
        )


def expanded(path: str) -> Path:
    """A path with the home directory in place of `~` or `~name`; that of a user that there is not stays as it is."""
    return Path(os.path.expanduser(path))  # Path's own way raises RuntimeError there


def home() -> Path | None:
    """The user's home directory; None where nothing names one, as for a user id without an entry in some containers."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def working_directory() -> Path:
    """Where the program runs; the user's home directory where that was removed meanwhile."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return home() or Path("/")


def _place(variable: str, of_platform: Callable[[], str]) -> Path:
    path = os.environ.get(variable)
    try:
        return Path(path or of_platform()).expanduser().absolute()
    except (RuntimeError, OSError) as error:
        # `~` of a user that there is not, no home at all, or a working directory that was removed.
        what = f"There is no directory {path}." if path else "There is no home directory."
        why = f"{error}" if path else f"HOME is not set, and nothing is known of the user id {os.getuid()}."
        fix = f"Set {CONFIG_VARIABLE} and {STATE_VARIABLE} to absolute paths of directories, or work in another one."
        raise Trouble(what, why, fix, exit_code=1) from error
