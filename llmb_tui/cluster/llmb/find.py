"""`find_installs`: the installations of NVIDIA's own tools on a cluster. Few places are looked at, none deeply."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.cluster.llmb.files import ask, unreadable
from llmb_tui.cluster.llmb.install import CONFIG, LlmbInstall, install_of
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.words import PATH, fits
from llmb_tui.errors import Trouble

_MOST = 4
_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True)
class LlmbFound:
    """What was found of NVIDIA's own tools on a cluster."""

    installs: tuple[LlmbInstall, ...] = ()
    """Of the profile's own directory first, then of `$LLMB_INSTALL`, then others."""
    troubles: tuple[Trouble, ...] = ()
    """One for each configuration that cannot be used."""


def find_installs(session: Session, install_dir: str) -> LlmbFound:
    """Look for installations, in one remote call: there, where the login shell says, where sites keep such things.

    `install_dir` is the profile's and may be empty. Raises Trouble where it cannot be looked, and what
    `Session.run_script` raises.
    """
    places = [install_dir.rstrip("/")] if fits(PATH, install_dir) else []
    answers = ask(session, remote_text("places.sh", "llmb_installs.sh"), _MOST, places, _DEADLINE_S)
    texts: dict[str, dict[str, str]] = {}
    for kind, path, text in answers:
        texts.setdefault(path, {})[kind] = text
    installs, troubles = [], []
    for path, found in texts.items():
        try:
            installs.append(_install(path, found))
        except Trouble as trouble:
            troubles.append(trouble)
    return LlmbFound(tuple(installs), tuple(troubles))


def _install(path: str, found: dict[str, str]) -> LlmbInstall:
    if "config" not in found:
        raise unreadable(f"{path}/{CONFIG}", "You may not read it.")
    return install_of(
        path,
        found["config"],
        release=found.get("release", ""),
        images=found.get("images", "").splitlines(),
        venvs=found.get("venvs", "").splitlines(),
    )
