"""`Chip` and `Coefficients`: the data behind the modelled estimate. The schema of the files in `presets/model`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from llmb_tui.catalog.recipe import Count, Positive
from llmb_tui.catalog.settings import STRICT
from llmb_tui.toml.bounds import Bound


@dataclass(frozen=True, slots=True)
class Chip:
    """Data rates of a GPU type, decimal GB/s for one GPU. Peaks stand in the recipes, as their MFU takes them."""

    __pydantic_config__ = STRICT
    generation: str
    """Chips of one generation are alike enough for one to stand in for another."""
    hbm_gb_s: Positive
    nvlink_gb_s: Positive
    """In one direction."""
    nvlink_domain: Count
    """GPUs that NVLink joins."""
    nic_gb_s: Positive
    """Of the GPU's own network adapter, in one direction."""
    source: str


@dataclass(frozen=True, slots=True)
class Coefficients:
    """What `python -m llmb_tui.fit` found: one number for each term of the physics, and what it was found from."""

    __pydantic_config__ = STRICT
    date: str
    """Day of the fit, YYYY-MM-DD."""
    gpu: str
    """The GPU type whose rows were used."""
    rows: dict[str, Count]
    """Number of rows used, by recipe."""
    inputs_sha256: str
    """Of the rows, the models and the hardware that went in: another hash asks for another fit."""
    errors: dict[str, float]
    """Per cent, on the rows of the fit."""
    terms: dict[str, Annotated[float, Bound(ge=0)]]
    """By name of the term; how much longer than at peak rates its work takes, or which share of it shows."""
    stragglers: Annotated[float, Bound(ge=0)]
    """Share by which a step gets longer with each doubling of the GPUs."""
