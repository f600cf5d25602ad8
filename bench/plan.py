"""How long one plan takes, beside decoding the line of JSON that asks for it; and lines of `plan --from` a second.

The model of the hardware is shown by itself too, once evaluated, beside the whole plan that rests on it.
"""

from __future__ import annotations

import json
import timeit
from collections.abc import Callable
from functools import partial
from typing import Any

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.load import load_presets
from llmb_tui.plan.document import document
from llmb_tui.plan.evidence import evidence_of
from llmb_tui.plan.make import plan
from llmb_tui.plan.physics import terms
from llmb_tui.plan.request import plan_lines, read_request
from llmb_tui.plan.resolved import resolve, selections

ASKED: dict[str, Any] = {"workload": "nemotron4", "size": "15b", "gpu": "h100", "dtype": "bf16", "scale": 64}
KINDS: dict[str, dict[str, Any]] = {
    "published row": {},
    "between two rows": {"scale": 96},
    "beyond the last row": {"scale": 4096},
    "far beyond the last row": {"scale": 16384},
    "values by hand": {"gbs": 512, "mbs": 1},
    "another GPU type": {"gpu": "gb200"},
    "impossible": {"scale": 100, "tp": 3},
}


def main() -> None:
    """Prints microseconds, best of five, and ratios to the first line."""
    catalog = load_presets()
    line = json.dumps(ASKED)
    decode = _microseconds(lambda: json.loads(line))
    _show("json.loads of one line", decode, decode)
    _show("read_request", _microseconds(lambda: read_request(catalog, ASKED)), decode)
    for kind, change in KINDS.items():
        selection = read_request(catalog, {**ASKED, **change})
        _show(f"plan, {kind}", _microseconds(partial(plan, catalog, selection)), decode)
    _show("the model, one evaluation", _microseconds(_model(catalog)), decode)
    made = plan(catalog, read_request(catalog, ASKED))
    _show("document", _microseconds(lambda: document(made)), decode)
    lines = requests(catalog)
    each = min(timeit.repeat(lambda: list(plan_lines(catalog, lines)), number=1, repeat=5)) / len(lines) * 1e6
    _show("one line of --from, all in all", each, decode)
    print(f"{len(lines)} lines: {1e6 / each:,.0f} lines/s")


def _model(catalog: Catalog) -> Callable[[], object]:
    """Physical terms and their sum for the row that is asked for."""
    draft, evidence = resolve(catalog, read_request(catalog, ASKED)), evidence_of(catalog)
    asked, model = draft.selection, evidence.model
    machine = evidence.machine(asked.gpu, draft.gpu, asked.dtype)
    if model is None or machine is None:
        raise AssertionError("the presets have no model of the hardware")
    return lambda: model.seconds(terms(draft.model, machine, asked.scale, draft.parallelism))


def requests(catalog: Catalog) -> list[str]:
    """Every published configuration, and each one 8 GPUs off."""
    asked = [
        {
            "workload": selection.workload,
            "release": selection.release,
            "size": selection.size,
            "gpu": selection.gpu,
            "dtype": selection.dtype,
            "scale": selection.scale + more,
            "strong_scaling": selection.strong_scaling,
        }
        for recipe in catalog.recipes
        for selection in selections(recipe)
        for more in (0, 8)
    ]
    return [json.dumps(request) for request in asked] * 20


def _microseconds(work: Callable[[], object]) -> float:
    return min(timeit.repeat(work, number=2000, repeat=5)) / 2000 * 1e6


def _show(name: str, microseconds: float, base: float) -> None:
    print(f"{name:<32} {microseconds:8.1f} us {microseconds / base:8.1f} x")


if __name__ == "__main__":
    main()
