"""Output of all verbs: the answer, JSON or plain, goes to stdout, everything else to stderr. No other module prints."""

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

_FIX = "Send the output to a writable file or a terminal."


class OutputError(LlmbError):
    """The answer cannot be written."""


def print_json(document: object) -> None:
    """Print a JSON document on one line."""
    _write(sys.stdout, json_line(document))


def json_line(document: object) -> str:
    """JSON text of a document in stdout's encoding, with invisible characters escaped.

    A number that is not finite becomes null, because JSON cannot express it.
    """
    ascii_only = not _is_unicode(sys.stdout)
    try:
        text = json.dumps(document, ensure_ascii=ascii_only, allow_nan=False)
    except ValueError:
        text = json.dumps(finite(document), ensure_ascii=ascii_only, allow_nan=False)
    return escaped_json(text) + "\n"


def print_streamed(line: str) -> None:
    """Print a line of a stream, with its line end. Raises BrokenPipeError if the reader has closed stdout."""
    if not _write(sys.stdout, line):
        raise BrokenPipeError


def print_status(text: str, end: str = "\n") -> None:
    """Print progress or a remark to stderr; never part of a verb's answer."""
    with contextlib.suppress(OutputError):  # a user who closes stderr wants none
        _write(sys.stderr, clean(text) + end)


def print_outcome(arguments: Namespace, document: object, message: str) -> None:
    """Print the outcome of a verb without an answer: a document with `--json`, else a message to stderr."""
    if arguments.json:
        print_json(document)
    else:
        print_status(message)


def print_line(text: str, end: str = "\n") -> None:
    """Print one or more lines of a verb's answer, which may contain remote text."""
    _write(sys.stdout, clean(text) + end)


def write(answer: Answer, arguments: Namespace) -> None:
    """Print an answer: as JSON with `--json`, else in the format of `--format`, else as rows of text.

    CSV has no place for remarks: warnings and refusals go to stderr.
    """
    if arguments.json:
        print_json(answer.make_document())
    elif (output_format := getattr(arguments, "format", "table")) == "csv":
        from llmb_tui.answers.blocks import remarks
        from llmb_tui.answers.writers.csv import csv

        print_line(csv(answer.make_table()), end="")
        for remark in remarks(answer.make_blocks()):
            if remark.label.tone in ("warning", "bad"):
                print_status(f"{remark.label.word}: {remark.text}")
    elif output_format == "markdown":
        from llmb_tui.answers.writers.markdown import blocks_markdown

        print_line(blocks_markdown(answer.make_blocks()))
    else:
        from llmb_tui.answers.writers.rows import rows

        print_line("\n".join(row.text for row in rows(answer.make_blocks())))


def print_block(block: Block) -> None:
    """Print the subject of a question to stderr, before the question; never part of a verb's answer."""
    from llmb_tui.answers.writers.rows import rows

    print_status("\n".join(row.text for row in rows([block])))


def abandon(stream: TextIO) -> None:
    """Redirect a stream that accepts no more to the null device, so that Python does not complain about it at exit."""
    with contextlib.suppress(OSError, ValueError):  # the stream is not a file, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _write(stream: TextIO | None, text: str) -> bool:
    """Return False if the reader has closed the stream. Raises OutputError if the stream rejects the text."""
    if stream is None:  # Python's value for a stream that was closed at the start
        raise OutputError("The answer could not be written.", "stdout is closed.", _FIX)
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
        raise OutputError("The answer could not be written.", f"{why.rstrip('.')}.", _FIX) from error
    return True


def _is_unicode(stream: TextIO | None) -> bool:
    return stream is not None and (stream.encoding or "utf-8").lower().startswith("utf")
