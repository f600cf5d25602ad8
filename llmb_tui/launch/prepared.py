"""`LaunchPreview`: how a request would be launched, without asking a cluster; `PreparedRun`: a run ready to submit."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.launch.run import Run
from llmb_tui.plan.plan import Problem
from llmb_tui.request import RunRequest


@dataclass(frozen=True, slots=True)
class LaunchPreview:
    """Description of a launch, as far as it is known without a cluster. Each text is one line."""

    way: str = ""
    """Short description of the procedure."""
    problems: tuple[Problem, ...] = ()
    """Reasons against the launch, and deviations from the request."""
    command: str = ""
    """Exact command that launches the run; empty if there is none, or if only the cluster can determine it."""
    starts: str = ""
    """Effect of submitting, if it is more than a batch script for Slurm."""
    results: str = ""
    """Location of the results, if the user has to look for them."""
    takes_token: bool = False
    """True if the command receives the Hugging Face token."""
    differences: tuple[str, ...] = ()
    """Deviations from the recipe's documentation."""
    notes: tuple[str, ...] = ()
    """Remarks about the procedure itself."""
    detail: str = ""
    """Distinction from the other procedures in a few words, even if the request cannot be launched this way."""


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run that can be submitted, with the exact text: the batch script, or the command that launches it."""

    request: RunRequest
    run: Run
    script: str
    overridden: tuple[tuple[str, str, str], ...] = ()
    """(name, recipe's value, profile's value) of the recipe's variables that the cluster's profile changes."""
    notes: tuple[str, ...] = ()
    """Further deviations of the job from the recipe that no problem of the preview mentions."""
