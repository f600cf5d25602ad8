"""`RecordReader`: joins the lines of a log that belong together, such as a traceback and its last words.

A record is a traceback with its last words; an exception of NCCL with its `Last error`; torchrun's account of the
first failure; or one line of anything else. Lines of several ranks may be mixed: each writer has its own record.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from llmb_tui.diagnosis.prefixes import Prefixed, split_prefix
from llmb_tui.language.text import count_in

_NAME = r"(?:[A-Za-z_]\w{0,80}\.){0,8}[A-Za-z_]\w{0,80}"
_EXCEPTION = re.compile(rf"{_NAME}(?::\s.*|:?\s*)$")
"""Last words of a traceback: classes have any name."""
_ERROR = re.compile(
    r"(?:[A-Za-z_]\w{0,80}\.){0,8}(?:[A-Z]|nccl[A-Z])\w{0,80}(?:Error|Exception)(?::\s.*|:?\s*)$|Last error:$"
)
"""Last words without a traceback."""
_FRAME = re.compile(r'\s+File "[^"]{1,400}", line \d{1,7}')
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
_TRACEBACK = "Traceback (most recent call last)"
_ROOT_CAUSE = "Root Cause (first observed failure):"
# Lines below the last words that belong to them, in the words of PyTorch, CUDA and NCCL.
_TAIL = re.compile(
    r"nccl\w{3,40}(?:Error)?: |Last error:|Search for `|CUDA kernel errors|For debugging consider|Compile with `TORCH"
    r"|Device-side assert|Exception raised from |During handling of the above |The above exception was "
)
# Lines that another program writes into the same stream.
_FOREIGN = re.compile(r"(?:srun|slurmstepd|pyxis|scancel): |error: \*\*\* |\S{1,255}:\d{1,8}:\d{1,8} \[\d{1,3}\] ")
_ORDINARY = re.compile(
    r"\[NeMo [ID] |\[NeMo W |(?:INFO|WARNING|DEBUG)[: ]|\[(?:INFO|WARNING)\]|Training epoch \d|iteration +\d+/ *\d"
)
"""Lines of a program that still works."""
_AGENT = re.compile(r"torch[./]distributed[./]elastic")

_BLOCK_FIELD = re.compile(r"^\s*(time|host|rank|exitcode)\s{1,20}: (\S{1,255})", re.MULTILINE)
_SRUN_NODE = re.compile(r"(?:srun|slurmstepd): error: (?P<node>\S{1,255}): tasks? (?P<task>\d{1,6})?")
_FAILED_NODE = re.compile(r"(?:[Nn]ode failure on|failed on node) (?P<node>[\w.-]{1,255})")
_NCCL_NODE = re.compile(r"(?P<node>[\w.-]{1,255}):\d{1,8}:\d{1,8} \[\d{1,3}\] ")
_RANK_IN_TEXT = re.compile(r"\[(?:[^\[\]]{0,80} )?Rank (\d{1,6})\]")

_MOST_LINES = 80
_MOST_OPEN = 512
_MOST_BLANKS = 2

Kind = Literal["line", "exception", "root cause"]


@dataclass(frozen=True, slots=True)
class Record:
    """Lines that belong together, without prefixes."""

    text: str
    line_number: int
    """Number of its first line, from 1 on."""
    kind: Kind = "line"
    source: str = ""
    rank: int | None = None
    node: str | None = None
    first_failure_at: str = ""
    """Time at which torchrun observed the first failure, as it is written."""


@dataclass(slots=True)
class _Open:
    """A record whose last line was not read yet."""

    prefixed: Prefixed
    line_number: int
    kind: Kind
    base: int
    """Indentation of the record."""
    lines: list[str] = field(default_factory=list)
    ends: bool = False
    """The last words were read."""
    blanks: int = 0

    def takes(self, text: str) -> bool:
        """Whether the next line of the same writer belongs to the record."""
        bare = text.strip()
        if len(self.lines) >= _MOST_LINES:
            return False
        if self.kind == "root cause":
            return not bare.startswith("=====")
        if not bare:
            self.blanks += 1
            return self.blanks <= _MOST_BLANKS
        if _is_box(bare):
            return not self.ends
        if self.ends:
            after_last_error = self.lines[-1].strip() == "Last error:"
            is_chained = bare.startswith(_TRACEBACK) and self.lines[-1].strip().startswith(_CHAIN)
            finds_words = not _ERROR.match(self.lines[-1].strip()) and bool(_ERROR.match(bare))
            return bool(_TAIL.match(bare)) or after_last_error or is_chained or finds_words
        return True

    def add(self, text: str) -> None:
        """Append a line that the record takes."""
        bare = text.strip()
        self.lines.append(text.rstrip())
        if self.kind == "root cause" or not bare or _is_box(bare):
            return
        if bare.startswith((_TRACEBACK, *_CHAIN)):
            self.ends = False
        elif _indent(text) <= self.base and not _FRAME.match(text):
            self.ends = True

    def record(self) -> Record:
        """The record as it was read so far."""
        text = "\n".join(self.lines)
        rank, node = self.prefixed.rank, self.prefixed.node
        at = ""
        if self.kind == "root cause":
            fields: dict[str, str] = {}
            for name, value in _BLOCK_FIELD.findall(text):
                fields.setdefault(name, value)
            named = count_in(fields.get("rank", ""))
            rank = rank if named is None else named
            host = fields.get("host", "")
            node = host if host not in ("", "localhost") else node
            at = "" if fields.get("exitcode") == "-15" else fields.get("time", "-")  # SIGTERM comes from outside
        return _placed(Record(text, self.line_number, self.kind, self.prefixed.source, rank, node, at))


class RecordReader:
    """Makes records of lines. Memory does not grow with the log."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._followers: set[str] = set()
        """Writers that list the failures which followed the first one."""
        self._newest: OrderedDict[str, int] = OrderedDict()
        """Line number of the newest exception of each writer."""
        self.caught: set[int] = set()
        """Line numbers of exceptions after which their writer continued to work."""

    def feed(self, line: str, number: int) -> Iterator[Record]:
        """Records that this clean line completes."""
        prefixed = split_prefix(line)
        text, source = prefixed.text, prefixed.source
        bare = text.strip()
        if bare and _FOREIGN.match(bare):
            yield _placed(Record(bare, number, "line", source, prefixed.rank, prefixed.node))
            return
        if source in self._followers and _ROOT_CAUSE not in bare and not bare.startswith("====="):
            return
        self._followers.discard(source)
        opened = self._open.get(source)
        if opened is not None and opened.takes(text):
            opened.add(text)
            return
        if opened is not None:
            yield self._close(source)
        if _ORDINARY.match(bare) and not _AGENT.search(bare) and source in self._newest:
            self.caught.add(self._newest.pop(source))
        if bare == "Failures:":
            self._followers.add(source)
        elif kind := _start(text):
            self._open[source] = begun = _Open(prefixed, number, kind, _indent(text))
            if _FRAME.match(text):
                begun.base = 0
            begun.add(text)
            if len(self._open) > _MOST_OPEN:
                yield self._close(next(iter(self._open)))
        elif bare:
            yield _placed(Record(bare, number, "line", source, prefixed.rank, prefixed.node))

    def unfinished(self) -> list[Record]:
        """Records that further lines may still extend."""
        return [opened.record() for opened in self._open.values()]

    def _close(self, source: str) -> Record:
        record = self._open.pop(source).record()
        if record.kind == "exception":
            self._newest[source] = record.line_number
            self._newest.move_to_end(source)
            if len(self._newest) > _MOST_OPEN:
                self._newest.popitem(last=False)
        return record


def last_words(record: Record) -> str:
    """The line of a record in which the program says why it ends; its last line if none does."""
    lines = [line.strip() for line in record.text.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line)]
    named = [line for line in lines if _EXCEPTION.match(line) and ":" in line]
    if record.kind == "line":
        return lines[-1] if lines else ""
    return (errors or named or lines or [""])[-1]


def _start(text: str) -> Kind | None:
    bare = text.strip()
    if _ROOT_CAUSE in bare:
        return "root cause"
    is_exception = _TRACEBACK in bare or _FRAME.match(text) or _ERROR.match(bare) or _is_box(bare)
    return "exception" if is_exception else None


def _placed(record: Record) -> Record:
    """The record with the rank and the node that its text names."""
    rank, node, text = record.rank, record.node, record.text
    if match := _SRUN_NODE.search(text):
        node = match["node"]
        rank = int(match["task"]) if match["task"] else rank
    elif match := _FAILED_NODE.search(text) or _NCCL_NODE.match(text):
        node = match["node"]
    if match := _RANK_IN_TEXT.search(text):
        rank = int(match[1]) if rank is None else rank
    if (rank, node) == (record.rank, record.node):
        return record
    return Record(text, record.line_number, record.kind, record.source, rank, node, record.first_failure_at)


def _is_box(bare: str) -> bool:
    """Whether a line belongs to a traceback that rich has drawn."""
    return bare.startswith(("│", "╭", "╰")) and bare.endswith(("│", "╮", "╯"))


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())
