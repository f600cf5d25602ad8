"""`render`: the batch script of a `LaunchSpec`, by NeMo-Run in a process of its own, which `WarmRenderer` keeps."""

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

from llmb_tui.errors import Trouble
from llmb_tui.language.quantities import duration
from llmb_tui.language.text import clean_line
from llmb_tui.launch.direct.spec_of import checked
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.store.paths import home

_COMMAND = (sys.executable, "-m", "llmb_tui.launch.direct.render_worker")
_MEND = "Install llmb-tui again with the versions that it asks for: `pip install --force-reinstall llmb-tui`."
_WHAT = "The batch script could not be rendered."
# What is done before anybody looks at it takes no processor from a key.
_NICE = 5
_IDLE_S = 600.0


def render(spec: LaunchSpec, deadline_s: float = 60.0) -> str:
    """Text of the script that Slurm would be given. Takes 1 to 2 seconds, most of it importing nemo-run.

    Raises Trouble: exit code 1 for a value that must not be in a script, 2 when nemo-run cannot be started, fails or
    takes too long.
    """
    request = _request(spec)
    worker = _Worker()
    try:
        return worker.script(request, deadline_s)
    finally:
        worker.end()


class WarmRenderer:
    """`render` by a process that stays for the next script, until none was wanted for ten minutes. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        self._idle = threading.Timer(0.0, self._rest)

    def __call__(self, spec: LaunchSpec) -> str:
        """As `render`: in milliseconds once nemo-run is imported."""
        request = _request(spec)
        with self._lock:
            self._idle.cancel()
            if self._worker is not None and self._worker.ended:
                self._end()
            if self._worker is None:
                self._worker = _Worker(_NICE)
            try:
                script = self._worker.script(request)
            except Trouble:
                self._end()
                raise
            self._idle = threading.Timer(_IDLE_S, self._rest)
            self._idle.daemon = True
            self._idle.start()
            return script

    def close(self) -> None:
        """End the process, also while another thread waits for it: that one raises Trouble."""
        self._idle.cancel()
        worker = self._worker
        if worker is not None:
            worker.kill()
        self._rest()

    def _rest(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None


class _Worker:
    """The process: asked and answered through its stdin, a socket, which nothing that it imports prints to.

    When this end is closed, however this program ended, it ends by itself.
    """

    def __init__(self, nice: int = 0) -> None:
        fix = "Free some space in the temporary directory, or set TMPDIR to another one."
        try:
            # An empty directory, so that nothing there is imported; a session of its own, so that it has no terminal.
            self._home = tempfile.TemporaryDirectory(prefix="llmb-tui-render-")
            self._said = tempfile.TemporaryFile()  # noqa: SIM115 - `end` closes it
            fix = "Try again when this machine has room for one more process."
            environment = {**os.environ, "NEMORUN_HOME": self._home.name, "PYTHONUTF8": "1", "PYTHONWARNINGS": "ignore"}
            if home() is None:  # nemo-run looks for one as it is imported
                environment["HOME"] = self._home.name
            self._link, theirs = socket.socketpair()
            with theirs:
                self._process = subprocess.Popen(
                    _COMMAND,
                    stdin=theirs.fileno(),
                    stdout=self._said,
                    stderr=self._said,
                    cwd=self._home.name,
                    env=environment,
                    start_new_session=True,
                )
        except OSError as error:
            raise Trouble(_WHAT, f"{error.strerror or error}.", fix) from error
        if nice:
            os.setpriority(os.PRIO_PROCESS, self._process.pid, nice)

    @property
    def ended(self) -> bool:
        """It can be asked no more."""
        return self._process.poll() is not None

    def script(self, request: str, deadline_s: float = 60.0) -> str:
        """What it answers. Raises Trouble; then it is of no use any more."""
        self._link.settimeout(deadline_s)
        try:
            self._link.sendall(f"{request}\n".encode())
            with self._link.makefile(encoding="utf-8") as answers:
                answer = answers.readline()
        except TimeoutError:
            why = f"nemo-run did not answer within {duration(deadline_s)}."
            raise Trouble(_WHAT, why, "Try again; the first start after an installation is the slowest.") from None
        except OSError:  # it has ended
            answer = ""
        with contextlib.suppress(ValueError):
            return str(json.loads(answer)["script"])
        raise Trouble(_WHAT, f"nemo-run: {self._last_words()}", _MEND)

    def kill(self) -> None:
        """End it with all that it has started. From any thread: who waits for it finds that it has ended."""
        if not self.ended:
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """End it, and give back what it had of this machine."""
        self.kill()
        self._process.wait()
        self._link.close()
        self._said.close()
        self._home.cleanup()

    def _last_words(self) -> str:
        code = self._process.wait()
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").splitlines()
        last = next((line for line in reversed(lines) if line.strip()), f"exit code {code}")
        return clean_line(last).strip()


def _request(spec: LaunchSpec) -> str:
    return json.dumps(asdict(checked(spec)))
