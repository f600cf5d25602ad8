"""`end_with_terminal`: closing the terminal ends the program, also where nobody sends it the signal for that.

A terminal's hang-up is signalled to the leader of its session, which may be a program that only waits for us, such as
`make`. Textual then reads the end of its input again and again, and waits for ever to write.
"""

from __future__ import annotations

import os
import select
import signal
import threading


def end_with_terminal(descriptor: int) -> None:
    """From now on a hang-up of this terminal ends the process as SIGHUP does. Runs and installs on clusters go on."""
    threading.Thread(target=_wait, args=(descriptor,), name="hangup", daemon=True).start()


def _wait(descriptor: int) -> None:
    terminal = select.poll()
    terminal.register(descriptor, 0)  # hang-ups are always reported
    if any(event & select.POLLHUP for _, event in terminal.poll()):
        os.kill(os.getpid(), signal.SIGHUP)
