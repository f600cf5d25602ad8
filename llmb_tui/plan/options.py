"""What a run does beside the benchmark: which of it a recipe has, what becomes of the steps, what must agree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from llmb_tui.catalog.recipe import Option, Recipe
from llmb_tui.plan.draft import Draft
from llmb_tui.plan.plan import Problem
from llmb_tui.plan.selection import RunOptions

TITLES = {
    "profile": "Nsight profile",
    "nccl_trace": "NCCL trace",
    "save_checkpoint": "save checkpoint",
    "load_checkpoint": "load checkpoint",
    "hub_tokenizer": "hub tokenizer",
}
"""What can be switched on, by its field in `RunOptions`; all but the last are named so in a preset's options too."""

# Of these a run does one at most: each takes its own number of steps.
_ALONE = ("profile", "nccl_trace", "load_checkpoint")
_PROFILE_STEPS = {"profile_start": "profile from step", "profile_stop": "profile to step"}
# As batch scripts take paths.
_PATH = re.compile(r"/[\w.+@=-][\w./+@=-]*", re.ASCII)
_WARN = "the verdict is WARN at best"


def chosen_options(options: RunOptions) -> tuple[str, ...]:
    """The fields of what is switched on, in the order of `TITLES`."""
    return tuple(field for field in TITLES if getattr(options, field))


def why_not(recipe: Recipe, size: str, field: str) -> str:
    """Why a field of `TITLES` cannot be switched on for a size, as the end of a sentence; empty where it can."""
    if field == "hub_tokenizer":
        model = recipe.models.get(size)
        return "" if model and model.hub_tokenizer else "not in this recipe"
    row = option_row(recipe, TITLES[field])
    if row is None:
        return "not in this recipe"
    return "" if row.effective else "no effect in this recipe"


def option_row(recipe: Recipe, name: str) -> Option | None:
    """The recipe's documented option of that name."""
    return next((row for row in recipe.options if row.name == name), None)


def resolved_options(draft: Draft) -> RunOptions:
    """The chosen options, with the recipe's own first and last step of a profile where none are given."""
    asked = draft.selection.options
    if not asked.profile:
        return asked
    start, stop = profile_steps(draft.recipe)
    return replace(
        asked,
        profile_start=start if asked.profile_start is None else asked.profile_start,
        profile_stop=stop if asked.profile_stop is None else asked.profile_stop,
    )


def profile_steps(recipe: Recipe) -> tuple[int | None, int | None]:
    """First and last step that the recipe profiles by itself; None where it does not say."""
    defaults = [row.default if row else None for row in (option_row(recipe, name) for name in _PROFILE_STEPS.values())]
    start, stop = (value if isinstance(value, int) else None for value in defaults)
    return start, stop


def ends_run(recipe: Recipe) -> bool:
    """True where a profiled run ends with its profile."""
    row = option_row(recipe, _PROFILE_STEPS["profile_stop"])
    return row is not None and row.ends_run


def option_steps(draft: Draft) -> int | None:
    """Training steps that an option of the run gives it; None where none does."""
    options = resolved_options(draft)
    for field in ("load_checkpoint", "nccl_trace"):
        row = option_row(draft.recipe, TITLES[field])
        if getattr(options, field) and row is not None and row.steps is not None:
            return row.steps
    if ends_run(draft.recipe) and options.profile and options.profile_stop and options.profile_stop > 0:
        return options.profile_stop
    return None


def option_time_limit(draft: Draft) -> str | None:
    """Time limit that the recipe has for what the run does; None where that is its usual one."""
    rows = (option_row(draft.recipe, TITLES[field]) for field in chosen_options(draft.selection.options))
    return next((row.time_limit for row in rows if row is not None and row.time_limit), None)


def option_problems(draft: Draft, steps: int, time_limit: str) -> Iterator[Problem]:
    """What cannot be, what was never tested, and what the chosen options mean. `steps` are those of the run."""
    asked = draft.selection.options
    for field in chosen_options(asked):
        reason = why_not(draft.recipe, draft.selection.size, field)
        if reason:
            yield _error(field, f"{_capital(TITLES[field])}: {reason}, {draft.recipe.id}.", "Leave it out.")
    yield from _alone(asked)
    yield from _profile(draft, steps)
    if asked.nccl_trace:
        at_most = f", at most {time_limit}" if option_time_limit(draft) == time_limit else ""
        reason = f"NCCL logs every call, over {steps} steps{at_most}. That is too slow to compare: {_WARN}."
        yield _note("nccl_trace", reason)
    yield from _checkpoints(draft)
    if asked.hub_tokenizer and draft.model.hub_tokenizer:
        reason = f"The tokenizer is {draft.model.hub_tokenizer}, from the model hub."
        yield _note("hub_tokenizer", f"{reason} The cluster needs a Hugging Face token that opens it.")


def _alone(options: RunOptions) -> Iterator[Problem]:
    chosen = [field for field in chosen_options(options) if field in _ALONE]
    if options.load_checkpoint and len(chosen) > 1:
        what = " and no ".join(TITLES[field] for field in chosen if field != "load_checkpoint")
        reason = f"A run that loads a checkpoint takes one step: there is no {what} of it."
        yield _error(
            "load_checkpoint", reason, f"Leave out the checkpoint, or the {what.replace(' and no', ' and the')}."
        )
    elif len(chosen) > 1:
        reason = "An Nsight profile and an NCCL trace exclude each other, as the recipes say."
        yield _error("nccl_trace", reason, "Leave out one of them.")


def _profile(draft: Draft, steps: int) -> Iterator[Problem]:
    asked, options = draft.selection.options, resolved_options(draft)
    if not asked.profile:
        for field, name in _PROFILE_STEPS.items():
            if getattr(asked, field) is not None:
                yield _error(field, f"`{name}` does nothing without a profile.", "Profile the run, or leave it out.")
        return
    start, stop = options.profile_start, options.profile_stop
    if start is None or stop is None:
        return
    ends = ends_run(draft.recipe)
    if start < 0:
        yield _error("profile_start", f"There is no step {start}.", "Choose 0 or more.")
    elif stop <= start:
        field = "profile_stop" if asked.profile_stop is not None else "profile_start"
        yield _error(field, f"A profile from step {start} to step {stop} has no steps.", "Choose a later last step.")
    elif not ends and stop > steps:
        reason = f"The profile ends at step {stop}, and the run at step {steps}."
        yield _error("profile_stop", reason, f"Profile to step {steps} at most, or take more steps.")
    else:
        until = ", where the run ends" if ends else ""
        yield _note("profile", f"Steps {start} to {stop} are profiled{until}. The profiler slows them down: {_WARN}.")


def _checkpoints(draft: Draft) -> Iterator[Problem]:
    options, model = draft.selection.options, draft.model
    if options.save_checkpoint:
        yield from _tested(draft, "save_checkpoint", model.save_min_gpus, "saved")
        whole = draft.parallelism.layers == model.layers
        size = f", about {model.checkpoint_gb:,g} GB" if whole and model.checkpoint_gb else ""
        yield _note("save_checkpoint", f"A checkpoint{size} is written into the run's folder after the last step.")
    path = options.load_checkpoint
    if path is None:
        return
    if not _PATH.fullmatch(path):
        reason = "The checkpoint's directory must be an absolute path of letters, digits and . _ + @ = -."
        yield _error("load_checkpoint", reason, "Give the directory above `weights`, as the cluster names it.")
    yield from _tested(draft, "load_checkpoint", model.load_min_gpus, "loaded")
    yield _note("load_checkpoint", f"One step follows the loading, which is too short to compare: {_WARN}.")


def _tested(draft: Draft, field: str, smallest: dict[str, int], done: str) -> Iterator[Problem]:
    """A warning below the smallest scale at which the recipe tested it."""
    scale, gpu = draft.selection.scale, draft.selection.gpu
    least = smallest.get(gpu)
    if least is not None and scale < least:
        reason = (
            f"The smallest scale at which a checkpoint was {done} is {least} {gpu.upper()}: {scale} may not suffice."
        )
        yield Problem(field, "warning", reason, f"Choose {least} GPUs or more.")
    elif least is None and smallest:
        yield _note(field, f"No scale at which a checkpoint was {done} is published for {gpu.upper()}.")


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _error(field: str, reason: str, fix: str) -> Problem:
    return Problem(field, "error", reason, fix)


def _note(field: str, reason: str) -> Problem:
    return Problem(field, "note", reason, "")
