from __future__ import annotations

from typing import Any

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.fit.accuracy import accuracy


@pytest.fixture(scope="session")
def case_errors(catalog: Catalog) -> dict[str, dict[str, Any]]:
    """Errors by case, as `llmb-tui accuracy --json` prints them."""
    return accuracy(catalog)
