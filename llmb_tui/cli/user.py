"""The user of the command line: their directories and settings, and questions at a terminal."""

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

NO_TERMINAL = "Without a terminal the program cannot ask for a confirmation."


def user_services(arguments: argparse.Namespace) -> Services:
    """Services with the user's directories and settings. Raises `SettingError`."""
    from llmb_tui.services import Services

    paths = UserPaths.of_user()
    services = Services(paths, settings_from_flags(paths, arguments), read_only=arguments.read_only)
    services.on_broken_file = lambda problem: print_status(f"llmb-tui: ignored: {problem}")
    return services


def settings_from_flags(paths: UserPaths, arguments: argparse.Namespace) -> Settings:
    """Settings in force for one call of the program. Raises `SettingError`."""
    return load_settings(paths.settings, setting_flags(arguments))


def setting_flags(arguments: argparse.Namespace) -> list[str]:
    """Values of `--set`, before the verb and after it."""
    return [*arguments.set, *getattr(arguments, "set_for_verb", ())]


def require_changes(services: Services, cluster: str) -> None:
    """Raise `ReadOnlyError` for a read-only cluster, before the user is asked anything."""
    from llmb_tui.cluster.failures import ReadOnlyError

    profile = services.clusters.profile(cluster)
    if services.policy.is_read_only(profile):
        raise ReadOnlyError(profile)


def has_terminal() -> bool:
    """Whether the program can ask a question and read the answer."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is an open terminal; a stream that was closed at the start is None."""
    return stream is not None and not stream.closed and stream.isatty()


def read_line() -> str:
    """Line of stdin; empty at its end or if it is closed. Raises LlmbError (exit code 1) for bytes other than UTF-8."""
    with _text_only():
        return sys.stdin.readline() if sys.stdin is not None else ""


def read_hidden(prompt: str) -> str:
    """Line that the user types without echo; empty at the end of input. Raises like `read_line`."""
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
        what = "The input is not text."
        raise LlmbError(what, "It contains bytes that are not UTF-8.", "Enter it again.", exit_code=1) from error


def terminal_prompter() -> TerminalPrompter | None:
    """Prompter for a connection's questions; None without a terminal."""
    return TerminalPrompter() if has_terminal() else None


def confirm(question: str) -> bool:
    """Ask a question at the terminal. Any answer except yes means no."""
    print_status(f"{question} [y/N] ", end="")
    return read_line().strip().lower() in {"y", "yes"}


def require_confirmation(question: str, refusal: str, fix: str) -> None:
    """Ask at the terminal. Raises LlmbError (exit code 1) with `refusal` if the answer is no or impossible."""
    if not has_terminal():
        raise LlmbError(refusal, NO_TERMINAL, fix, exit_code=1)
    if not confirm(question):
        raise LlmbError(refusal, exit_code=1)


class TerminalPrompter:
    """Answers a connection's questions by asking at the terminal."""

    def accept_host_key(self, host: str, key_type: str, fingerprint: str, note: str = "") -> bool:
        """Show the fingerprint of an unknown host and ask."""
        text = f"The host key of {host} is not known yet: {key_type} {fingerprint}. {note}"
        return confirm(f"{text.rstrip()} Trust it?")

    def answer(self, prompt: str, echo: bool) -> str | None:
        """Ask for a password, a passphrase or a code.

        None at the end of input, and if the user types nothing without echo. With echo, Enter alone is an answer, for
        which some servers wait.
        """
        text = clean(prompt)
        if not echo:
            return read_hidden(text) or None
        print_status(text, end="")
        line = read_line()
        return line.rstrip("\n") if line else None
