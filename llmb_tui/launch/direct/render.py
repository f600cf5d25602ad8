"""`render`: the batch script of a `LaunchSpec`, by NeMo-Run in a separate process; `WarmRenderer` keeps the process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict

from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import duration
from llmb_tui.language.redact import server_words
from llmb_tui.language.text import clean_line
from llmb_tui.launch.direct.spec_of import checked
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.store.paths import home

COMMAND = (sys.executable, "-m", "llmb_tui.launch.direct.render_worker")
"""Command that starts the process which renders."""
_REINSTALL = "Install llmb-tui again with the versions that it requires: `pip install --force-reinstall llmb-tui`."
_WHAT = "The batch script could not be rendered."
# Rendering ahead of its use must not slow down the user interface.
_NICE = 5
IDLE_S = 600.0
"""Time without use after which that process ends, seconds."""


def render(spec: LaunchSpec, deadline_s: float = 60.0) -> str:
    """Render the batch script. Takes 1 to 2 seconds, most of it to import nemo-run.

    Raises LlmbError: exit code 1 for a value that must not be in a script, 2 if nemo-run cannot be started, fails or
    takes too long.
    """
    request = _request(spec)
    worker = _Worker()
    try:
        return worker.script(request, deadline_s)
    finally:
        worker.end()


class WarmRenderer:
    """`render` with a process that is kept for further scripts and ends after ten idle minutes. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        self._idle = threading.Timer(0.0, self._end_worker)

    def __call__(self, spec: LaunchSpec) -> str:
        """Like `render`, in milliseconds once nemo-run is imported."""
        request = _request(spec)
        with self._lock:
            self._idle.cancel()
            if self._worker is not None and self._worker.ended:
                self._end()
            if self._worker is None:
                self._worker = _Worker(_NICE)
            try:
                script = self._worker.script(request)
            except LlmbError:
                self._end()
                raise
            self._idle = threading.Timer(IDLE_S, self._end_worker)
            self._idle.daemon = True
            self._idle.start()
            return script

    def close(self) -> None:
        """End the process, even while another thread waits for it: that thread gets LlmbError."""
        self._idle.cancel()
        worker = self._worker
        if worker is not None:
            worker.kill()
        self._end_worker()

    def _end_worker(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None


class _Worker:
    """The process. Requests and answers use its stdin, a socket, because the imported modules print to stdout.

    It ends by itself when this end of the socket is closed, even if this program was killed.
    """

    def __init__(self, nice: int = 0) -> None:
        fix = "Free some space in the temporary directory, or set TMPDIR to another directory."
        try:
            # An empty directory, so that nothing is imported from it; a separate session, without the terminal.
            self._home = tempfile.TemporaryDirectory(prefix="llmb-tui-render-")
            self._output = tempfile.TemporaryFile()  # noqa: SIM115 - `end` closes it
            fix = "Try again when this machine can start another process."
            environment = {**os.environ, "NEMORUN_HOME": self._home.name, "PYTHONUTF8": "1", "PYTHONWARNINGS": "ignore"}
            if home() is None:  # nemo-run needs a home directory at import
                environment["HOME"] = self._home.name
            self._link, theirs = socket.socketpair()
            with theirs:
                self._process = subprocess.Popen(
                    COMMAND,
                    stdin=theirs.fileno(),
                    stdout=self._output,
                    stderr=self._output,
                    cwd=self._home.name,
                    env=environment,
                    start_new_session=True,
                )
        except OSError as error:
            raise LlmbError(_WHAT, f"{error.strerror or error}.", fix) from error
        if nice:
            os.setpriority(os.PRIO_PROCESS, self._process.pid, nice)

    @property
    def ended(self) -> bool:
        """True if the process has ended."""
        return self._process.poll() is not None

    def script(self, request: str, deadline_s: float = 60.0) -> str:
        """Request a script. Raises LlmbError; the process is unusable afterwards."""
        self._link.settimeout(deadline_s)
        try:
            self._link.sendall(f"{request}\n".encode())
            with self._link.makefile(encoding="utf-8") as answers:
                answer = answers.readline()
        except TimeoutError:
            why = f"nemo-run did not answer within {duration(deadline_s)}."
            raise LlmbError(_WHAT, why, "Try again; the first start after an installation is the slowest.") from None
        except OSError:  # the process has ended
            answer = ""
        with contextlib.suppress(ValueError):
            return str(json.loads(answer)["script"])
        raise LlmbError(_WHAT, f"nemo-run: {self._last_words()}", _REINSTALL)

    def kill(self) -> None:
        """Kill the process and its children, from any thread; a waiting thread finds that the process has ended."""
        if not self.ended:
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill the process, and release its resources."""
        self.kill()
        self._process.wait()
        self._link.close()
        self._output.close()
        self._home.cleanup()

    def _last_words(self) -> str:
        code = self._process.wait()
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").splitlines()
        last = next((line for line in reversed(lines) if line.strip()), f"exit code {code}")
        return clean_line(server_words(last))


def _request(spec: LaunchSpec) -> str:
    return json.dumps(asdict(checked(spec)))
