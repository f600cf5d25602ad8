"""`find_installs`: the installations of NVIDIA's own tools on a cluster. Few places are looked at, none deeply."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.cluster.llmb.files import ask, unreadable
from llmb_tui.cluster.llmb.install import CONFIG, LlmbInstall, install_of
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.validation import PATH, matches
from llmb_tui.errors import Trouble

_MOST = 4
_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True)
class LlmbInventory:
    """What a cluster has of NVIDIA's own tools."""

    installs: tuple[LlmbInstall, ...] = ()
    """Of the profile's own directory first, then of `$LLMB_INSTALL`, then others."""
    troubles: tuple[Trouble, ...] = ()
    """One for each configuration that cannot be used."""


def find_installs(session: Session, install_dir: str) -> LlmbInventory:
    """Look for installations, in one remote call: there, where the login shell says, where sites keep such things.

    `install_dir` is the profile's and may be empty. Raises Trouble where it cannot be looked, and what
    `Session.run_script` raises.
    """
    places = [install_dir.rstrip("/")] if matches(PATH, install_dir) else []
    answers = ask(session, remote_text("places.sh", "llmb_installs.sh"), _MOST, places, _DEADLINE_S)
    texts: dict[str, dict[str, str]] = {}
    for kind, path, text in answers:
        texts.setdefault(path, {})[kind] = text
    installs, troubles = [], []
    for path, files in texts.items():
        try:
            installs.append(_install(path, files))
        except Trouble as trouble:
            troubles.append(trouble)
    return LlmbInventory(tuple(installs), tuple(troubles))


def _install(path: str, files: dict[str, str]) -> LlmbInstall:
    if "config" not in files:
        raise unreadable(f"{path}/{CONFIG}", "You may not read it.")
    return install_of(
        path,
        files["config"],
        release=files.get("release", ""),
        images=files.get("images", "").splitlines(),
        venvs=files.get("venvs", "").splitlines(),
    )
