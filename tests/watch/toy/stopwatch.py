"""A log format of tests: `step 3 of 50 took 2.0 s`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llmb_tui.watch.log_formats.log_format import LogFormat
from llmb_tui.watch.state import Step

_STEP = re.compile(rb"step (\d{1,9}) of (\d{1,9}) took ([\d.]{1,9}) s, loss ([\d.]{1,9})\n")


def _steps(text: bytes, begin: int) -> Iterator[tuple[int, Step]]:
    for match in _STEP.finditer(text, begin):
        yield match.end(), Step(int(match[1]) - 1, int(match[2]), float(match[3]), float(match[4]))


STOPWATCH = LogFormat("stopwatch", _steps)  # type: ignore[arg-type]  # the copy's presets know this id
