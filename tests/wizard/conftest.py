from __future__ import annotations

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.load import load_presets


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load_presets()
