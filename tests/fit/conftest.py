from __future__ import annotations

from typing import Any

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.fit.accuracy import accuracy


@pytest.fixture(scope="session")
def found(catalog: Catalog) -> dict[str, dict[str, Any]]:
    """What `llmb-tui accuracy` answers."""
    return accuracy(catalog)
