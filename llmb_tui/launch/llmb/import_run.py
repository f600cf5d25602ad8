"""`import_run`: a run that NVIDIA's llmb-run started becomes one that is remembered here: watched, judged, cancelled.

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
from llmb_tui.cluster.llmb.install import find_installs
from llmb_tui.cluster.session import Session
from llmb_tui.errors import Trouble
from llmb_tui.launch.llmb.llmb_run import LlmbRun
from llmb_tui.launch.llmb.run import list_runs
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs, impossible_count
from llmb_tui.plan import make
from llmb_tui.plan.plan import Plan, Problem
from llmb_tui.plan.request import read_request
from llmb_tui.plan.selection import Overrides, Selection

# Whatever else is odd about a selection, these a preset has to know: there is nothing to read the log by without.
_NEEDED = ("size", "gpu", "dtype", "strong_scaling")
# NeMo-Run's folder is named so from release 25.08 on.
_LAYOUT = re.compile(r"_tp(\d+)_pp(\d+)_cp(\d+)(?:_vp(\d+))?_mbs(\d+)_gbs(\d+)(?:_|$)")
_NUMBERS = ("tp", "pp", "cp", "vp", "mbs", "gbs")


@dataclass(frozen=True, slots=True)
class ImportableRun:
    """A run of llmb-run's, and what can be done with it."""

    run: LlmbRun
    plan: Plan | None
    """What is expected of it; None where it cannot be opened."""
    why_not: str = ""
    """Why it cannot be opened; empty where it can."""
    imported_id: str = ""
    """Id of the run that it is in this machine's memory; empty where it was not imported."""

    @property
    def can_be_opened(self) -> bool:
        """True for a run that has a plan, or was imported before."""
        return self.plan is not None or bool(self.imported_id)


def importable_runs(catalog: Catalog, runs: Runs, cluster: str, jobs: Sequence[LlmbRun]) -> tuple[ImportableRun, ...]:
    """Each of these jobs of a cluster with its plan, or with the reason why it cannot be opened."""
    ids = ((job, _run_id(cluster, job)) for job in jobs)
    return tuple(_importable(catalog, job, run_id if runs.has(run_id) else "") for job, run_id in ids)


def list_importable_runs(
    session: Session, catalog: Catalog, runs: Runs, job_id: str | None = None
) -> tuple[ImportableRun, ...]:
    """The newest runs that llmb-run started on a cluster, or a job's. Raises Trouble where it cannot be looked."""
    profile = session.profile
    roots = [install.root for install in find_installs(session, profile.install_dir).installs]
    return importable_runs(catalog, runs, profile.name, list_runs(session, roots, job_id))


def import_run(catalog: Catalog, runs: Runs, cluster: str, one: ImportableRun) -> Run:
    """The run in this machine's memory; the one that is there already, when it was imported before.

    Raises Trouble (exit code 1) for one that cannot be opened.
    """
    if one.imported_id:
        return runs.load(one.imported_id)
    llmb_run, plan = one.run, one.plan
    if plan is None:
        raise Trouble(f"Job {llmb_run.job_id} cannot be opened.", one.why_not, exit_code=1)
    recipe = catalog.recipe(plan.selection.workload, plan.selection.release)
    run = Run(
        _run_id(cluster, llmb_run),
        plan,
        None,
        recipe.rule,
        recipe.launch.kind,
        "llmb",
        cluster,
        created_at=llmb_run.written_at or time.time(),
        submission="submitted",
        job_ids=(llmb_run.job_id,),
        submitted_at=llmb_run.written_at or None,
        log=llmb_run.log,
        changed=changed_variables(llmb_run),
    )
    with runs.lock(run.id):
        if not runs.has(run.id):
            runs.save(run)
        return runs.load(run.id)


def changed_variables(run: LlmbRun) -> tuple[str, ...]:
    """Names of the variables that it was started with, of which its plan knows nothing."""
    return tuple(name for name in run.changed if name not in run.parameters)


def _run_id(cluster: str, run: LlmbRun) -> str:
    """The same for the same job: two that open it at once open one run. A cluster counts its jobs anew at times."""
    digest = hashlib.sha256(f"{cluster}\n{run.folder}\n{run.job_id}".encode()).hexdigest()
    return f"llmb{run.job_id}{digest[:4]}"


def _importable(catalog: Catalog, run: LlmbRun, imported_id: str) -> ImportableRun:
    try:
        return ImportableRun(run, plan_of(catalog, run), imported_id=imported_id)
    except Trouble as trouble:
        return ImportableRun(run, None, " ".join(str(trouble).split("\n")), imported_id)


def plan_of(catalog: Catalog, run: LlmbRun) -> Plan:
    """What is expected of a run. Raises Trouble, which says why it cannot be opened."""
    if run.unreadable:
        raise Trouble(run.unreadable)
    if run.log is None:
        raise Trouble("The name of its log is not known.")
    recipe = _recipe(catalog, run)
    if run.framework != recipe.launch.kind:
        raise Trouble(f"It is one of {run.framework or 'no framework'}, {recipe.id} one of {recipe.launch.kind}.")
    plan = make.plan(catalog, read_request(catalog, _request(recipe, run)))
    for problem in plan.problems:
        if problem.severity == "error" and problem.field in _NEEDED:
            raise Trouble(problem.reason)
    plan = _as_laid_out(catalog, plan, run)
    if wrong := impossible_count(plan):
        known = (one.reason for one in plan.problems if one.severity == "error" and one.field in ("scale", *_NUMBERS))
        raise Trouble(next(known, wrong))
    if not run.changed:
        return plan
    note = Problem("environment", "note", f"llmb-run started it with {', '.join(run.changed)} changed.", "")
    in_plan = _NUMBERS if _LAYOUT.search(_task(run)) else ()
    unplanned = tuple(name for name in run.parameters if name not in in_plan)
    return replace(plan, problems=(*plan.problems, note), unplanned=unplanned)


def _recipe(catalog: Catalog, run: LlmbRun) -> Recipe:
    """The preset of the run's own release; 25.12.01 and 25.12.02 are mended forms of 25.12."""
    releases = (run.release, ".".join(run.release.split(".")[:2]))
    for release in filter(None, dict.fromkeys(releases)):
        try:
            return catalog.recipe(run.workload, release)
        except Unknown:
            pass
    name = run.workload.removeprefix("pretrain_")
    presets = [recipe.id for recipe in catalog.recipes if recipe.workload == name]
    wish = f"{name} of release {run.release or 'unknown'}"
    raise Trouble(f"No preset has {wish}" + (f", only {', '.join(presets)}." if presets else "."))


def _request(recipe: Recipe, run: LlmbRun) -> dict[str, Any]:
    """The run as a selection is asked for."""
    variables = dict(run.planned)
    profile = run.profile or _is_on(variables.get("ENABLE_PROFILE"))
    return {
        "workload": recipe.workload,
        "release": recipe.release,
        "size": run.size,
        "gpu": run.gpu,
        "dtype": run.dtype,
        "scale": run.scale,
        "strong_scaling": run.strong_scaling or _is_on(variables.get("STRONG_SCALING")),
        "steps": _number(variables.get("MAX_STEPS")),
        "time_limit": variables.get("TIME_LIMIT") or None,
        "profile": profile,
        "profile_start": _number(variables.get("PROFILE_START_STEP")) if profile else None,
        "profile_stop": _number(variables.get("PROFILE_STOP_STEP")) if profile else None,
        "save_checkpoint": _is_on(variables.get("ENABLE_CHECKPOINT")),
        "load_checkpoint": variables.get("LOAD_CHECKPOINT_PATH") or None,
    }


def _as_laid_out(catalog: Catalog, plan: Plan, run: LlmbRun) -> Plan:
    """The plan with the layout that the name of the run's folder says, where that is another one."""
    match = _LAYOUT.search(_task(run))
    if match is None:
        return plan
    numbers = (int(number) if number else 1 for number in match.groups())
    layout = dict(zip(_NUMBERS, numbers, strict=True))
    expected = asdict(plan.parallelism)
    differences = {name: number for name, number in layout.items() if number != (expected[name] or 1)}
    if not differences:
        return plan
    selection: Selection = replace(plan.selection, overrides=Overrides(**differences))
    return make.plan(catalog, selection)


def _task(run: LlmbRun) -> str:
    return run.folder.rpartition("/")[2]


def _is_on(value: str | None) -> bool:
    return value is not None and value.lower() == "true"


def _number(value: str | None) -> int | None:
    return int(value) if value and value.isdecimal() else None
