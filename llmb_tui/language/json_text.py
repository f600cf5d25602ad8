"""`parse_json`: the reader of JSON that another program, an older version or a person wrote."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Value of a JSON text. Raises ValueError for every text that cannot be read, also for deep nesting."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
