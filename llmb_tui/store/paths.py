"""`UserPaths`: the directories of one user's configuration and state."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from llmb_tui.errors import LlmbError

_APP = "llmb-tui"
CONFIG_VARIABLE, STATE_VARIABLE = "LLMB_TUI_CONFIG_DIR", "LLMB_TUI_STATE_DIR"
"""Environment variables that replace the platform's own directories."""


class _Below:
    """A path below one of the two directories."""

    def __init__(self, directory: str, name: str) -> None:
        self._directory = directory
        self._name = name

    def __get__(self, places: UserPaths, _: type[UserPaths]) -> Path:
        directory: Path = getattr(places, self._directory)
        return directory / self._name


@dataclass(frozen=True, slots=True)
class UserPaths:
    """Paths of the user's files. Nothing is created here: `store.files` makes directories when it writes."""

    config: Path
    """Directory of files that the user may edit and copy to another machine."""
    state: Path
    """Directory of this machine's records of runs."""

    settings = _Below("config", "config.toml")
    """File of the settings for all clusters and runs."""
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
    """Cache of the presets as they were last read."""
    runs_done = _Below("state", "runs-done.json")
    """Cache of the records of finished runs."""
    journal = _Below("state", "journal.jsonl")
    """File with intents and their outcomes, each written before or after its action."""

    @classmethod
    def of_user(cls) -> UserPaths:
        """The platform's own directories, or LLMB_TUI_CONFIG_DIR and LLMB_TUI_STATE_DIR if they are set."""
        return cls(
            config=_place(CONFIG_VARIABLE, lambda: platformdirs.user_config_dir(_APP, appauthor=False)),
            state=_place(STATE_VARIABLE, lambda: platformdirs.user_state_dir(_APP, appauthor=False)),
        )


def expand_user(path: str) -> Path:
    """A path with `~` or `~name` replaced by the home directory; unchanged if there is no such user."""
    return Path(os.path.expanduser(path))  # Path.expanduser raises RuntimeError for an unknown user


def home() -> Path | None:
    """The user's home directory; None if it is unknown, as for a user id without an entry in some containers."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def working_directory() -> Path:
    """The working directory, or the home directory if the working directory was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return home() or Path("/")


def _place(variable: str, of_platform: Callable[[], str]) -> Path:
    path = os.environ.get(variable)
    try:
        return Path(path or of_platform()).expanduser().absolute()
    except (RuntimeError, OSError) as error:
        # `~` of an unknown user, no home directory at all, or a working directory that was removed.
        what = f"The directory {path} does not exist." if path else "The home directory is unknown."
        why = f"{error}" if path else f"HOME is not set, and the user id {os.getuid()} has no entry."
        fix = f"Set {CONFIG_VARIABLE} and {STATE_VARIABLE} to absolute paths, or change to an existing directory."
        raise LlmbError(what, why, fix, exit_code=1) from error
