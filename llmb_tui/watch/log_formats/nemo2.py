"""The progress line of NeMo 2, and the iteration line of Megatron-Bridge."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite

from llmb_tui.watch.log_formats.log_format import LogFormat
from llmb_tui.watch.log_formats.record import LONGEST_RECORD, NEMO_FIELDS, step_values
from llmb_tui.watch.state import LONGEST_STEP_S, MOST_TFLOPS, SHORTEST_STEP_S, Step

_NEMO = re.compile(rb"Training epoch (\d+), iteration (\d{1,15})/(\d{1,15}) \| ([^\r\n]{0,%d})[\r\n]" % LONGEST_RECORD)
# The same in the order that NeMo's versions share, which most lines have. `_NEMO` reads the others.
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
_BRIDGE = re.compile(rb"\] iteration +(\d{1,15})/ *(\d{1,15}) \| ([^\r\n]{0,%d})[\r\n]" % LONGEST_RECORD)
_BRIDGE_TFLOPS = re.compile(rb"(?<![\d.])(\d+(?:\.\d+)?) ?(?:MODEL_)?TFLOP/s/GPU")
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
            before = text[max(0, at - LONGEST_RECORD) : at - 1].rpartition(word)[2]
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
    values = step_values(rest, b" | ", b": ", NEMO_FIELDS)
    global_step = values.pop("global_step", None)
    index = int(iteration)
    if global_step is not None and epoch.strip(b"0"):  # the iteration begins at 0 again with each epoch
        index = int(global_step)
    return Step(index, int(last) + 1, **values)


def _bridge_step(iteration: bytes, total: bytes, rest: bytes, before: bytes) -> Step:
    """Megatron-Bridge: counted from 1, milliseconds; the TFLOPS stand in it or on a line of their own before it."""
    values = step_values(rest.rstrip(b" |"), b" | ", b":", _BRIDGE_FIELDS)
    if "step_time_s" in values:
        values["step_time_s"] /= 1000
    tflops = _BRIDGE_TFLOPS.findall(rest) or _BRIDGE_TFLOPS.findall(before)
    if tflops and (value := float(tflops[-1])) <= MOST_TFLOPS:
        values.setdefault("tflops_per_gpu", value)
    return Step(int(iteration) - 1, int(total), **values)


NEMO2 = LogFormat("nemo2", _progress_lines)
