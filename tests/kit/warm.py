"""A Python process with NeMo-Run imported, for programs that would otherwise each import it for seconds.

`Warm` starts it once for all processes of a test run; it imports NeMo-Run at the first request. A program that is
started with `Warm.python` instead of Python's path runs in a fork of it, with its own arguments, environment,
directory, streams and exit code.

This file contains all three parts: the class for tests, the program that forks, and the small client program.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys

SOCKET = "LLMB_TUI_TEST_WARM"
"""Environment variable with the socket's path, for the processes of a test run."""


class Warm:
    """The program that forks; call `close` at the end."""

    def __init__(self, folder: str) -> None:
        import subprocess

        self.place = os.path.join(folder, "warm")
        self._process = subprocess.Popen([sys.executable, __file__, "serve", self.place], stdin=subprocess.PIPE)

    @staticmethod
    def python() -> tuple[str, ...]:
        """The replacement for `sys.executable` in an argument list. The only supported option of Python is `-m`."""
        if SOCKET not in os.environ:
            return (sys.executable,)
        return (sys.executable, "-S", "-E", __file__, "ask", os.environ[SOCKET])

    def close(self) -> None:
        """End the program. Its forks continue."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()
        if os.path.exists(self.place):
            os.unlink(self.place)


def serve(place: str) -> None:
    """Fork for each request until stdin ends."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{place}.new")
        listening.listen(64)
        os.rename(f"{place}.new", place)  # the socket accepts connections as soon as it has this name
        while True:
            ready, _, _ = select.select([listening, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            connection, _ = listening.accept()
            import nemo_run  # noqa: F401 - the purpose of this process

            if os.fork() == 0:
                listening.close()
                answer(connection)
                os._exit(0)
            connection.close()
            _forget_the_dead()


def _forget_the_dead() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def answer(connection: socket.socket) -> None:
    """Run the requested program in another fork, and report its exit code."""
    text, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    length, _, text = text.partition(b"\n")
    while len(text) < int(length):
        text += connection.recv(1 << 20)
    request = json.loads(text)
    runner = os.fork()
    if runner == 0:
        connection.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        run(**request)
    for stream in streams:
        os.close(stream)
    _, status = os.waitpid(runner, 0)
    with contextlib.suppress(OSError):  # the client may have been killed
        connection.sendall(b"%d" % os.waitstatus_to_exitcode(status))


def run(argv: list[str], environment: dict[str, str], folder: str) -> None:
    """Run `python ARGV` with that environment in that directory, like a new process. Does not return."""
    import runpy
    import traceback
    import warnings

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    warnings.simplefilter("ignore" if environment.get("PYTHONWARNINGS") == "ignore" else "default")
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode, encoding="utf-8") for n, mode in enumerate("rww"))
    sys.path[0:1] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    code = 0
    try:
        if argv[0] == "-m":
            sys.path.insert(0, folder)
            sys.argv = argv[1:]
            runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, os.path.dirname(os.path.abspath(argv[0])))
            sys.argv = argv
            runpy.run_path(argv[0], run_name="__main__")
    except SystemExit as exit_error:
        code = exit_error.code if isinstance(exit_error.code, int) else int(exit_error.code is not None)
        if isinstance(exit_error.code, str):
            sys.stderr.write(f"{exit_error.code}\n")
    except BaseException:  # noqa: BLE001 - as Python itself does
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def ask(place: str, argv: list[str]) -> int:
    """Request the run of a program; returns its exit code."""
    request = {"argv": argv, "environment": dict(os.environ), "folder": os.getcwd()}
    text = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        sent_bytes = socket.send_fds(connection, [message := b"%d\n" % len(text) + text], [0, 1, 2])
        if rest := message[sent_bytes:]:  # sending nothing also fails if the program has already ended
            connection.sendall(rest)
        return int(connection.recv(16) or b"1")


if __name__ == "__main__":
    verb, place, *words = sys.argv[1:]
    if verb == "serve":
        serve(place)
    else:
        code = ask(place, words)
        if code < 0:
            os.kill(os.getpid(), -code)
        sys.exit(code)
