r"""Conversion of argument lists to command lines: the only place where text is quoted for a shell.

sshd passes a command line to the user's login shell, which may be bash, zsh, csh or fish. Their quoting differs:
csh expands `!` inside single quotes and ends a line at a newline there, fish reads `\\` inside them, zsh expands a
leading `=`. Arguments are therefore quoted in a way that all of these shells read alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line, is_visible

_PLAIN = re.compile(r"[A-Za-z0-9_./:,+-]+")
_OUTSIDE_QUOTES = re.compile(r"(['\\!])")
_UNSENDABLE = re.compile("[\0\ud800-\udfff]")
_ENCODED = re.compile(rb"[^A-Za-z0-9_./:,+ -]")


def shell_join(argv: Sequence[str]) -> str:
    """Quote arguments as one command line for sh and its relatives.

    Raises LlmbError for an argument with a NUL or a lone surrogate, which a command cannot receive.
    """
    return " ".join(_quote(argument) for argument in argv)


def command_line(argv: Sequence[str]) -> str:
    """Make a command line for any login shell that runs the program `argv`, not an alias or function of that name.

    Raises LlmbError for an argument with a NUL or a lone surrogate.
    """
    command = "exec " + shell_join(argv)
    if "\n" not in command:
        return command
    # csh cannot receive a newline in an argument: the whole command is sent as octal escapes.
    octal = _ENCODED.sub(lambda match: b"\\%03o" % match[0][0], command.encode())
    return f"""exec sh -c 'eval "$(printf "{octal.decode()}")"'"""


def nul_joined(argv: Sequence[str]) -> bytes:
    """Join arguments by NUL bytes, for a program that runs them without a shell.

    Raises LlmbError for an argument with a NUL or a lone surrogate.
    """
    return "\0".join(map(_sendable, argv)).encode()


def one_line(value: str, what: str) -> str:
    """Return the value if it is printable text on one line.

    Raises LlmbError (exit code 1) for a newline, NUL, or any other invisible character; `what` names the value there.
    """
    if is_visible(value):
        return value
    raise LlmbError(
        f"{what} contains a character that does not print: {_excerpt(value)}",
        "In a script or a command it could split one line into two.",
        "Type the value again, as plain text on one line.",
        exit_code=1,
    )


def _sendable(argument: str) -> str:
    if _UNSENDABLE.search(argument):
        raise LlmbError(
            f"A command cannot receive this argument: {_excerpt(argument)}",
            "The argument contains a NUL or text that is not Unicode.",
            "Type it again, as plain text.",
            exit_code=1,
        )
    return argument


def _quote(argument: str) -> str:
    if _PLAIN.fullmatch(_sendable(argument)):
        return argument
    if not argument:
        return "''"
    parts = _OUTSIDE_QUOTES.split(argument)
    return "".join(f"\\{part}" if _OUTSIDE_QUOTES.fullmatch(part) else f"'{part}'" for part in parts if part)


def _excerpt(value: str) -> str:
    return clean_line(value.encode(errors="replace").decode())
