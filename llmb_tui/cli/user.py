"""The user at a plain terminal, or at none: their places, their answers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from llmb_tui.cli.output import print_status
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean
from llmb_tui.store.paths import UserPaths
from llmb_tui.store.settings import Settings, load_settings

if TYPE_CHECKING:
    from llmb_tui.services import Services


def user_services(arguments: argparse.Namespace) -> Services:
    """The rooms, with the user's own places and settings. Raises `SettingError`."""
    from llmb_tui.services import Services

    places = UserPaths.of_user()
    services = Services(places, settings_of(places, arguments), read_only=arguments.read_only)
    services.on_broken_file = lambda problem: print_status(f"llmb-tui: passed over: {problem}")
    return services


def settings_of(places: UserPaths, arguments: argparse.Namespace) -> Settings:
    """The settings in force for one call of the program. Raises `SettingError`."""
    return load_settings(places.settings, flags_of(arguments))


def flags_of(arguments: argparse.Namespace) -> list[str]:
    """What `--set` said, before the verb and after it."""
    return [*arguments.set, *getattr(arguments, "set_for_verb", ())]


def require_changes(services: Services, cluster: str) -> None:
    """Raise `ReadOnlyError`, before anybody is asked anything, where a cluster is only looked at."""
    from llmb_tui.cluster.failures import ReadOnlyError

    profile = services.clusters.profile(cluster)
    if services.policy.is_read_only(profile):
        raise ReadOnlyError(profile)


def has_terminal() -> bool:
    """True when a question can be asked and its answer read."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def is_terminal(stream: TextIO | None) -> bool:
    """True for one that a person sits at; one that was closed is None."""
    return stream is not None and not stream.closed and stream.isatty()


def read_line() -> str:
    """A line of stdin; empty at its end, and where it is closed. Raises LlmbError (exit code 1) for what is no text."""
    with _text_only():
        return sys.stdin.readline() if sys.stdin is not None else ""


def read_hidden(prompt: str) -> str:
    """A line of the terminal that is not shown; empty where it ends there. Raises as `read_line` does."""
    from getpass import getpass

    with _text_only():
        try:
            return getpass(prompt)
        except EOFError:
            print_status("")
            return ""


@contextmanager
def _text_only() -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        what = "What was typed or sent is no text."
        raise LlmbError(what, "It holds bytes that are no UTF-8.", "Type or send it again.", exit_code=1) from error


def terminal_prompter() -> TerminalPrompter | None:
    """Who answers what connecting asks; None where there is nobody."""
    return TerminalPrompter() if has_terminal() else None


def confirm(question: str) -> bool:
    """Ask at the terminal; anything but yes is no."""
    print_status(f"{question} [y/N] ", end="")
    return read_line().strip().lower() in {"y", "yes"}


def agree(question: str, nothing: str, fix: str) -> None:
    """Ask at the terminal. Raises LlmbError (exit code 1) with `nothing` if the answer is no or impossible."""
    if not has_terminal():
        raise LlmbError(nothing, "There is no terminal to ask at.", fix, exit_code=1)
    if not confirm(question):
        raise LlmbError(nothing, exit_code=1)


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
        print_status(text, end="")
        return read_line().rstrip("\n") or None
