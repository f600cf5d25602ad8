"""What a procedure makes of a request: `LaunchPreview`, without asking anybody, and `PreparedRun`, to be submitted."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.launch.run import Run
from llmb_tui.plan.plan import Problem
from llmb_tui.request import RunRequest


@dataclass(frozen=True, slots=True)
class LaunchPreview:
    """How a request would be started, as far as that can be said without a cluster. Texts are a line each."""

    way: str = ""
    """What the procedure is."""
    problems: tuple[Problem, ...] = ()
    """What stands against it, or would be otherwise than asked for."""
    command: str = ""
    """Exactly what starts it; empty where there is no such command, and where only the cluster can say."""
    starts: str = ""
    """What submitting does, where that is more than a batch script for Slurm."""
    results: str = ""
    """Where the results go, where a person has to look for them."""
    takes_token: bool = False
    """The command is given the Hugging Face token."""
    differences: tuple[str, ...] = ()
    """What is done otherwise than the recipe's documents say."""
    notes: tuple[str, ...] = ()
    """What is to be known of the procedure itself."""
    detail: str = ""
    """What distinguishes the procedure from the others, in a few words, also if the request cannot be started so."""


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run that could be submitted, and exactly what would be: the batch script, or the command that launches it."""

    request: RunRequest
    run: Run
    script: str
    overridden: tuple[tuple[str, str, str], ...] = ()
    """(name, recipe's value, profile's value) of the recipe's variables that the cluster's profile changes."""
    notes: tuple[str, ...] = ()
    """Where the job is not what the recipe makes of it, beside those, and no problem of the preview says so."""
