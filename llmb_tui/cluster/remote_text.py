"""`remote_text`: the files of `llmb_tui.remote`, which are copied to a cluster or run there."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def remote_text(*names: str) -> str:
    """Text of these files, one behind the other."""
    return "".join(resources.files("llmb_tui.remote").joinpath(name).read_text(encoding="utf-8") for name in names)
