"""`Places`: the directories of one user's configuration and state."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from llmb_tui.errors import Trouble

_APP = "llmb-tui"
CONFIG_VARIABLE, STATE_VARIABLE = "LLMB_TUI_CONFIG_DIR", "LLMB_TUI_STATE_DIR"
"""Environment variables that name other directories than the platform's own."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where things are kept. Nothing is created here: `store.files` makes directories when it writes."""

    config: Path
    """What a person may edit and copy to another machine."""
    state: Path
    """What this machine remembers of runs."""

    @classmethod
    def of_user(cls) -> Places:
        """The platform's own directories, or LLMB_TUI_CONFIG_DIR and LLMB_TUI_STATE_DIR where they are set."""
        config = os.environ.get(CONFIG_VARIABLE) or platformdirs.user_config_dir(_APP, appauthor=False)
        state = os.environ.get(STATE_VARIABLE) or platformdirs.user_state_dir(_APP, appauthor=False)
        return cls(config=_absolute(config), state=_absolute(state))

    @property
    def settings(self) -> Path:
        """File of what is set for all clusters and runs."""
        return self.config / "config.toml"

    @property
    def clusters(self) -> Path:
        """Directory of cluster profiles, one TOML file each."""
        return self.config / "clusters"

    @property
    def presets(self) -> Path:
        """Directory of the user's own presets."""
        return self.config / "presets"

    @property
    def failures(self) -> Path:
        """Directory of the user's own failure rules."""
        return self.config / "failures"

    @property
    def runs(self) -> Path:
        """Directory of runs, one folder each."""
        return self.state / "runs"

    @property
    def suites(self) -> Path:
        """Directory of suites, one folder each."""
        return self.state / "suites"

    @property
    def catalog(self) -> Path:
        """File with the presets as they were read last."""
        return self.state / "catalog.json"

    @property
    def runs_done(self) -> Path:
        """File with what is told of runs that are done, as it was made last."""
        return self.state / "runs-done.json"

    @property
    def journal(self) -> Path:
        """File that intents and their outcomes are written to before and after they happen."""
        return self.state / "journal.jsonl"


def _absolute(path: str) -> Path:
    try:
        return Path(path).expanduser().absolute()
    except (RuntimeError, OSError) as error:
        # `~` of a user that there is not, or a working directory that was removed.
        fix = f"Set {CONFIG_VARIABLE} and {STATE_VARIABLE} to absolute paths of directories, or work in another one."
        raise Trouble(f"There is no directory {path}.", f"{error}", fix, exit_code=1) from error
