r"""Argument lists to command lines: the one place where text meets a shell.

sshd hands a command line to the user's login shell, which may be bash, zsh, csh or fish. They agree on
less than they seem to: csh expands `!` inside single quotes and ends a line at a newline there, fish reads
`\\` inside them, zsh expands a leading `=`. So an argument is quoted in the way that all of them read alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean_line, is_seen

_PLAIN = re.compile(r"[A-Za-z0-9_./:,+-]+")
_OUTSIDE_QUOTES = re.compile(r"(['\\!])")
_UNSENDABLE = re.compile("[\0\ud800-\udfff]")
_ENCODED = re.compile(rb"[^A-Za-z0-9_./:,+ -]")


def shell_join(argv: Sequence[str]) -> str:
    """The arguments as words of one shell command, quoted for sh and every shell like it.

    Raises Trouble for an argument that no command can be given: one with a NUL or a lone surrogate.
    """
    return " ".join(_quote(argument) for argument in argv)


def command_line(argv: Sequence[str]) -> str:
    """What to send to a login shell so that it runs `argv`, and not an alias or a function of that name.

    Raises Trouble for an argument with a NUL or a lone surrogate.
    """
    command = "exec " + shell_join(argv)
    if "\n" not in command:
        return command
    # csh cannot be given a newline in an argument, so the whole command travels as octal escapes.
    octal = _ENCODED.sub(lambda match: b"\\%03o" % match[0][0], command.encode())
    return f"""exec sh -c 'eval "$(printf "{octal.decode()}")"'"""


def nul_joined(argv: Sequence[str]) -> bytes:
    """The arguments as bytes with a NUL between them, for what runs them without a shell.

    Raises Trouble for an argument with a NUL or a lone surrogate.
    """
    return "\0".join(map(_sendable, argv)).encode()


def one_line(value: str, what: str) -> str:
    """The value itself, if it is printable text on one line.

    Raises Trouble (exit code 1) for a newline, NUL, or any other character that is not seen;
    `what` names the value in its text.
    """
    if is_seen(value):
        return value
    raise Trouble(
        f"{what} holds a character that does not print: {_excerpt(value)}",
        "It goes into a script or a command, where one line could become two.",
        "Type it again, as plain text on one line.",
        exit_code=1,
    )


def _sendable(argument: str) -> str:
    if _UNSENDABLE.search(argument):
        raise Trouble(
            f"A command cannot be given this argument: {_excerpt(argument)}",
            "It holds a NUL, or text that is no Unicode.",
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
