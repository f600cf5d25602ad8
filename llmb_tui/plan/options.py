"""Steps, time limit and options of a run: the recipe's values, and their problems."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from llmb_tui.catalog.recipe import Option, Recipe
from llmb_tui.language.labels import gpus_label
from llmb_tui.language.quantities import count, plain_number
from llmb_tui.language.text import capital, plural
from llmb_tui.plan.plan import Estimate, Problem, error, note, warning
from llmb_tui.plan.resolved import ResolvedSelection
from llmb_tui.plan.selection import FIELDS, OPTIONS, Field, RunOptions

# Mutually exclusive: each has its own number of steps.
_ALONE = ("profile", "nccl_trace", "load_checkpoint")
# Paths that are valid in batch scripts.
_PATH = re.compile(r"/[\w.+@=-][\w./+@=-]*", re.ASCII)
_WARN = "the verdict will be WARN"
_CLOCK = re.compile(r"(?:\d{1,3}-)?\d{1,3}:[0-5]\d:[0-5]\d", re.ASCII)
_NUMBER = r"\d{1,6}"
# sbatch(1), --time: minutes, minutes:seconds, hours:minutes:seconds, and hours first after a number of days.
_TIME_LIMIT = re.compile(rf"(?:({_NUMBER})-)?({_NUMBER})(?::({_NUMBER}))?(?::({_NUMBER}))?", re.ASCII)


def steps_of(resolved: ResolvedSelection) -> int:
    """Training steps: those of an option, else of the selection if they are valid, else the recipe's."""
    steps = resolved.selection.steps
    return option_steps(resolved) or (steps if steps is not None and steps > 0 else resolved.recipe.launch.steps)


def time_limit_of(resolved: ResolvedSelection) -> str:
    """Slurm time limit as `HH:MM:SS` or `D-HH:MM:SS`: the selection's if it is valid, else the recipe's."""
    time_limit, launch = resolved.selection.time_limit, resolved.recipe.launch
    if time_limit is not None and (seconds := seconds_of(time_limit)):
        return time_limit if _CLOCK.fullmatch(time_limit) else _clock(seconds)
    usual = (resolved.selection.strong_scaling and launch.time_limit_strong) or launch.time_limit
    return option_time_limit(resolved) or usual


def seconds_of(time_limit: str) -> int:
    """Seconds of a time limit in any form of sbatch, such as `30`, `30:00`, `01:30:00` or `1-12`; 0 for others."""
    match = _TIME_LIMIT.fullmatch(time_limit)
    if not match:
        return 0
    days, *parts = match.groups()
    first, second, third = (int(part or 0) for part in parts)
    begins_with_hours = days is not None or parts[2] is not None
    hours, minutes, seconds = (first, second, third) if begins_with_hours else (0, first, second)
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def _clock(seconds: int) -> str:
    days, rest = divmod(seconds, 24 * 3600)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


def limit_problems(resolved: ResolvedSelection, estimate: Estimate | None) -> Iterator[Problem]:
    """Invalid steps and time limits, and a time limit that is too short for the steps."""
    selection = resolved.selection
    steps, limit = steps_of(resolved), time_limit_of(resolved)
    if selection.steps is not None and selection.steps < 1:
        yield error("steps", f"A run needs at least 1 step, not {selection.steps}.", f"Choose {steps}.")
    elif selection.steps is not None and selection.steps != steps:
        reason = f"The run takes {plural(steps, 'step')} because of its options"
        yield error("steps", f"{reason}, not {selection.steps}.", "Leave the number of steps empty.")
    if selection.time_limit is not None and not seconds_of(selection.time_limit):
        reason = "The time limit is in none of Slurm's forms, such as HH:MM:SS or D-HH:MM:SS, or it is zero."
        yield error("time_limit", reason, f"Write it like {limit}.")
    elif estimate and steps * estimate.step_time_s > seconds_of(limit):
        minutes = math.ceil(steps * estimate.step_time_s / 60)
        reason = f"{steps} steps take about {minutes} minutes, plus start-up; the limit is {limit}."
        yield warning("time_limit", reason, "Raise the time limit, or choose fewer steps.")


@lru_cache(maxsize=256)
def chosen_options(options: RunOptions) -> tuple[Field, ...]:
    """Options that are set, in display order, without the fields that belong to another option."""
    return tuple(option for option in OPTIONS if not option.of and getattr(options, option.name))


def why_not(recipe: Recipe, size: str, option: Field) -> str:
    """Why an option is unavailable for a size, as the end of a sentence; empty if it is available."""
    if option.name == "hub_tokenizer":
        model = recipe.models.get(size)
        return "" if model and model.hub_tokenizer else "not in this recipe"
    if option.name == "no_network_file":
        return ""  # independent of the recipe
    row = option_row(recipe, option)
    if row is None:
        return "not in this recipe"
    return "" if row.effective else "no effect in this recipe"


def option_row(recipe: Recipe, option: Field) -> Option | None:
    """The recipe's documentation of an option."""
    return next((row for row in recipe.options if row.name == option.label), None)


def resolved_options(resolved: ResolvedSelection) -> RunOptions:
    """The chosen options, with the recipe's first and last profiled step as defaults."""
    options = resolved.selection.options
    if not options.profile:
        return options
    start, stop = profile_steps(resolved.recipe)
    return replace(
        options,
        profile_start=start if options.profile_start is None else options.profile_start,
        profile_stop=stop if options.profile_stop is None else options.profile_stop,
    )


def profile_steps(recipe: Recipe) -> tuple[int | None, int | None]:
    """Default first and last profiled step of the recipe; None if it has no default."""
    rows = (option_row(recipe, FIELDS[name]) for name in ("profile_start", "profile_stop"))
    start, stop = (row.default if row and isinstance(row.default, int) else None for row in rows)
    return start, stop


def ends_run(recipe: Recipe) -> bool:
    """True if a profiled run ends with its profile."""
    row = option_row(recipe, FIELDS["profile_stop"])
    return row is not None and row.ends_run


def option_steps(resolved: ResolvedSelection) -> int | None:
    """Training steps set by an option of the run; None if no option sets them."""
    options = resolved_options(resolved)
    for option in reversed(chosen_options(options)):
        row = option_row(resolved.recipe, option)
        if row is not None and row.steps is not None:
            return row.steps
    if options.profile and options.profile_stop and options.profile_stop > 0 and ends_run(resolved.recipe):
        return options.profile_stop
    return None


def option_time_limit(resolved: ResolvedSelection) -> str | None:
    """The recipe's time limit for the chosen options; None if it is the usual one."""
    rows = (option_row(resolved.recipe, option) for option in chosen_options(resolved.selection.options))
    return next((row.time_limit for row in rows if row is not None and row.time_limit), None)


def option_problems(resolved: ResolvedSelection, steps: int, time_limit: str) -> Iterator[Problem]:
    """Errors, warnings and notes on the chosen options. `steps`: number of steps of the run."""
    options = resolved.selection.options
    for option in chosen_options(options):
        reason = why_not(resolved.recipe, resolved.selection.size, option)
        if reason:
            yield error(option.name, f"{capital(option.label)}: {reason}, {resolved.recipe.id}.", "Remove the option.")
    yield from _alone(options)
    yield from _profile(resolved, steps)
    if options.nccl_trace:
        at_most = f", at most {time_limit}" if option_time_limit(resolved) == time_limit else ""
        reason = f"NCCL logs every call, over {steps} steps{at_most}. Such a run is slower: {_WARN}."
        yield note("nccl_trace", reason)
    yield from _checkpoints(resolved)
    if options.hub_tokenizer and resolved.model.hub_tokenizer:
        reason = f"The tokenizer is {resolved.model.hub_tokenizer}, from the model hub."
        yield note("hub_tokenizer", f"{reason} The cluster needs a Hugging Face token with access to it.")
    if options.no_network_file:
        yield note("no_network_file", "NCCL writes no network lines: sockets between nodes would go unnoticed.")


def _alone(options: RunOptions) -> Iterator[Problem]:
    exclusive = [option for option in chosen_options(options) if option.name in _ALONE]
    if options.load_checkpoint and len(exclusive) > 1:
        what = " or a ".join(option.label for option in exclusive if option.name != "load_checkpoint")
        reason = f"A run that loads a checkpoint takes one step: it cannot have a {what}."
        fix = f"Leave out the checkpoint, or the {what.replace(' or a', ' and the')}."
        yield error("load_checkpoint", reason, fix)
    elif len(exclusive) > 1:
        reason = "An Nsight profile and an NCCL trace exclude each other, as the recipes say."
        yield error("nccl_trace", reason, "Leave out one of them.")


def _profile(resolved: ResolvedSelection, steps: int) -> Iterator[Problem]:
    choice, options = resolved.selection.options, resolved_options(resolved)
    if not choice.profile:
        for option in OPTIONS:
            if option.of == "profile" and getattr(choice, option.name) is not None:
                reason = f"`{option.label}` does nothing without a profile."
                yield error(option.name, reason, "Profile the run, or leave it out.")
        return
    start, stop = options.profile_start, options.profile_stop
    if start is None or stop is None:
        return
    ends = ends_run(resolved.recipe)
    if start < 0:
        yield error("profile_start", f"The first profiled step is {start}.", "Choose 0 or more.")
    elif stop <= start:
        field = "profile_stop" if choice.profile_stop is not None else "profile_start"
        yield error(field, f"A profile from step {start} to step {stop} has no steps.", "Choose a later last step.")
    elif not ends and stop > steps:
        reason = f"The profile ends at step {stop}, and the run at step {steps}."
        yield error("profile_stop", reason, f"Profile to step {steps} at most, or choose more steps.")
    else:
        until = ", where the run ends" if ends else ""
        yield note("profile", f"Steps {start} to {stop} are profiled{until}. The profiler slows them down: {_WARN}.")


def _checkpoints(resolved: ResolvedSelection) -> Iterator[Problem]:
    options, model = resolved.selection.options, resolved.model
    if options.save_checkpoint:
        yield from _smallest_scale(resolved, "save_checkpoint", model.save_min_gpus, "saved")
        whole = resolved.parallelism.layers == model.layers
        size = f", about {plain_number(model.checkpoint_gb)} GB" if whole and model.checkpoint_gb else ""
        yield note("save_checkpoint", f"A checkpoint{size} is written into the run's folder after the last step.")
    path = options.load_checkpoint
    if path is None:
        return
    if not _PATH.fullmatch(path):
        reason = "The checkpoint's directory must be an absolute path of letters, digits and . _ + @ = -."
        yield error("load_checkpoint", reason, "Enter the directory above `weights` on the cluster.")
    yield from _smallest_scale(resolved, "load_checkpoint", model.load_min_gpus, "loaded")
    yield note("load_checkpoint", f"The run has one step after loading, too few to compare: {_WARN}.")


def _smallest_scale(resolved: ResolvedSelection, field: str, smallest: dict[str, int], verb: str) -> Iterator[Problem]:
    """A warning below the smallest tested scale, or a note if none is published."""
    scale, gpu = resolved.selection.scale, resolved.selection.gpu
    least = smallest.get(gpu)
    if least is not None and scale < least:
        tested = f"The smallest tested scale for a checkpoint to be {verb} is {gpus_label(least, gpu)}"
        yield warning(field, f"{tested}: {count(scale)} may be too few.", f"Choose {count(least)} GPUs or more.")
    elif least is None and smallest:
        yield note(field, f"No tested scale for a checkpoint to be {verb} is published for {gpu.upper()}.")
