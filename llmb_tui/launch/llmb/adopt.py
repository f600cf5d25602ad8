"""`adopt`: a run that NVIDIA's llmb-run started becomes one that is remembered here: watched, judged, cancelled.

It is never submitted from here, and its spec is None. What is expected of it comes from the preset of its own release.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from llmb_tui.catalog.catalog import Catalog, Unknown
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.errors import Trouble
from llmb_tui.launch.llmb.run import LlmbRun
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan, Problem
from llmb_tui.plan.request import read_request
from llmb_tui.plan.selection import Overrides, Selection

# Whatever else is odd about a selection, these a preset has to know: there is nothing to read the log by without.
_NEEDED = ("size", "gpu", "dtype", "strong_scaling")
# NeMo-Run's folder is named so from release 25.08 on.
_LAYOUT = re.compile(r"_tp(\d+)_pp(\d+)_cp(\d+)(?:_vp(\d+))?_mbs(\d+)_gbs(\d+)(?:_|$)")


@dataclass(frozen=True, slots=True)
class Listed:
    """A run of llmb-run's, and what can be done with it."""

    run: LlmbRun
    plan: Plan | None
    """What is expected of it; None where it cannot be opened."""
    why_not: str = ""
    """Why it cannot be opened; empty where it can."""
    opened: str = ""
    """Id of the run that it is here already; empty where it is none."""


def listed(catalog: Catalog, runs: Runs, cluster: str, found: Sequence[LlmbRun]) -> tuple[Listed, ...]:
    """Each found run of a cluster with its plan, or with the reason why it cannot be opened."""
    return tuple(_listed(catalog, run, _opened(runs, cluster, run)) for run in found)


def adopt(catalog: Catalog, runs: Runs, cluster: str, one: Listed) -> Run:
    """The run in this machine's memory; the one that is there already, when it was adopted before.

    Raises Trouble (exit code 1) for one that cannot be opened.
    """
    if one.opened:
        return runs.load(one.opened)
    found, made = one.run, one.plan
    if made is None:
        raise Trouble(f"Job {found.job_id} cannot be opened.", one.why_not, exit_code=1)
    recipe = catalog.recipe(made.selection.workload, made.selection.release)
    run = Run(
        _run_id(cluster, found),
        made,
        None,
        recipe.rule,
        recipe.launch.kind,
        "llmb-run",
        cluster,
        created_at=found.written_at or time.time(),
        submission="submitted",
        job_ids=(found.job_id,),
        submitted_at=found.written_at or None,
        log=found.log,
    )
    with runs.lock(run.id):
        if not runs.has(run.id):
            runs.save(run)
        return runs.load(run.id)


def _opened(runs: Runs, cluster: str, found: LlmbRun) -> str:
    run_id = _run_id(cluster, found)
    return run_id if runs.has(run_id) else ""


def _run_id(cluster: str, found: LlmbRun) -> str:
    """The same for the same job: two that open it at once open one run. A cluster counts its jobs anew at times."""
    digest = hashlib.sha256(f"{cluster}\n{found.folder}\n{found.job_id}".encode()).hexdigest()
    return f"llmb{found.job_id}{digest[:4]}"


def _listed(catalog: Catalog, run: LlmbRun, opened: str) -> Listed:
    try:
        return Listed(run, _plan(catalog, run), opened=opened)
    except Trouble as trouble:
        why = trouble.why if isinstance(trouble, _CannotOpen) else str(trouble)
        return Listed(run, None, " ".join(why.split("\n")), opened)


class _CannotOpen(Trouble):
    """Why a run cannot be opened. Exit code 1."""

    def __init__(self, why: str) -> None:
        super().__init__("This run cannot be opened.", why, exit_code=1)


def _plan(catalog: Catalog, run: LlmbRun) -> Plan:
    if run.unreadable:
        raise _CannotOpen(run.unreadable)
    if run.log is None:
        raise _CannotOpen("The name of its log is not known.")
    recipe = _recipe(catalog, run)
    if run.framework != recipe.launch.kind:
        raise _CannotOpen(f"It is one of {run.framework or 'no framework'}, {recipe.id} one of {recipe.launch.kind}.")
    made = plan(catalog, read_request(catalog, _request(recipe, run)))
    for problem in made.problems:
        if problem.severity == "error" and problem.field in _NEEDED:
            raise _CannotOpen(problem.reason)
    made = _as_laid_out(catalog, made, run)
    if not run.changed:
        return made
    note = Problem("environment", "note", f"llmb-run started it with {', '.join(run.changed)} changed.", "")
    return replace(made, problems=(*made.problems, note))


def _recipe(catalog: Catalog, run: LlmbRun) -> Recipe:
    """The preset of the run's own release; 25.12.01 and 25.12.02 are mended forms of 25.12."""
    releases = (run.release, ".".join(run.release.split(".")[:2]))
    for release in filter(None, dict.fromkeys(releases)):
        try:
            return catalog.recipe(run.workload, release)
        except Unknown:
            pass
    name = run.workload.removeprefix("pretrain_")
    there = [recipe.id for recipe in catalog.recipes if recipe.workload == name]
    asked = f"{name} of release {run.release or 'unknown'}"
    raise _CannotOpen(f"No preset has {asked}" + (f", only {', '.join(there)}." if there else "."))


def _request(recipe: Recipe, run: LlmbRun) -> dict[str, Any]:
    """The run as a selection is asked for."""
    given = dict(run.planned)
    profile = run.profile or _is_on(given.get("ENABLE_PROFILE"))
    return {
        "workload": recipe.workload,
        "release": recipe.release,
        "size": run.size,
        "gpu": run.gpu,
        "dtype": run.dtype,
        "scale": run.scale,
        "strong_scaling": run.strong_scaling or _is_on(given.get("STRONG_SCALING")),
        "steps": _number(given.get("MAX_STEPS")),
        "time_limit": given.get("TIME_LIMIT") or None,
        "profile": profile,
        "profile_start": _number(given.get("PROFILE_START_STEP")) if profile else None,
        "profile_stop": _number(given.get("PROFILE_STOP_STEP")) if profile else None,
        "save_checkpoint": _is_on(given.get("ENABLE_CHECKPOINT")),
        "load_checkpoint": given.get("LOAD_CHECKPOINT_PATH") or None,
    }


def _as_laid_out(catalog: Catalog, made: Plan, run: LlmbRun) -> Plan:
    """The plan with the layout that the name of the run's folder says, where that is another one."""
    named = _LAYOUT.search(run.folder.rpartition("/")[2])
    if named is None:
        return made
    said = dict(zip(("tp", "pp", "cp", "vp", "mbs", "gbs"), (int(n) if n else 1 for n in named.groups()), strict=True))
    expected = asdict(made.parallelism)
    other = {name: number for name, number in said.items() if number != (expected[name] or 1)}
    if not other:
        return made
    selection: Selection = replace(made.selection, overrides=Overrides(**other))
    return plan(catalog, selection)


def _is_on(value: str | None) -> bool:
    return value is not None and value.lower() == "true"


def _number(value: str | None) -> int | None:
    return int(value) if value and value.isdecimal() else None
