"""`request_differences`: compare the request that creates a workload with the run's record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llmb_tui.language.json_text import parse_json
from llmb_tui.launch.spec import RunaiSpec

CHECKED = "variables, image and name"


def request_differences(spec: RunaiSpec, script: str) -> Iterator[str]:
    """Names of the parts in which the request differs from the record."""
    try:
        request: Any = parse_json(script)
        body = request["spec"]
        variables = {variable["name"]: variable.get("value") for variable in body["environmentVariables"]}
        name, image, args = request["name"], body["image"], str(body["args"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        yield "everything: it is not a request for a workload"
        return
    env = {variable: value.replace("$", "$$") for variable, value in spec.env}
    yield from (variable for variable, value in env.items() if variables.get(variable) != value)
    if name != spec.workload:
        yield "name"
    if image != spec.image:
        yield "image"
    if f"--nnodes {spec.nodes} --nproc-per-node {spec.gpus_per_node} " not in args:
        yield "nodes"
