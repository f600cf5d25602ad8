"""`Chip` and `Coefficients`: data of the modelled estimate, and the schema of the files in `presets/model`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from llmb_tui.catalog.recipe import Count, Positive
from llmb_tui.catalog.settings import STRICT
from llmb_tui.toml.bounds import Bound


@dataclass(frozen=True, slots=True)
class Chip:
    """Data rates of a GPU type, decimal GB/s for one GPU. The recipes hold the peaks of their MFU."""

    __pydantic_config__ = STRICT
    generation: str
    """Chips of one generation can replace each other in the model."""
    hbm_gb_s: Positive
    nvlink_gb_s: Positive
    """One direction."""
    nvlink_domain: Count
    """Number of GPUs in one NVLink domain."""
    nic_gb_s: Positive
    """Network adapter of the GPU, one direction."""
    source: str


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Result of `python -m llmb_tui.fit`: one number for each term of the model, and the inputs."""

    __pydantic_config__ = STRICT
    date: str
    """Day of the fit, YYYY-MM-DD."""
    gpu: str
    """GPU type of the rows."""
    rows: dict[str, Count]
    """Number of rows used, by recipe."""
    inputs_sha256: str
    """Hash of the rows, models and hardware of the fit; another hash requires a new fit."""
    errors: dict[str, float]
    """Errors on the rows of the fit, per cent."""
    terms: dict[str, Annotated[float, Bound(ge=0)]]
    """By name of the term: time relative to peak rates, or the visible share."""
    stragglers: Annotated[float, Bound(ge=0)]
    """Growth of the step time with each doubling of the GPUs, as a fraction."""
