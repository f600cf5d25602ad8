"""The bare command: the wizard, which ends when its terminal closes."""

from __future__ import annotations

import argparse
import gc
import os
import select
import signal
import sys
import threading

from llmb_tui.cli.output import print_status
from llmb_tui.cli.user import is_terminal, settings_from_flags
from llmb_tui.errors import LlmbError
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.store.scratch import remove_scratch_on_signals


def wizard_verb(arguments: argparse.Namespace) -> int:
    """Open the wizard with the user's state and configuration."""
    paths = UserPaths.of_user()
    return run_screen(Services(paths, settings_from_flags(paths, arguments), read_only=arguments.read_only))


def run_screen(services: Services) -> int:
    """Run the screen until the user leaves it."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise LlmbError("The wizard needs a terminal.", fix="Use a verb: `llmb-tui --help` lists them.", exit_code=1)
    # Textual paints at its next frame: at 60 frames a second, a key would wait longer for it than for its handling.
    os.environ.setdefault("TEXTUAL_FPS", "240")
    gc.disable()  # objects of the start-up are permanent, so collecting before it ends only takes time
    from llmb_tui.ui.app import LlmbApp

    end_with_terminal(sys.stdin.fileno())
    broken: list[LlmbError] = []
    services.on_broken_file = services.on_broken_file or broken.append
    app = LlmbApp(services)
    app.run()
    services.clusters.close()
    for problem in broken:
        print_status(f"llmb-tui: ignored: {problem}")
    return app.return_code or 0


def end_with_terminal(descriptor: int) -> None:
    """End the process, as SIGHUP does, when this terminal hangs up. Runs and installs on clusters continue.

    The kernel signals only the leader of the terminal's session, which may be a program such as `make` that waits for
    this process; Textual would then read the end of its input forever. `nohup` is overridden, for example in a script
    that calls this program, because a screen cannot outlive its terminal.
    """
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    remove_scratch_on_signals()
    threading.Thread(target=_wait_for_hangup, args=(descriptor,), name="hangup", daemon=True).start()


def _wait_for_hangup(descriptor: int) -> None:
    terminal = select.poll()
    terminal.register(descriptor, 0)  # hang-ups are always reported
    if any(event & select.POLLHUP for _, event in terminal.poll()):
        os.kill(os.getpid(), signal.SIGHUP)
