"""The one door for text: a verb's answer, JSON or plain, to stdout, all else to stderr. Nothing prints beside it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING, TextIO

from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean, escaped_json, finite

if TYPE_CHECKING:
    from llmb_tui.answers.answer import Answer
    from llmb_tui.answers.blocks import Block

_ROOM = "Send it to a file or a terminal that takes it."


class OutputError(LlmbError):
    """The answer cannot be written."""


def print_json(document: object) -> None:
    """One JSON document on one line."""
    _write(sys.stdout, json_line(document))


def json_line(document: object) -> str:
    """One JSON document as stdout takes it; characters that are not seen are escaped.

    JSON has no word for a number that is not finite: it is null.
    """
    ascii_only = not _is_unicode(sys.stdout)
    try:
        text = json.dumps(document, ensure_ascii=ascii_only, allow_nan=False)
    except ValueError:
        text = json.dumps(finite(document), ensure_ascii=ascii_only, allow_nan=False)
    return escaped_json(text) + "\n"


def print_streamed(line: str) -> None:
    """A line, with its end, of what goes on for as long as somebody reads: the verb ends when nobody does."""
    if not _write(sys.stdout, line):
        raise BrokenPipeError


def print_status(text: str, end: str = "\n") -> None:
    """Progress and remarks, for a person; never part of a verb's answer."""
    with contextlib.suppress(OutputError):  # who closed it wants none
        _write(sys.stderr, clean(text) + end)


def answer(arguments: Namespace, document: object, words: str) -> None:
    """What a verb did that has nothing else to print: with `--json` a document, else said to a person."""
    if arguments.json:
        print_json(document)
    else:
        print_status(words)


def print_line(text: str, end: str = "\n") -> None:
    """One line of a verb's answer, or several, at once; it may hold remote text."""
    _write(sys.stdout, clean(text) + end)


def write(answer: Answer, arguments: Namespace) -> None:
    """Print an answer: as JSON with `--json`, else as `--format` says, else as rows of text.

    CSV has no remarks: those that warn or refuse go to stderr.
    """
    if arguments.json:
        print_json(answer.make_document())
    elif (form := getattr(arguments, "format", "table")) == "csv":
        from llmb_tui.answers.blocks import remarks
        from llmb_tui.answers.writers.csv import csv

        print_line(csv(answer.make_table()), end="")
        for remark in remarks(answer.make_blocks()):
            if remark.label.tone in ("warning", "bad"):
                print_status(f"{remark.label.word}: {remark.text}")
    elif form == "markdown":
        from llmb_tui.answers.writers.markdown import blocks_markdown

        print_line(blocks_markdown(answer.make_blocks()))
    else:
        from llmb_tui.answers.writers.rows import rows

        print_line("\n".join(row.text for row in rows(answer.make_blocks())))


def show(block: Block) -> None:
    """Show a person what a question is about, before it is asked; never part of a verb's answer."""
    from llmb_tui.answers.writers.rows import rows

    print_status("\n".join(row.text for row in rows([block])))


def abandon(stream: TextIO) -> None:
    """Whoever read it has gone, or it takes no more: Python must not complain about that at its exit either."""
    with contextlib.suppress(OSError, ValueError):  # it is no file, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _write(stream: TextIO | None, text: str) -> bool:
    """Return False if the reader has closed the stream. Raises OutputError if the stream rejects the text."""
    if stream is None:  # Python's own way to say that it was closed from the start
        raise OutputError("The answer could not be written.", "It has nowhere to go: stdout is closed.", _ROOM)
    try:
        encoding = stream.encoding or "utf-8"
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except BrokenPipeError:  # `| head`
        abandon(stream)
        return False
    except (OSError, ValueError) as error:
        abandon(stream)
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise OutputError("The answer could not be written.", f"{why.rstrip('.')}.", _ROOM) from error
    return True


def _is_unicode(stream: TextIO | None) -> bool:
    return stream is not None and (stream.encoding or "utf-8").lower().startswith("utf")
