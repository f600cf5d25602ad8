"""Helpers that the tests of `launch` share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.plan.plan import Plan

PROFILE = SlurmProfile("eos", "login.example.org", "research_llm_bench", "batch", "/lustre/llmb")
RUN_ID = "251121080102abcd"

# One row of each recipe.
ROWS: dict[str, tuple[str, str, str, str, int]] = {
    "nemotron4-25.04": ("nemotron4@25.04", "15b", "h100", "fp8", 64),
    "llama3.1-25.04": ("llama3.1@25.04", "70b", "h100", "bf16", 64),
    "llama3.1-24.11": ("llama3.1@24.11", "405b", "h100", "fp8", 576),
    "nemotron4-340b-25.12": ("nemotron4-340b@25.12", "340b", "gb200", "fp8", 128),
    "grok1-25.02": ("grok1@25.02", "314b", "h100", "bf16", 64),
}

MakePlan = Callable[..., Plan]
MakeSpec = Callable[..., LaunchSpec]
MakeRun = Callable[..., Run]


def replace_command(root: Path, name: str, body: str) -> None:
    """Replace a command of the demo cluster with a script; `$STAGE` in it is the folder of the test."""
    path = root / "bin" / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\nSTAGE={root.parent}\n{body}\n")
    path.chmod(0o755)
