"""The tqdm progress bar of NeMo 1, which the Hydra recipes run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llmb_tui.watch.log_formats.log_format import LogFormat
from llmb_tui.watch.log_formats.record import LONGEST_RECORD, NEMO_FIELDS, step_values
from llmb_tui.watch.state import LONGEST_STEP_S, SHORTEST_STEP_S, Step

_TQDM_COUNT = re.compile(rb"(?<!\d)(\d{1,15})/(\d{1,15}|\?) $")
# NeMo before 24 prints no step time: the bar's own rate, which it smooths over some steps, is all there is.
_TQDM_RATE = re.compile(rb"[<,] {1,3}(\d{1,9}(?:\.\d{1,6})?)(s/it|it/s)\b")
_LOWEST_RATE = 1e-6
_MOST_ROUNDED = 1.1
"""Largest ratio of the bar's count to the step that rounding explains: global steps may have two digits."""


def _tqdm_frames(text: bytes, begin: int) -> Iterator[tuple[int, Step]]:
    """(end, step) for each complete frame of NeMo 1's bar from `begin` on.

    Global steps of 100,000 and more are printed rounded.
    """
    word = b"global_step="
    offset = text.find(word, begin)
    while offset >= 0:
        start, end = (
            text.rfind(b"[", max(0, offset - LONGEST_RECORD), offset),
            text.find(b"]", offset, offset + LONGEST_RECORD),
        )
        count = _TQDM_COUNT.search(text, max(0, start - 24), start) if start >= 0 else None
        frame = text[start + 1 : end]
        if count and end >= 0 and b"\r" not in frame and b"\n" not in frame:
            values = step_values(frame, b", ", b"=", NEMO_FIELDS)
            index = values.pop("global_step", -1.0)
            if index >= 0:
                counts_steps = int(count[1]) <= _MOST_ROUNDED * (index + 1) + 1  # else it counts micro-batches
                total = int(count[2]) if counts_steps and count[2] != b"?" and index < int(count[2]) else None
                if counts_steps and "step_time_s" not in values and (rate := _TQDM_RATE.search(frame)):
                    seconds = float(rate[1]) if rate[2] == b"s/it" else 1 / max(float(rate[1]), _LOWEST_RATE)
                    if SHORTEST_STEP_S <= seconds <= LONGEST_STEP_S:
                        values["step_time_s"] = seconds
                yield end + 1, Step(int(index), total, **values)
        offset = text.find(word, offset + len(word))


HYDRA = LogFormat(
    "hydra",
    _tqdm_frames,
    "the progress bar of NeMo 1",
    repaints=True,
    counts_only_samples=True,
    upstream_framework="nemo",
)
