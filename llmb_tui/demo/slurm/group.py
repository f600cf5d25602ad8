"""`Group`: a process group that can be ended as a whole."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO


class Group:
    """A process that leads a group of its own, with everything that it starts.

    All of them inherit the writing end of a pipe. Its end tells when they have gone; their process group does not,
    because a process that nobody has waited for stays in it.
    """

    def __init__(
        self,
        command: Sequence[str],
        streams: tuple[int | None, IO[bytes] | None, IO[bytes] | None],
        folder: str,
        environment: Mapping[str, str],
    ) -> None:
        """Start the process in a folder; `streams` are what Popen takes for its input, output and errors.

        Raises OSError.
        """
        reads, writes, complains = streams
        self._gone, held = os.pipe()
        try:
            self.process = subprocess.Popen(
                command,
                stdin=reads,
                stdout=writes,
                stderr=complains,
                cwd=folder,
                env=environment,
                start_new_session=True,
                pass_fds=(held,),
            )
        except OSError:
            os.close(self._gone)
            raise
        finally:
            os.close(held)

    def end(self, patience_s: float) -> None:
        """SIGTERM to all, and SIGKILL to those who are left when they have not gone in time."""
        self._signal(signal.SIGTERM)
        select.select([self._gone], [], [], patience_s)
        self.kill()

    def kill(self) -> None:
        """SIGKILL to all who are left."""
        self._signal(signal.SIGKILL)
        self.process.wait()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)
