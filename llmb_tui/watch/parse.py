"""`StepParser`: raw log bytes → training steps, and the line that says why the run failed.

The bytes are searched as they come, undecoded and unsplit: of a log only one line in a hundred is a
step, and splitting costs more than everything else. Three formats are known: NeMo 2's progress line and
Megatron-Bridge's iteration line (`nemo2`), and the tqdm bar of the Hydra recipes (`hydra`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import inf, isfinite
from typing import Any

from llmb_tui.catalog.recipe import LogFormat
from llmb_tui.diagnosis.rule import Diagnosis
from llmb_tui.watch.failure import worst
from llmb_tui.watch.state import (
    LONGEST_STEP_S,
    MOST_STEPS,
    MOST_TFLOPS,
    SHORTEST_STEP_S,
    Statement,
    StatementKind,
    Step,
)
from llmb_tui.watch.statements import STRONG, line_at, start_signs, with_statements

# Longest record that is read as a step; they have some 300 bytes.
_RECORD = 2000
# So much is kept to be searched for failures, and for what lines state that stand before the words of a new start.
_UNSEARCHED = 1 << 20
# The end of what was fed is kept, for a record may be cut anywhere, and looked at again, which changes nothing.
_TAIL = 4 * _RECORD

_COLOUR = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")

_NEMO = re.compile(rb"Training epoch (\d+), iteration (\d{1,15})/(\d{1,15}) \| ([^\r\n]{0,%d})[\r\n]" % _RECORD)
# The same where NeMo's versions agree on the order: most lines by far. What is no such line, `_NEMO` reads.
_USUAL = re.compile(
    rb"Training epoch 0, iteration (D{1,15})/(D{1,15}) \| lr: N \| global_batch_size: (D{1,15}) \| global_step: N"
    rb"(?: \| (?:peak_memory_usage|max_memory_reserved): (D{1,25}))?"
    rb"(?: \| (?:memory_allocated: (D{1,25})|max_memory_allocated: N))?"
    rb" \| reduced_train_loss: (N) \| train_step_timing in s: (N)(?: \| TFLOPS_per_GPU: (N))?"
    rb"(?: \| consumed_samples: (D{1,25}(?:\.D{1,5})?))?[\r\n]".replace(b"D", b"[0-9]").replace(
        b"N", b"[0-9.e+-]{1,25}"
    )
)
_USUAL_HEAD = len(b"Training epoch 0,")
_BRIDGE = re.compile(rb"\] iteration +(\d{1,15})/ *(\d{1,15}) \| ([^\r\n]{0,%d})[\r\n]" % _RECORD)
_BRIDGE_TFLOPS = re.compile(rb"(?<![\d.])(\d+(?:\.\d+)?) ?(?:MODEL_)?TFLOP/s/GPU")
# What our own batch script's task says (`launch/direct/spec_of.py`).
_UNBOUND = re.compile(rb"task (\d{1,9}) is not bound to a NUMA node")
_TQDM_COUNT = re.compile(rb"(?<!\d)(\d{1,15})/(\d{1,15}|\?) $")

# A step's fields by the names that NeMo's versions give them. Which ones a line has varies, and so does their order.
_FIELDS = {
    b"global_step": "global_step",
    b"train_step_timing in s": "step_time_s",
    b"reduced_train_loss": "loss",
    b"consumed_samples": "consumed_samples",
    b"peak_memory_usage": "memory_peak_bytes",
    b"max_memory_reserved": "memory_peak_bytes",
    b"memory_allocated": "memory_allocated_bytes",
    b"TFLOPS_per_GPU": "tflops_per_gpu",
    b"tflops_per_sec_per_gpu": "tflops_per_gpu",
    b"global_batch_size": "batch",
    b"grad_norm": "grad_norm",
}
_POSSIBLE = {
    "global_step": (0.0, MOST_STEPS),
    "step_time_s": (SHORTEST_STEP_S, LONGEST_STEP_S),
    "tflops_per_gpu": (0.0, MOST_TFLOPS),
}
_BRIDGE_FIELDS = {
    b"elapsed time per iteration (ms)": "step_time_s",
    b"lm loss": "loss",
    b"consumed samples": "consumed_samples",
    b"throughput per GPU (TFLOP/s/GPU)": "tflops_per_gpu",
    b"global batch size": "batch",
    b"loss scale": "loss_scale",
    b"grad norm": "grad_norm",
    b"number of skipped iterations": "skipped",
    b"number of nan iterations": "not_a_number",
}
_MAY_BE_NAN = ("loss", "grad_norm")
_LATE: tuple[StatementKind, ...] = ("network", "channel")
"""What NCCL also states after the first step, if it states anything."""


class StepParser:
    """One log file → its steps, in order, each once, however the bytes are cut into pieces.

    A step that was given is not given again: repeated and earlier ones are passed over. Of a step that a
    bar repaints the last paint counts, so it is held back as `pending` until a later step is seen.
    The training was started again if a step comes once more after later ones, or if words that only a start writes
    come between two steps. The first step of a further start says so, and all steps are given anew from there.
    """

    def __init__(self, log_format: LogFormat) -> None:
        self._records = _tqdm_frames if log_format == "hydra" else _progress_lines
        self._repaints = log_format == "hydra"
        self._text = b""
        self._base = 0  # offset of _text in the stream, colours not counted
        self._newest = -1
        self._whole = 0  # offset after the last line end
        self._step_end = 0  # offset after the first paint of the newest step
        self.pending: Step | None = None
        """The newest step as it was last painted, while it may still be painted again."""
        self._failure: Diagnosis | None = None
        self._unsearched: list[bytes] = []
        """Whole lines since the newest step. The next step makes it needless to search them."""
        self.unbound: set[int] = set()
        """Ranks that could not be bound to a NUMA node, which they say before the first step."""
        self.complete = False
        """The last step was seen; what comes after it is clean-up, whatever it looks like."""
        self.statements: tuple[Statement, ...] = ()
        """Facts about the newest start that has made a step; before the first step, about the first start."""
        self._sign = 0
        """Strength of the words of a new start since the newest step."""
        self._gap: list[bytes] = []
        """Whole lines since the newest step, in case they belong to a new start."""
        self._next: tuple[Statement, ...] = ()
        """Facts that those lines state, once there are words of a new start."""
        self._batch: float | None = None

    def feed(self, data: bytes) -> list[Step]:
        """The steps that `data` makes final."""
        self._text = _without_colours(self._text + data)
        if self._newest < 0:
            self.unbound.update(int(rank) for rank in _UNBOUND.findall(self._text))
        steps: list[Step] = []
        begin = max(0, self._whole - self._base)
        whole = self._text.rfind(b"\n") + 1
        whole = max(whole, self._text.rfind(b"\r", whole) + 1)
        signs = start_signs(self._text, begin, whole)
        newest: Step | None = None
        for end, found in self._records(self._text, begin):
            again = bool(signs or self._sign) and self._is_after_sign(found, self._base + end, signs)
            again = again or self._begins_again(found, self._base + end)
            if found.index > self._newest or again:
                step = self._accepted(found, begin, end, again=again)
                newest = step
                if not self._repaints:
                    steps.append(step)
                else:
                    steps += self.close()
                    self.pending = step
            elif self.pending and found.index == self.pending.index:
                self.pending = self._repainted(self.pending, found, end)
        if newest:
            self._failure, self._unsearched = None, []
            self.complete = newest.total is not None and newest.index + 1 >= newest.total
        start = max(begin, self._step_end - self._base)
        if start < whole and not self.complete:
            self._unsearched.append(self._text[start:whole])
            if sum(map(len, self._unsearched)) > _UNSEARCHED:
                self._search()
        if start < whole:
            self._note_gap(self._text[start:whole], max((strength for at, strength in signs if at >= start), default=0))
        self._whole = self._base + max(begin, whole)
        excess = max(0, len(self._text) - _TAIL)
        self._text = self._text[excess:]
        self._base += excess
        return steps

    def _accepted(self, step: Step, begin: int, end: int, *, again: bool) -> Step:
        """The newest step, which ends at text[end]; with its line if a validity check may quote it."""
        if again or self._newest < 0:
            self._start(self._text[max(begin, self._step_end - self._base) : end])
        self._newest, self._step_end = step.index, self._base + end
        if self._sign or self._gap or self._next:
            self._sign, self._next, self._gap = 0, (), []
        loss = step.loss
        if (  # the first four are cheap, and false of most steps
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
        """A bar's step as it was painted last."""
        line = line_at(self._text, end - 1) if pending.line or not step.trained else ""
        return step._replace(line=line, starts_again=pending.starts_again)

    def _is_after_sign(self, step: Step, end: int, signs: list[tuple[int, int]]) -> bool:
        """Whether words of a new start stand between the newest step and this one, which ends at `end`."""
        if self._newest < 0 or end <= self._step_end:
            return False
        first, last = self._step_end - self._base, end - self._base
        strength = max((strength for at, strength in signs if first <= at < last), default=0)
        strength = max(strength, self._sign)
        return strength == STRONG or (strength > 0 and step.index <= self._newest and not self._repaints)

    def _start(self, lines: bytes) -> None:
        """Take the facts stated since the newest step, up to the end of these lines, as those of a new start."""
        self.statements = with_statements(self._next, b"".join([*self._gap, lines]))

    def _note_gap(self, lines: bytes, sign: int) -> None:
        """Keep lines after the newest step, or the facts in them, for the start that may follow."""
        self._sign = max(self._sign, sign)
        if self._sign or self._newest < 0:
            self._next = with_statements(self._next, b"".join([*self._gap, lines]))
            self._gap = []
            if self._newest < 0:
                self.statements = self._next
        else:
            if any(one.kind in _LATE for one in self.statements):
                self.statements = with_statements(self.statements, lines, _LATE)
            self._gap.append(lines)
            while sum(map(len, self._gap)) > _UNSEARCHED:
                self._gap.pop(0)

    def close(self) -> list[Step]:
        """The step that was held back; the log has ended. An unfinished line is not trusted: its numbers may be cut."""
        last, self.pending = self.pending, None
        return [last] if last else []

    def _begins_again(self, step: Step, end: int) -> bool:
        """True at the first step of a further start, which writes into the same log. `end` is where it ends.

        One rank alone writes lines; should another do so too, it is not two steps behind.
        """
        return end > self._step_end and step.index < self._newest - (0 if self._repaints else 1)

    @property
    def failure(self) -> Diagnosis | None:
        """The most telling failure line since the newest step. A run that goes on has not failed."""
        self._search()
        return self._failure

    def _search(self) -> None:
        found = worst(b"".join(self._unsearched)) if self._unsearched else None
        self._unsearched = []
        if found and (self._failure is None or found.weight > self._failure.weight):
            self._failure = found


def _without_colours(text: bytes) -> bytes:
    """Text without complete colour sequences; an unfinished one at the end waits for its rest."""
    while b"\x1b" in text and (bare := _COLOUR.sub(b"", text)) != text:
        text = bare
    return text


def _progress_lines(text: bytes, begin: int) -> Iterator[tuple[int, Step]]:
    """(end, step) for each progress line of NeMo 2 or Megatron-Bridge from `begin` on that has its line end.

    A single byte is found many times faster than a word, and the first bar behind ` iteration ` belongs to it. Where
    another bar was met the word itself is looked for, so a log full of bars costs no more than that.
    """
    word = b" iteration "
    while (bar := text.find(b"|", begin)) >= 0:
        at = text.rfind(word, begin, bar)
        if at < 0 and (at := text.find(word, begin)) < 0:
            return
        begin = at + len(word)
        match = _USUAL.match(text, at - _USUAL_HEAD)
        if match and (step := _usual_step(match)):
            begin = match.end()
            yield begin, step
        elif (start := text.rfind(b"Training epoch ", max(0, at - 30), at)) >= 0:
            if match := _NEMO.match(text, start):
                yield match.end(), _nemo_step(*match.groups())
        elif match := _BRIDGE.match(text, at - 1):
            before = text[max(0, at - _RECORD) : at - 1].rpartition(word)[2]
            yield match.end(), _bridge_step(match[1], match[2], match[3], before)


def _usual_step(found: re.Match[bytes]) -> Step | None:
    """The step of a usual line; None where `_nemo_step` would leave a value of it out."""
    iteration, last, batch, peak, allocated, loss, seconds, tflops, samples = found.groups()
    try:
        time_s, loss_now, speed = float(seconds), float(loss), float(tflops) if tflops else None
        if not SHORTEST_STEP_S <= time_s <= LONGEST_STEP_S or not isfinite(loss_now):
            return None
        if speed is not None and not 0.0 <= speed <= MOST_TFLOPS:
            return None
        return Step(
            int(iteration),
            int(last) + 1,
            time_s,
            loss_now,
            float(samples) if samples else None,
            float(peak) if peak else None,
            float(allocated) if allocated else None,
            speed,
            float(batch),
        )
    except ValueError:
        return None


def _nemo_step(epoch: bytes, iteration: bytes, last: bytes, rest: bytes) -> Step:
    """NeMo 2: counted from 0, and the number after the stroke is that of the last step."""
    if b"Training epoch " in rest:  # two ranks wrote at once: the last value before the seam may be cut
        rest = rest.partition(b"Training epoch ")[0].rpartition(b" | ")[0]
    values = _values(rest, b" | ", b": ", _FIELDS)
    global_step = values.pop("global_step", None)
    index = int(iteration)
    if global_step is not None and epoch.strip(b"0"):  # the iteration begins at 0 again with each epoch
        index = int(global_step)
    return Step(index, int(last) + 1, **values)


def _bridge_step(iteration: bytes, total: bytes, rest: bytes, before: bytes) -> Step:
    """Megatron-Bridge: counted from 1, milliseconds; the TFLOPS stand in it or on a line of their own before it."""
    values = _values(rest.rstrip(b" |"), b" | ", b":", _BRIDGE_FIELDS)
    if "step_time_s" in values:
        values["step_time_s"] /= 1000
    tflops = _BRIDGE_TFLOPS.findall(rest) or _BRIDGE_TFLOPS.findall(before)
    if tflops and (value := float(tflops[-1])) <= MOST_TFLOPS:
        values.setdefault("tflops_per_gpu", value)
    return Step(int(iteration) - 1, int(total), **values)


def _tqdm_frames(text: bytes, begin: int) -> Iterator[tuple[int, Step]]:
    """(end, step) for each whole frame of NeMo 1's bar from `begin` on.

    Global steps of 100,000 and more are printed rounded.
    """
    word = b"global_step="
    at = text.find(word, begin)
    while at >= 0:
        start, end = text.rfind(b"[", max(0, at - _RECORD), at), text.find(b"]", at, at + _RECORD)
        count = _TQDM_COUNT.search(text, max(0, start - 24), start) if start >= 0 else None
        frame = text[start + 1 : end]
        if count and end >= 0 and b"\r" not in frame and b"\n" not in frame:
            values = _values(frame, b", ", b"=", _FIELDS)
            index = values.pop("global_step", -1.0)
            if index >= 0:
                total = int(count[2]) if count[2] != b"?" and index < int(count[2]) else None
                yield end + 1, Step(int(index), total, **values)
        at = text.find(word, at + len(word))


def _values(record: bytes, gap: bytes, mark: bytes, names: dict[bytes, str]) -> dict[str, Any]:
    """The values of a record by our own names.

    A value that is no number is left out: another rank's text may have come into it. So is one that cannot be, such as
    a step time of zero. A loss that is not finite is one of the things that a run is looked at for.
    """
    values = dict[str, Any]()
    for item in record.split(gap):
        key, _, text = item.rpartition(mark)
        name = names.get(key)
        if name is None:
            continue
        try:
            value = float(text)
        except ValueError:
            continue
        if name == "consumed_samples" and mark != b"=" and b"e" in text.lower():
            continue  # rounded: its difference from the step before would be no number of samples
        low, high = _POSSIBLE.get(name, (-inf, inf))
        if name in _MAY_BE_NAN or (isfinite(value) and low <= value <= high):
            values[name] = value
    return values
