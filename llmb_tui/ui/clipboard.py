"""`copy`: send text to the clipboard through the terminal (OSC 52), and through a tool of the desktop if available.

OSC 52 also works over SSH and in tmux, but Terminal.app ignores it. The tool works there, but only on this machine.
Neither reports success, so the message confirms sending, not arrival.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

from textual.app import App

from llmb_tui.ui.background import run_in_thread
from llmb_tui.ui.text import notify

_DEADLINE_S = 2.0


def copy(app: App[Any], text: str, name: str) -> None:
    """Send a text to the clipboard, and show a message about it. `name`: name of the text, such as `38 lines`."""
    app.copy_to_clipboard(text)
    tool = native_tool(sys.platform, os.environ, shutil.which)
    if tool:
        app.run_worker(run_in_thread(_feed, tool, text.encode()), exit_on_error=False, group="clipboard")
    notify(app, f"{name} sent to the clipboard.")


def native_tool(
    platform: str, environment: Mapping[str, str], which: Callable[[str], str | None]
) -> tuple[str, ...] | None:
    """The command that copies its stdin to the clipboard of this desktop; None if there is none."""
    candidates: list[tuple[str, ...]] = []
    if platform == "darwin":
        candidates.append(("pbcopy",))
    if environment.get("WAYLAND_DISPLAY"):
        candidates.append(("wl-copy",))
    if environment.get("DISPLAY"):
        candidates += [("xclip", "-selection", "clipboard"), ("xsel", "--clipboard", "--input")]
    return next((command for command in candidates if which(command[0])), None)


def _feed(command: tuple[str, ...], data: bytes) -> None:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            command, input=data, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_DEADLINE_S, check=False
        )
