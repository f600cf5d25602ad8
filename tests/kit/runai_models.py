"""The models that the package runapy generates from NVIDIA's contract; importing it takes seconds."""

from __future__ import annotations

import importlib
import re
from typing import Any


def model(name: str) -> Any:
    """A model by its name, such as `TrainingCreationRequest`."""
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    return getattr(importlib.import_module(f"runai.models.{module}"), name)
