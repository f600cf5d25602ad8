"""`python record.py CASES.json FACTS.json` in a NeMo's Python: flat facts that NVIDIA's scripts pass to NeMo-Run.

Each case runs a script as `python -m` does, with NeMo-Run's `Experiment` and `SlurmExecutor` replaced by classes that
only record their arguments. A fact is a field that the script or NeMo's recipe has set, by its path; unchanged defaults
are not facts.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import fiddle
import nemo_run


class Experiment:
    """Records the tasks that a script adds."""

    tasks: ClassVar[list[tuple[Any, Any, Any]]] = []

    def __init__(self, _name: str) -> None:
        self.tasks.clear()

    def __enter__(self) -> Experiment:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def add(self, task: Any, executor: Any, plugins: Any, **_: object) -> None:
        """Record a task."""
        self.tasks.append((task, executor, plugins))

    def run(self, **_: object) -> None:
        """Do nothing."""


class SlurmExecutor:
    """Stores a job's environment; plugins write to the other attributes."""

    def __init__(self, *, nodes: int, tunnel: object, env_vars: dict[str, str], **_: object) -> None:
        self.nodes, self.tunnel, self.env_vars, self.setup_lines = nodes, tunnel, env_vars, ""
        self.launcher = SimpleNamespace()

    def get_launcher(self) -> SimpleNamespace:
        """Return an object that accepts attributes."""
        return self.launcher


def facts(value: Any, path: str = "", seen: dict[int, str] | None = None) -> dict[str, Any]:
    """Value of each field by its path: JSON unchanged, a class or function by name, other values as Python's repr."""
    seen = {} if seen is None else seen
    if isinstance(value, fiddle.Buildable):
        if id(value) in seen:
            return {path: f"the same object as {seen[id(value)]}"}
        seen[id(value)] = path
        made = fiddle.get_callable(value)
        document: dict[str, Any] = {path: f"{made.__module__}:{made.__qualname__}"} if path else {}
        for name, part in fiddle.ordered_arguments(value).items():
            document |= facts(part, f"{path}.{name}" if path else name, seen)
        return document
    if isinstance(value, list) and any(isinstance(part, fiddle.Buildable) for part in value):
        document = {path: [fiddle.get_callable(part).__name__ for part in value]}
        for part in value:
            document |= facts(part, f"{path}[{fiddle.get_callable(part).__name__}]", seen)
        return document
    try:
        return {path: json.loads(json.dumps(value))}
    except TypeError:
        return {path: repr(value)}


def record(case: dict[str, Any]) -> dict[str, Any]:
    """Facts of the case's last task: its recipe and its environment."""
    os.environ |= case["env"]
    for name in case["unset"]:
        os.environ.pop(name, None)
    module, *arguments = case["argv"]
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    recipe, executor, plugins = Experiment.tasks[-1]
    for plugin in plugins:
        plugin.setup(recipe, executor)
    return {"recipe": facts(recipe), "env": executor.env_vars}


def main(cases: Path, answers: Path) -> None:
    """Record every case of one file into another."""
    nemo_run.Experiment, nemo_run.SlurmExecutor = Experiment, SlurmExecutor
    found = {key: record(case) for key, case in json.loads(cases.read_text()).items()}
    answers.write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
