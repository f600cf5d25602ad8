"""NVIDIA's own result rules, applied to a log as its tools do it, with the same digits as their output.

`parse_train_timing` is the script of releases 25.08 to 26.05 (`common/parse_train_timing.sh`, and
`parse_train_timing_mbridge.sh` for logs of Megatron-Bridge, as of 26.05); `llmb-run` is its `pretrain_log_parser.py`
from 1.14 on. Both compute the mean of iterations 35 to 44 as the log counts them, and include every line, even a
repeated one; an impossible value, such as 1e999 seconds, is ignored. They differ in the deviation, in the condition for
a complete run, and in the choice among several logs of a job. Neither reads the progress bars of the Hydra recipes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import BinaryIO, Literal

from llmb_tui.analysis.statistics import SampleStatistics, spread
from llmb_tui.watch.state import LONGEST_STEP_S, MOST_TFLOPS

Rule = Literal["recipe", "parse_train_timing", "llmb-run"]
_FIRST, _LAST = 35, 44
# A log with an endless line must not fill the memory.
_LONGEST_LINE = 1 << 20

_NOT_PARSED = ("nccltrace", "prepare_squad_dataset_exp", "import_ckpt_exp", "nsys_analysis")
_TRAINS = re.compile("iteration|training|model|experiment")
_TIMED = "train_step_timing in s:"
_BRIDGE_TIMED = re.compile(r"elapsed time per iteration \(ms\):|TFLOP/s/GPU|grad[ _]norm\s*:\s*nan", re.IGNORECASE)

# parse_train_timing.sh: a denominator of 49 and nothing else, and no exponent in a time.
_OF_50 = re.compile(r"iteration ([0-9]{1,15})/49")
_TIME = re.compile(r"train_step_timing in s: ([0-9]+\.?[0-9]*)")
_TFLOPS = re.compile(r"TFLOPS_per_GPU: ([0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?)")
# parse_train_timing_mbridge.sh
_COUNTED = re.compile(r"iteration\s*[0-9]+\s*/\s*[0-9]+")
_COUNT = re.compile(r"iteration\s*([0-9]{1,15})(?![0-9])")
_TIME_MS = re.compile(r"elapsed time per iteration \(ms\):\s*([0-9]+(?:\.[0-9]+)?)")
_SPEED = re.compile(r"(?<![0-9])([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*(?:MODEL_)?TFLOP/s/GPU")
_NOT_A_NUMBER = re.compile(r"grad[ _]norm\s*:\s*nan(?:\s|\||$)", re.IGNORECASE)
# pretrain_log_parser.py
_NUMBER = r"([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
_OF = re.compile(r"iteration\s+(\d{1,15})\s*/\s*(\d{1,15})(?!\d)")
_LLMB_TIME = re.compile(rf"train_step_timing in s:\s*{_NUMBER}")
_LLMB_TFLOPS = re.compile(rf"TFLOPS_per_GPU:\s*{_NUMBER}")
_LLMB_TIME_MS = re.compile(rf"elapsed time per iteration \(ms\):\s*{_NUMBER}")
_LLMB_SPEED = re.compile(rf"(?<![0-9]){_NUMBER}\s*(?:MODEL_)?TFLOP/s/GPU")
_LLMB_NOT_A_NUMBER = re.compile(r"\bgrad[ _]norm\s*:\s*nan\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class UpstreamResult:
    """Result of one of NVIDIA's tools for one log."""

    rule: Rule
    status: str
    """Status in the tool's own words: `Success`, `Failed`, `Invalid`; from llmb-run `success`, `incomplete`, …"""
    step_time_s: SampleStatistics | None = None
    """Step times, seconds; None unless the run counts as complete."""
    tflops_per_gpu: SampleStatistics | None = None
    """TFLOPS that the log gives; None also if it gives none."""
    highest: int | None = None
    """Highest iteration of the window in the log."""
    is_sample: bool = True
    """Deviations are those of a sample (÷ n − 1); False: ÷ n."""

    def deviation(self, summary: SampleStatistics | None) -> float | None:
        """Deviation of one of these in the tool's way; llmb-run reports 0 for a single value."""
        if summary is None:
            return None
        return (summary.stdev or 0.0) if self.is_sample else summary.population_stdev


def is_parsed_log(name: str) -> bool:
    """Whether parse_train_timing reads a file of this name."""
    return name.endswith(".out") and not any(word in name for word in _NOT_PARSED)


def parse_train_timing(file: BinaryIO, name: str) -> UpstreamResult | None:
    """Result of the script for a log; None if it prints nothing about it. `name`: file name without the folder."""
    trains = bridge = False
    for line in _lines(file, "\n"):
        if _TIMED in line:
            return _of_nemo(file)
        bridge = bridge or bool(_BRIDGE_TIMED.search(line))
        trains = trains or bool(_TRAINS.search(line))
    if bridge:
        return _of_bridge(file)
    failed = trains and not name.startswith(("sbatch_", "vboost"))
    return UpstreamResult("parse_train_timing", "Failed") if failed else None


def _of_nemo(file: BinaryIO) -> UpstreamResult | None:
    times, tflops, highest = list[float](), list[float](), None
    for line in _lines(file, "\n"):
        count = _OF_50.search(line) if _TIMED in line else None
        time = _number(_TIME, line, LONGEST_STEP_S) if count and _FIRST <= int(count[1]) <= _LAST else None
        if count and time is not None:
            times.append(time)
            highest = max(highest or 0, int(count[1]))
            speed = _number(_TFLOPS, line, MOST_TFLOPS)
            tflops += [] if speed is None else [speed]
    return _parsed(times, tflops, highest, is_sample=False)


def _of_bridge(file: BinaryIO) -> UpstreamResult | None:
    """Result for Megatron-Bridge: the TFLOPS are on a line before the iteration's own, and count once."""
    times, tflops, highest = list[float](), list[float](), None
    speed: float | None = None
    for line in _lines(file, "\n"):
        if _NOT_A_NUMBER.search(line):
            return UpstreamResult("parse_train_timing", "Invalid")
        if _SPEED.search(line):
            speed = _number(_SPEED, line, MOST_TFLOPS)
        count = _COUNT.search(line) if _COUNTED.search(line) else None
        time = _number(_TIME_MS, line, 1000 * LONGEST_STEP_S) if count and _FIRST <= int(count[1]) <= _LAST else None
        if count and time is not None:
            times.append(time / 1000)
            highest = max(highest or 0, int(count[1]))
            tflops += [] if speed is None else [speed]
            speed = None
    return _parsed(times, tflops, highest, is_sample=True)


def _parsed(times: list[float], tflops: list[float], highest: int | None, *, is_sample: bool) -> UpstreamResult | None:
    """Result of the window, which is complete as soon as its last iteration occurs, whatever is missing before."""
    if highest is None:
        return None
    if highest < _LAST:
        return UpstreamResult("parse_train_timing", "Failed", highest=highest)
    spreads = spread(times), spread(tflops)
    return UpstreamResult("parse_train_timing", "Success", *spreads, highest=highest, is_sample=is_sample)


def llmb_run(file: BinaryIO, framework: str = "") -> UpstreamResult:
    """Result of llmb-run for a log. `framework`: name in its configuration; empty: detect it by the log's lines."""
    name = framework.strip().lower() or _framework(file)
    if name not in ("nemo2", "megatron_bridge"):
        return UpstreamResult("llmb-run", "unsupported_framework")
    bridge = name == "megatron_bridge"
    timed, unit = (_LLMB_TIME_MS, 1000.0) if bridge else (_LLMB_TIME, 1.0)
    samples = list[tuple[int, float]]()
    speeds = list[float | None]()
    ended = invalid = False
    for line in _lines(file, None):
        if bridge and _LLMB_SPEED.search(line):
            speeds.append(_number(_LLMB_SPEED, line, MOST_TFLOPS))
        if not (count := _OF.search(line)):
            continue
        ended = ended or int(count[1]) == int(count[2])
        invalid = invalid or (bridge and bool(_LLMB_NOT_A_NUMBER.search(line)))
        if (time := _number(timed, line, unit * LONGEST_STEP_S)) is not None:
            samples.append((int(count[1]), time / unit))
            if not bridge:
                speeds.append(_number(_LLMB_TFLOPS, line, MOST_TFLOPS))
    if invalid:
        return UpstreamResult("llmb-run", "invalid_grad_norm")
    # Times and TFLOPS are matched by their order, because Megatron-Bridge prints them on separate lines.
    speeds += [None] * (len(samples) - len(speeds))
    counted = [
        (index, s, speed) for (index, s), speed in zip(samples, speeds, strict=False) if _FIRST <= index <= _LAST
    ]
    seen = {index for index, _, _ in counted}
    if not seen:
        return UpstreamResult("llmb-run", "no_data")
    if not ended or len(seen) < _LAST - _FIRST + 1:
        return UpstreamResult("llmb-run", "incomplete", highest=max(seen))
    times, with_speed = spread([s for _, s, _ in counted]), spread([v for _, _, v in counted if v is not None])
    return UpstreamResult("llmb-run", "success", times, with_speed, highest=max(seen))


def _number(pattern: re.Pattern[str], line: str, most: float) -> float | None:
    """First number that the pattern matches; None if there is none, or if it exceeds `most`."""
    match = pattern.search(line)
    value = float(match[1]) if match else inf
    return value if value <= most else None


def _framework(file: BinaryIO) -> str:
    """Framework, detected by the first line that shows it."""
    for line in _lines(file, None):
        if "elapsed time per iteration (ms):" in line:
            return "megatron_bridge"
        if "train_step_timing in s=" in line:
            return "nemo"  # a Hydra recipe, which llmb-run does not parse
        if _TIMED in line:
            return "nemo2"
    return "nemo2"


def _lines(file: BinaryIO, newline: str | None) -> Iterator[str]:
    """Lines from the beginning of the file. The script recognises one line end, Python three (`newline` None)."""
    file.seek(0)
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline=newline)
    try:
        yield from iter(lambda: text.readline(_LONGEST_LINE), "")
    finally:
        text.detach()
