"""The bare command: the wizard."""

from __future__ import annotations

import argparse
import sys

from llmb_tui.cli.hangup import end_with_terminal
from llmb_tui.cli.output import say
from llmb_tui.errors import Trouble
from llmb_tui.services import Services
from llmb_tui.store.paths import Places


def wizard_verb(arguments: argparse.Namespace) -> int:  # noqa: ARG001  (every verb takes its arguments)
    """Open the wizard on the user's own places."""
    return show(Services(Places.of_user()))


def show(services: Services) -> int:
    """Run the screen until the user leaves it."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Trouble("The wizard needs a terminal.", fix="Use a verb: `llmb-tui --help` lists them.", exit_code=1)
    from llmb_tui.ui.app import LlmbApp

    end_with_terminal(sys.stdin.fileno())
    broken: list[Trouble] = []
    services.on_broken_file = services.on_broken_file or broken.append
    app = LlmbApp(services)
    app.run()
    services.close()
    for problem in broken:
        say(f"llmb-tui: passed over: {problem}")
    return app.return_code or 0
