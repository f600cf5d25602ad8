"""`Terminal`: a verb at a terminal, and a user at its keyboard."""

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
    """Environment variables of a verb that uses the site's settings and state."""
    places = {"LLMB_TUI_CONFIG_DIR": str(site.places.config), "LLMB_TUI_STATE_DIR": str(site.places.state)}
    return {"PATH": "/usr/bin:/bin", "HOME": str(site.places.state), "TERM": "xterm", **places}


class Terminal:
    """A process `llmb-tui WORD…` with a terminal as its input and output."""

    def __init__(self, site: Site, *words: str) -> None:
        self.output = ""
        """All output so far."""
        self._read = 0
        self._master, slave = pty.openpty()
        command = [sys.executable, "-m", "llmb_tui", *words]
        self._process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environment(site), start_new_session=True
        )
        os.close(slave)

    def until(self, text: str, deadline_s: float = 120.0) -> None:
        """Read until this text has been shown."""

        def is_shown() -> bool:
            if text not in self.output[self._read :]:
                assert self._read_more(), f"the program ended without {text!r}: {self.output!r}"
            return text in self.output[self._read :]

        try:
            until(is_shown, f"{text!r} is shown", deadline_s, look_waits=True)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; the terminal shows {self.output!r}") from None
        self._read = self.output.index(text, self._read) + len(text)

    def enter(self, line: str) -> None:
        """Type a line and press Enter."""
        os.write(self._master, f"{line}\n".encode())

    def exit_code(self) -> int:
        """Read to the end; returns the exit code."""
        while self._read_more():
            pass
        return self._process.wait(30)

    def _read_more(self) -> bool:
        """Read a little, or wait a little; False at the end."""
        if not select.select([self._master], [], [], 0.1)[0]:
            return True
        try:
            self.output += os.read(self._master, 65536).decode().replace("\r\n", "\n")
        except OSError:  # Linux raises this at the end of a terminal
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
