"""Measure the time of one plan and of its parts, and compare it with decoding the JSON line of the request.

The evaluation of the hardware model has a separate row, as have a request, a document and one line of `plan --from`.
"""

from __future__ import annotations

import json
import timeit
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bench._rounds import Row, measure
from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.load import load_presets
from llmb_tui.plan.document import document
from llmb_tui.plan.evidence import evidence_of
from llmb_tui.plan.make import plan
from llmb_tui.plan.physics import terms
from llmb_tui.plan.request import plan_line, read_request
from llmb_tui.plan.resolved import resolve, selections

REQUEST: dict[str, Any] = {"workload": "nemotron4", "size": "15b", "gpu": "h100", "dtype": "bf16", "scale": 64}
KINDS: dict[str, dict[str, Any]] = {
    "published row": {},
    "between two rows": {"scale": 96},
    "beyond the last row": {"scale": 4096},
    "far beyond the last row": {"scale": 16384},
    "custom values": {"gbs": 512, "mbs": 1},
    "another GPU type": {"gpu": "gb200"},
    "impossible": {"scale": 100, "tp": 3},
}


def rows() -> Iterator[Row]:
    """Measure all rows, in microseconds."""
    catalog = load_presets()
    planned = plan(catalog, read_request(catalog, REQUEST))
    lines = requests(catalog, 20)
    yield _row("read_request", lambda: read_request(catalog, REQUEST))
    for kind, change in KINDS.items():
        selection = read_request(catalog, {**REQUEST, **change})
        yield _row(f"plan, {kind}", partial(plan, catalog, selection))
    yield _row("the model, one evaluation", _model(catalog))
    yield _row("document", lambda: document(planned))
    yield _row("one line of --from, in total", lambda: [plan_line(catalog, line) for line in lines], 1, len(lines))


def _model(catalog: Catalog) -> Callable[[], object]:
    """Return a function that evaluates the physical terms of `REQUEST` and their sum."""
    draft, evidence = resolve(catalog, read_request(catalog, REQUEST)), evidence_of(catalog)
    selection, model = draft.selection, evidence.model
    machine = evidence.machine(selection.gpu, draft.gpu, selection.dtype)
    if model is None or machine is None:
        raise AssertionError("the presets have no model of the hardware")
    return lambda: model.seconds(terms(draft.model, machine, selection.scale, draft.parallelism))


def requests(catalog: Catalog, scales: int = 2) -> list[str]:
    """Return JSON requests: each published configuration at `scales` scales, in steps of 8 GPUs."""
    fields = [
        {
            "workload": selection.workload,
            "release": selection.release,
            "size": selection.size,
            "gpu": selection.gpu,
            "dtype": selection.dtype,
            "scale": selection.scale + 8 * number,
            "strong_scaling": selection.strong_scaling,
            "steps": 50 + number,
        }
        for number in range(scales)
        for recipe in catalog.recipes
        for selection in selections(recipe)
    ]
    return [json.dumps(request) for request in fields]


def _row(name: str, work: Callable[[], object], times: int = 200, items: int = 1) -> Row:
    """Measure the microseconds of one item: `work` is called `times` times and does `items` items each time."""
    line = json.dumps(REQUEST)
    ways: dict[str, Callable[[], float]] = {
        "now": lambda: timeit.timeit(work, number=times) / times / items * 1e6,
        "json.loads": lambda: timeit.timeit(lambda: json.loads(line), number=2000) / 2000 * 1e6,
    }
    return Row(name, "µs", measure(ways))
