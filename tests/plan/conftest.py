from __future__ import annotations

from collections.abc import Callable

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.request import read_request

PlanOf = Callable[..., Plan]


@pytest.fixture(scope="session")
def plan_of(catalog: Catalog) -> PlanOf:
    """Function `plan_of("nemotron4@25.04 15b h100 bf16", 64, tp=4)`."""

    def make(names: str, scale: int, **more: object) -> Plan:
        workload, size, gpu, dtype = names.split()
        request = {"workload": workload, "size": size, "gpu": gpu, "dtype": dtype, "scale": scale, **more}
        return plan(catalog, read_request(catalog, request))

    return make
