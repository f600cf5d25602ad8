"""The bare command: the wizard, which ends with its terminal."""

from __future__ import annotations

import argparse
import gc
import os
import select
import signal
import sys
import threading

from llmb_tui.cli.output import print_status
from llmb_tui.cli.user import is_terminal, settings_of
from llmb_tui.errors import LlmbError
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.store.scratch import remove_scratch_on_signals


def wizard_verb(arguments: argparse.Namespace) -> int:
    """Open the wizard on the user's own places."""
    places = UserPaths.of_user()
    return show(Services(places, settings_of(places, arguments), read_only=arguments.read_only))


def show(services: Services) -> int:
    """Run the screen until the user leaves it."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise LlmbError("The wizard needs a terminal.", fix="Use a verb: `llmb-tui --help` lists them.", exit_code=1)
    # Textual paints with its next frame: of 60 a second a key waits for as long as it is worked on.
    os.environ.setdefault("TEXTUAL_FPS", "240")
    gc.disable()  # what the start makes stays: until it is over there is nothing to collect
    from llmb_tui.ui.app import LlmbApp

    end_with_terminal(sys.stdin.fileno())
    broken: list[LlmbError] = []
    services.on_broken_file = services.on_broken_file or broken.append
    app = LlmbApp(services)
    app.run()
    services.clusters.close()
    for problem in broken:
        print_status(f"llmb-tui: passed over: {problem}")
    return app.return_code or 0


def end_with_terminal(descriptor: int) -> None:
    """From now on a hang-up of this terminal ends the process as SIGHUP does. Runs and installs on clusters go on.

    Also where nobody sends the signal: a terminal's hang-up is signalled to the leader of its session, which may be a
    program that only waits for us, such as `make`, and Textual then reads the end of its input again and again. Also
    below `nohup`, say of a script that has this program in it: what is only a screen cannot outlive its terminal.
    """
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    remove_scratch_on_signals()
    threading.Thread(target=_wait_for_hangup, args=(descriptor,), name="hangup", daemon=True).start()


def _wait_for_hangup(descriptor: int) -> None:
    terminal = select.poll()
    terminal.register(descriptor, 0)  # hang-ups are always reported
    if any(event & select.POLLHUP for _, event in terminal.poll()):
        os.kill(os.getpid(), signal.SIGHUP)
