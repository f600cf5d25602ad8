"""`log_remarks`: facts about a training that its step times alone hide. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from statistics import median

from llmb_tui.language.quantities import step_time
from llmb_tui.language.text import plural
from llmb_tui.watch.state import Step


def log_remarks(steps: Sequence[Step], again_at: Sequence[int], slow_signs: Sequence[str] = ()) -> Iterator[str]:
    """Sentences about a log's steps, each of which occurs once in `steps`.

    `again_at`: steps at which further starts of the training began; `slow_signs`: lines that may explain a slow run.
    """
    idle = sum(_shows_no_training(step) for step in steps)
    if 2 * idle >= len(steps) > 0:
        share = f"Only {len(steps) - idle}" if idle < len(steps) else "None"
        yield (
            f"{share} of the {plural(len(steps), 'step')} trained the model: lines of steps show skipped or NaN "
            "iterations, or a loss that is not a number."
        )
    for number, first in enumerate(again_at, 2):
        before = _median([step for step in steps if step.index < first])
        after = _median([step for step in steps if step.index >= first])
        times = f". Median step times: {before} before, {after} since then" if before and after else ""
        yield f"Start {number} of the training began at step {first}{times}."
    for line in slow_signs:
        yield f"A line of the log that may explain a slow run: `{line}`"


def _shows_no_training(step: Step) -> bool:
    values = [value for value in (step.loss, step.grad_norm) if value is not None]
    return bool(step.skipped or step.not_a_number) or not all(map(isfinite, values))


def _median(steps: Sequence[Step]) -> str:
    times = [step.step_time_s for step in steps if step.step_time_s is not None]
    return step_time(median(times)) if times else ""
