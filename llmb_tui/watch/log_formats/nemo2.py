"""The progress line of NeMo 2, and the iteration line of Megatron-Bridge."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite

from llmb_tui.watch.log_formats.log_format import LogFormat
from llmb_tui.watch.log_formats.record import LONGEST_RECORD, NEMO_FIELDS, step_values
from llmb_tui.watch.state import LONGEST_STEP_S, MOST_TFLOPS, SHORTEST_STEP_S, Step

_NEMO = re.compile(rb"Training epoch (\d+), iteration (\d{1,15})/(\d{1,15}) \| ([^\r\n]{0,%d})[\r\n]" % LONGEST_RECORD)
USUAL_LINE = re.compile(
    rb"Training epoch 0, iteration (D{1,15})/(D{1,15}) \| lr: N \| global_batch_size: (D{1,15}) \| global_step: N"
    rb"(?: \| (?:peak_memory_usage|max_memory_reserved): (D{1,25}))?"
    rb"(?: \| (?:memory_allocated: (D{1,25})|max_memory_allocated: N))?"
    rb" \| reduced_train_loss: (N) \| train_step_timing in s: (N)(?: \| TFLOPS_per_GPU: (N))?"
    rb"(?: \| consumed_samples: (D{1,25}(?:\.D{1,5})?))?[\r\n]".replace(b"D", b"[0-9]").replace(
        b"N", b"[0-9.e+-]{1,25}"
    )
)
"""The usual field order of NeMo's versions, which most lines have. `_NEMO` matches any other order."""
_USUAL_HEAD = len(b"Training epoch 0,")
_BRIDGE = re.compile(rb" iteration +(\d{1,15})/ *(\d{1,15}) \| ([^\r\n]{0,%d})[\r\n]" % LONGEST_RECORD)
# Megatron-LM printed no time stamp before the line until 2024.
_MEGATRON_FIRST = (b"consumed samples:", b"elapsed time per iteration (ms):")
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
    """(end, step) for each complete progress line of NeMo 2 or Megatron-Bridge from `begin` on.

    A search for one byte is many times faster than one for a word, and the first bar after ` iteration ` belongs to it.
    If another bar comes first, the word is searched for, so a log full of bars costs no more than that.
    """
    word = b" iteration "
    while (bar := text.find(b"|", begin)) >= 0:
        offset = text.rfind(word, begin, bar)
        if offset < 0 and (offset := text.find(word, begin)) < 0:
            return
        begin = offset + len(word)
        match = USUAL_LINE.match(text, offset - _USUAL_HEAD)
        if match and (step := _usual_step(match)):
            begin = match.end()
            yield begin, step
        elif (start := text.rfind(b"Training epoch ", max(0, offset - 30), offset)) >= 0:
            if match := _NEMO.match(text, start):
                yield match.end(), nemo_step(*match.groups())
        elif (match := _BRIDGE.match(text, offset)) and (
            text[offset - 1 : offset] == b"]" or match[3].startswith(_MEGATRON_FIRST)
        ):
            before = text[max(0, offset - LONGEST_RECORD) : offset - 1].rpartition(word)[2]
            yield match.end(), _bridge_step(match[1], match[2], match[3], before)


def _usual_step(found: re.Match[bytes]) -> Step | None:
    """Step of a line in the usual order; None if `nemo_step` would omit one of its values."""
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


def nemo_step(epoch: bytes, iteration: bytes, last: bytes, rest: bytes) -> Step:
    """Step of NeMo 2, which counts from 0; the number after the slash is the index of the last step."""
    if b"Training epoch " in rest:  # two ranks wrote at once: the last value before the second line may be cut
        rest = rest.partition(b"Training epoch ")[0].rpartition(b" | ")[0]
    values = step_values(rest, b" | ", b": ", NEMO_FIELDS)
    global_step = values.pop("global_step", None)
    index = int(iteration)
    if global_step is not None and epoch.strip(b"0"):  # each epoch restarts the iteration at 0
        index = int(global_step)
    return Step(index, int(last) + 1, **values)


def _bridge_step(iteration: bytes, total: bytes, rest: bytes, before: bytes) -> Step:
    """Step of Megatron-Bridge, which counts from 1, in ms; the TFLOPS are in its line or in one before it."""
    values = step_values(rest.rstrip(b" |"), b" | ", b":", _BRIDGE_FIELDS)
    if "step_time_s" in values:
        values["step_time_s"] /= 1000
    tflops = _BRIDGE_TFLOPS.findall(rest) or _BRIDGE_TFLOPS.findall(before)
    if tflops and (value := float(tflops[-1])) <= MOST_TFLOPS:
        values.setdefault("tflops_per_gpu", value)
    return Step(int(iteration) - 1, int(total), **values)


NEMO2 = LogFormat("nemo2", _progress_lines, "lines of NeMo 2, Megatron-Bridge and Megatron-LM")
