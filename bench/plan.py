"""How long one plan takes, beside decoding the line of JSON that asks for it; and lines of `plan --from` a second.

The model of the hardware is shown by itself too, once evaluated, beside the whole plan that rests on it.
"""

from __future__ import annotations

import json
import timeit
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bench._rounds import Row, in_turns
from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.load import load_presets
from llmb_tui.plan.document import document
from llmb_tui.plan.evidence import evidence_of
from llmb_tui.plan.make import plan
from llmb_tui.plan.physics import terms
from llmb_tui.plan.request import plan_line, read_request
from llmb_tui.plan.resolved import resolve, selections

ASKED: dict[str, Any] = {"workload": "nemotron4", "size": "15b", "gpu": "h100", "dtype": "bf16", "scale": 64}
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
    """Microseconds each, beside decoding the line of JSON that asks."""
    catalog = load_presets()
    made = plan(catalog, read_request(catalog, ASKED))
    lines = requests(catalog, 20)
    yield _row("read_request", lambda: read_request(catalog, ASKED))
    for kind, change in KINDS.items():
        selection = read_request(catalog, {**ASKED, **change})
        yield _row(f"plan, {kind}", partial(plan, catalog, selection))
    yield _row("the model, one evaluation", _model(catalog))
    yield _row("document", lambda: document(made))
    yield _row("one line of --from, in total", lambda: [plan_line(catalog, line) for line in lines], 1, len(lines))


def _model(catalog: Catalog) -> Callable[[], object]:
    """Physical terms and their sum for the row that is asked for."""
    draft, evidence = resolve(catalog, read_request(catalog, ASKED)), evidence_of(catalog)
    asked, model = draft.selection, evidence.model
    machine = evidence.machine(asked.gpu, draft.gpu, asked.dtype)
    if model is None or machine is None:
        raise AssertionError("the presets have no model of the hardware")
    return lambda: model.seconds(terms(draft.model, machine, asked.scale, draft.parallelism))


def requests(catalog: Catalog, scales: int = 2) -> list[str]:
    """Every published configuration, and each one some nodes of 8 GPUs larger: so many lines of each."""
    asked = [
        {
            "workload": selection.workload,
            "release": selection.release,
            "size": selection.size,
            "gpu": selection.gpu,
            "dtype": selection.dtype,
            "scale": selection.scale + 8 * more,
            "strong_scaling": selection.strong_scaling,
            "steps": 50 + more,
        }
        for more in range(scales)
        for recipe in catalog.recipes
        for selection in selections(recipe)
    ]
    return [json.dumps(request) for request in asked]


def _row(name: str, work: Callable[[], object], times: int = 200, items: int = 1) -> Row:
    """Runs it so many times, each of which does so many items."""
    line = json.dumps(ASKED)
    ways: dict[str, Callable[[], float]] = {
        "now": lambda: timeit.timeit(work, number=times) / times / items * 1e6,
        "json.loads": lambda: timeit.timeit(lambda: json.loads(line), number=2000) / 2000 * 1e6,
    }
    return Row(name, "µs", in_turns(ways))
