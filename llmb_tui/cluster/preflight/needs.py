"""`Needs`: what installing and running take from a cluster beyond its nodes; and where downloads come from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sources:
    """Servers that installs download from: scheme, host and port of each, without a path."""

    registry: str = "https://nvcr.io"
    """Container registry."""
    git: str = "https://github.com"
    hub: str = "https://huggingface.co"
    """Model hub."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What the chosen procedure needs of a plan's cluster. Without a plan nothing is known, and nothing is gated."""

    known: bool = False
    """False: no plan is chosen, and the rest says nothing."""
    image: str = ""
    """Path of the imported container image: once it is there, neither its space nor the registry is needed."""
    venv: bool = False
    """True where the procedure makes a Python environment on the cluster."""
    python: str | None = None
    """Oldest Python version for that environment, such as `3.10.12`; None where the recipe names none."""
    python_only: bool = False
    """True where `python`, such as `3.12`, is the only version that is right."""
    git: bool = False
    """True where something is fetched from the git host."""
    hub: bool = False
    """True where something is fetched from the model hub."""
    set_up: str = ""
    """File that says that the install is whole: once it is there, nothing is fetched from the git host any more."""
    hub_each_run: bool = False
    """True where every run fetches from the model hub, and not only the install."""
    sources: Sources = Sources()
