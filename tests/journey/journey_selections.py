"""The selections that the journeys run: one recipe of each family."""

from __future__ import annotations

import subprocess
from typing import Protocol

NEMOTRON = ("-w", "nemotron4@25.04", "-s", "15b", "--gpu", "h100", "-d", "fp8", "--scale", "64")
LLAMA_HYDRA = ("-w", "llama3.1@24.11", "-s", "405b", "--gpu", "h100", "-d", "fp8", "--scale", "32")


class Call(Protocol):
    """Run one verb to its end, and check its exit code."""

    def __call__(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]: ...
