"""What NeMo prints for each training step: the lines of NeMo 2, and the progress bar of NeMo 1 (Hydra).

The formats follow NeMo's `ProgressPrinter`, and tqdm as Lightning's progress bar drives it.
"""

from __future__ import annotations

from collections.abc import Mapping

_BLOCKS = " ▏▎▍▌▋▊▉█"
_BAR_WIDTH = 10
_PADDED_TO = 5


def nemo2_line(iteration: int, total: int, values: Mapping[str, float]) -> str:
    """One step of NeMo 2, without newline: four significant digits, whole numbers as integers."""
    parts = [f"Training epoch 0, iteration {iteration}/{total - 1}"]
    parts += [f"{name}: {_four_digits(value)}" for name, value in values.items()]
    return " | ".join(parts)


def hydra_bar(done: int, total: int, elapsed_s: float, values: Mapping[str, float | str]) -> str:
    """The progress bar of NeMo 1 after `done` steps; the carriage return before it is the caller's."""
    fraction = done / total
    full, part = divmod(int(fraction * _BAR_WIDTH * (len(_BLOCKS) - 1)), len(_BLOCKS) - 1)
    bar = _BLOCKS[-1] * full
    if full < _BAR_WIDTH:
        bar += _BLOCKS[part] + _BLOCKS[0] * (_BAR_WIDTH - full - 1)
    left = _interval(elapsed_s / done * (total - done)) if done else "?"
    postfix = "".join(f", {name}={_padded(value)}" for name, value in values.items())
    return f"Epoch 0: : {100 * fraction:3.0f}%|{bar}| {done}/{total} [{_interval(elapsed_s)}<{left}{postfix}]"


def _four_digits(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:.4}"


def _interval(seconds: float) -> str:
    minutes, second = divmod(int(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02d}:{second:02d}" if hour else f"{minute:02d}:{second:02d}"


def _padded(value: float | str) -> str:
    """A number as tqdm writes it (three digits where that is shorter), filled up with zeros as Lightning does."""
    if isinstance(value, str):
        return value
    three_digits = f"{value:.3g}".replace("e+0", "e+").replace("e-0", "e-")
    text = three_digits if len(three_digits) < len(str(value)) else str(value)
    if "e" in text:
        return text
    if "." not in text and len(text) < _PADDED_TO:
        text += "."
    return text.ljust(_PADDED_TO, "0")
