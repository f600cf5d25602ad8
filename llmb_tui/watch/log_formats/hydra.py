"""The tqdm progress bar of NeMo 1, which the Hydra recipes run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llmb_tui.watch.log_formats.log_format import LogFormat
from llmb_tui.watch.log_formats.record import LONGEST_RECORD, NEMO_FIELDS, step_values
from llmb_tui.watch.state import Step

_TQDM_COUNT = re.compile(rb"(?<!\d)(\d{1,15})/(\d{1,15}|\?) $")


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
                total = int(count[2]) if count[2] != b"?" and index < int(count[2]) else None
                yield end + 1, Step(int(index), total, **values)
        offset = text.find(word, offset + len(word))


HYDRA = LogFormat("hydra", _tqdm_frames, repaints=True, counts_only_samples=True, upstream_framework="nemo")
