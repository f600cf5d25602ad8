"""The user at a plain terminal, or at none: their places, their answers."""

from __future__ import annotations

import sys
from getpass import getpass

from llmb_tui.cli.output import say
from llmb_tui.services import Services
from llmb_tui.store.paths import Places
from llmb_tui.text import clean


def user_services() -> Services:
    """The rooms, with the user's own places and their terminal to ask at."""
    services = Services(Places.of_user())
    services.on_broken_file = lambda problem: say(f"llmb-tui: passed over: {problem}")
    if has_terminal():
        services.prompter = TerminalPrompter()
    return services


def has_terminal() -> bool:
    """True when a question can be asked and its answer read."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str) -> bool:
    """Ask at the terminal; anything but yes is no."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


class TerminalPrompter:
    """Answers a connection's questions by asking at the terminal."""

    def accept_host_key(self, host: str, key_type: str, fingerprint: str) -> bool:
        """Show the fingerprint of an unknown host and ask."""
        return confirm(f"The host key of {host} is not known yet: {key_type} {fingerprint}. Is it the right one?")

    def answer(self, prompt: str, echo: bool) -> str | None:
        """Ask for a password, a passphrase or a code; None when the user gives none."""
        text = clean(prompt)
        if not echo:
            return getpass(text) or None
        print(text, end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().rstrip("\n") or None
