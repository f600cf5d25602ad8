"""`StepParser`: extracts training steps, and the line that explains a failure, from the raw bytes of a log.

The bytes are searched as they arrive, not decoded and not split, because only one line in a hundred is a step and
splitting would cost more than everything else. `log_formats/` defines how each format writes a step.
"""

from __future__ import annotations

import re
from math import isfinite

from llmb_tui.catalog.recipe import LogFormatId
from llmb_tui.diagnosis.causes import Cause
from llmb_tui.diagnosis.rule import Diagnosis
from llmb_tui.watch.failure import LogCauses
from llmb_tui.watch.log_formats.record import LONGEST_RECORD
from llmb_tui.watch.log_formats.registry import LOG_FORMATS
from llmb_tui.watch.state import Statement, StatementKind, Step
from llmb_tui.watch.statements import STRONG, line_at, start_signs, with_statements

UNSEARCHED = 1 << 20
"""Number of bytes kept for the search for failures, and for statements in front of the words of a new start."""
# The end of the data is kept and searched again, because a record may be cut anywhere. Repeating the search is
# harmless.
_TAIL = 4 * LONGEST_RECORD

_COLOUR = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")

# Printed by our own batch script (`launch/direct/spec_of.py`).
_UNBOUND = re.compile(rb"task (\d{1,9}) is not bound to a NUMA node")
_LATE: tuple[StatementKind, ...] = ("network", "channel")
"""Kinds of statements that NCCL also makes after the first step."""


class StepParser:
    """Extracts the steps of one log file, in order, each once, however the bytes are cut into pieces.

    A step is returned only once: repeated and earlier steps are ignored. If a progress bar repaints a step, the last
    paint counts, so that step is held back as `pending` until a later step arrives.
    A further start of the training is detected if a step is repeated after later ones, or if words that only a start
    writes occur between two steps. The first step of a further start is marked, and all steps are returned anew from
    there.
    """

    def __init__(self, log_format: LogFormatId, *, counts_lines: bool = False) -> None:
        """`counts_lines`: whether causes have line numbers. Counting takes a quarter of the time of a usual log."""
        self._counts_lines = counts_lines
        self._records = LOG_FORMATS[log_format].records
        self._repaints = LOG_FORMATS[log_format].repaints
        self._text = b""
        self._base = 0  # offset of _text in the stream, colours not counted
        self._newest = -1
        self._whole = 0  # offset after the last line end
        self._step_end = 0  # offset after the first paint of the newest step
        self.pending: Step | None = None
        """Newest step as it was last painted, while it may still be repainted."""
        self._causes: LogCauses | None = None
        """Search of the lines since the newest step."""
        self._unsearched: list[bytes] = []
        """Complete lines since the newest step. The next step makes a search of them unnecessary."""
        self._lines = 0
        """Number of complete lines before `_unsearched`, if they are counted."""
        self.unbound: set[int] = set()
        """Ranks that could not be bound to a NUMA node; they report that before the first step."""
        self.complete = False
        """The last step was seen; all later lines are clean-up and are not searched."""
        self.statements: tuple[Statement, ...] = ()
        """Facts about the newest start that has made a step; before the first step, about the first start."""
        self._sign = 0
        """Strength of the words of a new start since the newest step."""
        self._gap: list[bytes] = []
        """Complete lines since the newest step, which may belong to a new start."""
        self._next: tuple[Statement, ...] = ()
        """Facts in those lines, once words of a new start were seen."""
        self._batch: float | None = None

    def feed(self, data: bytes) -> list[Step]:
        """Steps that `data` makes final."""
        self._text = _without_colours(self._text + data)
        if self._newest < 0:
            self.unbound.update(int(rank) for rank in _UNBOUND.findall(self._text))
        steps: list[Step] = []
        begin = max(0, self._whole - self._base)
        whole = self._text.rfind(b"\n") + 1
        whole = max(whole, self._text.rfind(b"\r", whole) + 1)
        signs = start_signs(self._text, begin, whole)
        newest: Step | None = None
        for end, record in self._records(self._text, begin):
            is_new_start = bool(signs or self._sign) and self._is_after_sign(record, self._base + end, signs)
            is_new_start = is_new_start or self._begins_again(record, self._base + end)
            if record.index > self._newest or is_new_start:
                step = self._accepted(record, begin, end, again=is_new_start)
                newest = step
                if not self._repaints:
                    steps.append(step)
                else:
                    steps += self.close()
                    self.pending = step
            elif self.pending and record.index == self.pending.index:
                self.pending = self._repainted(self.pending, record, end)
        start = max(begin, self._step_end - self._base)
        if newest:
            self._lines += sum(map(self._line_count, self._unsearched))
            self._causes, self._unsearched = None, []
            self.complete = newest.total is not None and newest.index + 1 >= newest.total
        self._lines += self._line_count(self._text, begin, whole if self.complete else start)
        if start < whole and not self.complete:
            self._unsearched.append(self._text[start:whole])
            if sum(map(len, self._unsearched)) > UNSEARCHED:
                self._search()
        if start < whole:
            self._note_gap(
                self._text[start:whole], max((strength for offset, strength in signs if offset >= start), default=0)
            )
        self._whole = self._base + max(begin, whole)
        excess = max(0, len(self._text) - _TAIL)
        self._text = self._text[excess:]
        self._base += excess
        return steps

    def _accepted(self, step: Step, begin: int, end: int, *, again: bool) -> Step:
        """Note the newest step, which ends at text[end]; add its line if a validity check may quote it."""
        if again or self._newest < 0:
            self._start(self._text[max(begin, self._step_end - self._base) : end])
        self._newest, self._step_end = step.index, self._base + end
        if self._sign or self._gap or self._next:
            self._sign, self._next, self._gap = 0, (), []
        loss = step.loss
        if (  # the first four are cheap, and false for most steps
            step.batch != self._batch
            or step.index + 1 == step.total
            or loss is None
            or not isfinite(loss)
            or (step.grad_norm is not None and not step.trained)
        ):
            self._batch = step.batch
            step = step._replace(line=line_at(self._text, end - 1))
        return step._replace(starts_again=True) if again else step

    def _repainted(self, pending: Step, step: Step, end: int) -> Step:
        """Step of a progress bar as it was last painted."""
        line = line_at(self._text, end - 1) if pending.line or not step.trained else ""
        return step._replace(line=line, starts_again=pending.starts_again)

    def _is_after_sign(self, step: Step, end: int, signs: list[tuple[int, int]]) -> bool:
        """Whether words of a new start are between the newest step and this one, which ends at `end`."""
        if self._newest < 0 or end <= self._step_end:
            return False
        first, last = self._step_end - self._base, end - self._base
        strength = max((strength for offset, strength in signs if first <= offset < last), default=0)
        strength = max(strength, self._sign)
        return strength == STRONG or (strength > 0 and step.index <= self._newest and not self._repaints)

    def _start(self, lines: bytes) -> None:
        """Take the facts stated since the newest step, up to the end of these lines, as those of a new start."""
        self.statements = with_statements(self._next, b"".join([*self._gap, lines]))

    def _note_gap(self, lines: bytes, sign: int) -> None:
        """Keep lines after the newest step, or their facts, for a start that may follow."""
        self._sign = max(self._sign, sign)
        if self._sign or self._newest < 0:
            self._next = with_statements(self._next, b"".join([*self._gap, lines]))
            self._gap = []
            if self._newest < 0:
                self.statements = self._next
        else:
            if any(statement.kind in _LATE for statement in self.statements):
                self.statements = with_statements(self.statements, lines, _LATE)
            self._gap.append(lines)
            while sum(map(len, self._gap)) > UNSEARCHED:
                self._gap.pop(0)

    def close(self) -> list[Step]:
        """Return the held-back step at the end of the log. An unfinished line is ignored: its numbers may be cut."""
        last, self.pending = self.pending, None
        return [last] if last else []

    def _begins_again(self, step: Step, end: int) -> bool:
        """Whether this step, which ends at `end`, is the first of a further start that writes into the same log.

        Usually one rank writes the lines. If a second one does so too, it is not two steps behind.
        """
        return end > self._step_end and step.index < self._newest - (0 if self._repaints else 1)

    @property
    def failure(self) -> Diagnosis | None:
        """Most likely cause since the newest step; None for a run that made a step after it."""
        return next((cause.diagnosis() for cause in self.causes), None)

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Causes that the lines since the newest step name, the most likely first."""
        self._search()
        return self._causes.causes() if self._causes else ()

    def _search(self) -> None:
        if not self._unsearched:
            return
        self._causes = self._causes or LogCauses()
        lines = b"".join(self._unsearched)
        self._causes.feed(lines, self._lines + 1)
        self._lines += self._line_count(lines)
        self._unsearched = []

    def _line_count(self, text: bytes, begin: int = 0, end: int | None = None) -> int:
        return text.count(b"\n", begin, end) if self._counts_lines else 0


def _without_colours(text: bytes) -> bytes:
    """Text without complete colour sequences; an unfinished one at the end stays until the rest arrives."""
    while b"\x1b" in text and (bare := _COLOUR.sub(b"", text)) != text:
        text = bare
    return text
