"""`remote_text`: the files of `llmb_tui.remote`, which run on a cluster."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def remote_text(*names: str) -> str:
    """Text of these files, concatenated."""
    return "".join(resources.files("llmb_tui.remote").joinpath(name).read_text(encoding="utf-8") for name in names)
