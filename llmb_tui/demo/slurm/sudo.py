"""`sudo` on a node: the user may do nothing. The real one is never asked: it would be this machine's."""

from __future__ import annotations

from llmb_tui.demo.slurm.options import Refusal
from llmb_tui.demo.slurm.store import Store


def main(_: Store, _arguments: list[str]) -> int:
    """Run `sudo`."""
    raise Refusal("sudo: a password is required")
