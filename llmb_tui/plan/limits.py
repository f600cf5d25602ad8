"""Steps and time limit of a run: defaults, checks, and whether one is enough for the other."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from llmb_tui.plan.draft import Draft
from llmb_tui.plan.options import option_steps, option_time_limit
from llmb_tui.plan.plan import Estimate, Problem

_TIME_LIMIT = re.compile(r"(?:(\d{1,3})-)?(\d{1,3}):([0-5]\d):([0-5]\d)", re.ASCII)


def steps_of(draft: Draft) -> int:
    """Training steps: an option's own, else those asked for, else (also where these are impossible) the recipe's."""
    asked = draft.selection.steps
    return option_steps(draft) or (asked if asked is not None and asked > 0 else draft.recipe.launch.steps)


def time_limit_of(draft: Draft) -> str:
    """Slurm time limit: the one asked for, else (also where it cannot be read) the recipe's."""
    asked, launch = draft.selection.time_limit, draft.recipe.launch
    if asked is not None and seconds_of(asked):
        return asked
    usual = (draft.selection.strong_scaling and launch.time_limit_strong) or launch.time_limit
    return option_time_limit(draft) or usual


def seconds_of(time_limit: str) -> int:
    """Seconds of `HH:MM:SS` or `D-HH:MM:SS`; 0 for anything else."""
    match = _TIME_LIMIT.fullmatch(time_limit)
    if not match:
        return 0
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def limit_problems(draft: Draft, estimate: Estimate | None) -> Iterator[Problem]:
    """Steps and time limits that cannot be, and a time limit that the steps would not keep."""
    asked = draft.selection
    steps, limit = steps_of(draft), time_limit_of(draft)
    if asked.steps is not None and asked.steps < 1:
        yield Problem("steps", "error", f"A run needs at least 1 step, not {asked.steps}.", f"Choose {steps}.")
    elif asked.steps is not None and asked.steps != steps:
        reason = f"The run takes {steps} step{'s' * (steps != 1)} for what it does beside the benchmark"
        yield Problem("steps", "error", f"{reason}, not {asked.steps}.", "Give no number of steps.")
    if asked.time_limit is not None and asked.time_limit != limit:
        reason = "The time limit is not HH:MM:SS or D-HH:MM:SS, or it is zero."
        yield Problem("time_limit", "error", reason, f"Write it like {limit}.")
    elif estimate and steps * estimate.step_time_s > seconds_of(limit):
        minutes = math.ceil(steps * estimate.step_time_s / 60)
        reason = f"{steps} steps take about {minutes} minutes and start-up is not in that; the limit is {limit}."
        yield Problem("time_limit", "warning", reason, "Raise the time limit, or take fewer steps.")
