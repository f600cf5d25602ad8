"""`plan_in`: the plan that a run of the direct procedure has left in its folder, `configs/plan.json`, made anew."""

from __future__ import annotations

import json
from typing import Any

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.errors import Trouble
from llmb_tui.plan import make
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.request import read_request
from llmb_tui.plan.selection import LAYOUT

_SELECTION = ("workload", "release", "size", "gpu", "dtype", "scale")


def plan_in(catalog: Catalog, text: str) -> Plan:
    """By the presets of today, with the layout and the number of steps that the file says. It is remote text.

    Raises Trouble (exit code 1) for what is no such file, or names what no preset has.
    """
    try:
        found: Any = json.loads(text)
        selection, layout = dict(found["selection"]), dict(found["parallelism"])
        request = {
            **{name: selection.get(name) for name in _SELECTION},
            "strong_scaling": selection.get("scaling") == "strong",
            **dict(found.get("options", {})),
        }
        steps = found.get("steps")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise Trouble("It is no plan of llmb-tui.", exit_code=1) from None
    usual = make.plan(catalog, read_request(catalog, request))
    # What is as usual is not asked for: then the plan is the published one where there is one.
    named = {field.name: 1 if layout.get(field.name) is None else layout[field.name] for field in LAYOUT}
    other = {name: value for name, value in named.items() if value != (getattr(usual.parallelism, name) or 1)}
    if steps is not None and steps != usual.steps:
        other["steps"] = steps
    return make.plan(catalog, read_request(catalog, request | other)) if other else usual
