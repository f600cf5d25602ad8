"""`Terminal`: a verb at a terminal, and somebody who reads and types there."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from types import TracebackType

from tests.kit.waiting import until
from tests.rig.install.site import Site


def environment(site: Site) -> dict[str, str]:
    """Of a verb with the places of a site."""
    places = {"LLMB_TUI_CONFIG_DIR": str(site.places.config), "LLMB_TUI_STATE_DIR": str(site.places.state)}
    return {"PATH": "/usr/bin:/bin", "HOME": str(site.places.state), "TERM": "xterm", **places}


class Terminal:
    """Runs `llmb-tui WORD…` with a terminal as its input and output."""

    def __init__(self, site: Site, *words: str) -> None:
        self.seen = ""
        """Everything that was on the screen so far."""
        self._read = 0
        self._master, slave = pty.openpty()
        command = [sys.executable, "-m", "llmb_tui", *words]
        self._process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environment(site), start_new_session=True
        )
        os.close(slave)

    def until(self, text: str, deadline_s: float = 120.0) -> None:
        """Read on until this was shown."""

        def is_shown() -> bool:
            if text not in self.seen[self._read :]:
                assert self._more(), f"it ended without {text!r}: {self.seen!r}"
            return text in self.seen[self._read :]

        try:
            until(is_shown, f"{text!r} is shown", deadline_s, look_waits=True)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; the terminal shows {self.seen!r}") from None
        self._read = self.seen.index(text, self._read) + len(text)

    def enter(self, line: str) -> None:
        """Type a line."""
        os.write(self._master, f"{line}\n".encode())

    def exit_code(self) -> int:
        """Read to the end."""
        while self._more():
            pass
        return self._process.wait(30)

    def _more(self) -> bool:
        """Read a little, or wait a little; False at the end."""
        if not select.select([self._master], [], [], 0.1)[0]:
            return True
        try:
            self.seen += os.read(self._master, 65536).decode().replace("\r\n", "\n")
        except OSError:  # what Linux says at the end of a terminal
            return False
        return True

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)
