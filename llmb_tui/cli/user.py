"""The user at a plain terminal, or at none: their places, their answers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from llmb_tui.cli.output import say
from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean
from llmb_tui.store.paths import Places
from llmb_tui.store.settings import Settings, load_settings

if TYPE_CHECKING:
    from llmb_tui.services import Services


def user_services(arguments: argparse.Namespace) -> Services:
    """The rooms, with the user's own places and settings. Raises `SettingProblem`."""
    from llmb_tui.services import Services

    places = Places.of_user()
    services = Services(places, settings_of(places, arguments), read_only=arguments.read_only)
    services.on_broken_file = lambda problem: say(f"llmb-tui: passed over: {problem}")
    return services


def settings_of(places: Places, arguments: argparse.Namespace) -> Settings:
    """The settings in force for one call of the program. Raises `SettingProblem`."""
    return load_settings(places.settings, flags_of(arguments))


def flags_of(arguments: argparse.Namespace) -> list[str]:
    """What `--set` said, before the verb and after it."""
    return [*arguments.set, *getattr(arguments, "set_for_verb", ())]


def require_changes(services: Services, cluster: str) -> None:
    """Raise `ObserverMode`, before anybody is asked anything, where a cluster is only looked at."""
    from llmb_tui.cluster.failures import ObserverMode

    profile = services.clusters.profile(cluster)
    if services.policy.observes(profile):
        raise ObserverMode(profile)


def has_terminal() -> bool:
    """True when a question can be asked and its answer read."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def is_terminal(stream: TextIO | None) -> bool:
    """True for one that a person sits at; one that was closed is None."""
    return stream is not None and not stream.closed and stream.isatty()


def read_line() -> str:
    """A line of stdin; empty at its end, and where it is closed. Raises Trouble (exit code 1) for what is no text."""
    with _text_only():
        return sys.stdin.readline() if sys.stdin is not None else ""


def read_hidden(prompt: str) -> str:
    """A line of the terminal that is not shown; empty where it ends there. Raises as `read_line` does."""
    from getpass import getpass

    with _text_only():
        try:
            return getpass(prompt)
        except EOFError:
            say("")
            return ""


@contextmanager
def _text_only() -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        what = "What was typed or sent is no text."
        raise Trouble(what, "It holds bytes that are no UTF-8.", "Type or send it again.", exit_code=1) from error


def terminal_prompter() -> TerminalPrompter | None:
    """Who answers what connecting asks; None where there is nobody."""
    return TerminalPrompter() if has_terminal() else None


def confirm(question: str) -> bool:
    """Ask at the terminal; anything but yes is no."""
    say(f"{question} [y/N] ", end="")
    return read_line().strip().lower() in {"y", "yes"}


def agree(question: str, nothing: str, fix: str) -> None:
    """Ask at the terminal. Raises Trouble (exit code 1) with `nothing` where the answer is no, or nobody can answer."""
    if not has_terminal():
        raise Trouble(nothing, "There is no terminal to ask at.", fix, exit_code=1)
    if not confirm(question):
        raise Trouble(nothing, exit_code=1)


class TerminalPrompter:
    """Answers a connection's questions by asking at the terminal."""

    def accept_host_key(self, host: str, key_type: str, fingerprint: str, note: str = "") -> bool:
        """Show the fingerprint of an unknown host and ask."""
        words = f"The host key of {host} is not known yet: {key_type} {fingerprint}. {note}"
        return confirm(f"{words.rstrip()} Is it the right one?")

    def answer(self, prompt: str, echo: bool) -> str | None:
        """Ask for a password, a passphrase or a code; None when the user gives none."""
        text = clean(prompt)
        if not echo:
            return read_hidden(text) or None
        say(text, end="")
        return read_line().rstrip("\n") or None
