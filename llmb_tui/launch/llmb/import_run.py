"""`import_run`: store a run that NVIDIA's llmb-run submitted, to watch, judge and cancel it here.

It is never submitted from here, and its spec is None. Its expected values come from the preset of its own release.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from llmb_tui.catalog.catalog import Catalog, UnknownNameError
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.llmb.install import find_installs
from llmb_tui.cluster.session import Session
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import count_in
from llmb_tui.launch.llmb.llmb_run import LlmbRun
from llmb_tui.launch.llmb.run import list_runs
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs, impossible_count
from llmb_tui.plan import make
from llmb_tui.plan.plan import Plan, Problem
from llmb_tui.plan.request import read_request
from llmb_tui.plan.selection import Overrides, Selection

# Fields that a preset must know, however odd the rest of a selection: without them the log cannot be judged.
_NEEDED = ("size", "gpu", "dtype", "strong_scaling")
# Name of NeMo-Run's folder from release 25.08 on.
_LAYOUT = re.compile(r"_tp(\d+)_pp(\d+)_cp(\d+)(?:_vp(\d+))?_mbs(\d+)_gbs(\d+)(?:_|$)")
_NUMBERS = ("tp", "pp", "cp", "vp", "mbs", "gbs")


@dataclass(frozen=True, slots=True)
class ImportableRun:
    """A run of llmb-run, with its plan or the reason why it cannot be opened."""

    run: LlmbRun
    plan: Plan | None
    """Plan with the expected values; None if the run cannot be opened."""
    why_not: str = ""
    """Why it cannot be opened; empty if it can."""
    imported_id: str = ""
    """Id of the stored run; empty if it was not imported."""

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
    """The newest runs of llmb-run on a cluster, or the runs of one job. Raises LlmbError if it cannot be queried."""
    profile = session.profile
    roots = [install.root for install in find_installs(session, profile.install_dir).installs]
    return importable_runs(catalog, runs, profile.name, list_runs(session, roots, job_id))


def import_run(catalog: Catalog, runs: Runs, cluster: str, importable: ImportableRun) -> Run:
    """Store a run of llmb-run, and return it; an imported run is returned as it is stored.

    Raises LlmbError (exit code 1) if the run cannot be opened.
    """
    if importable.imported_id:
        return runs.load(importable.imported_id)
    llmb_run, plan = importable.run, importable.plan
    if plan is None:
        raise LlmbError(f"Job {llmb_run.job_id} cannot be opened.", importable.why_not, exit_code=1)
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
    """Names of the variables that were set for the run and that its plan does not contain."""
    return tuple(name for name in run.changed if name not in run.parameters)


def _run_id(cluster: str, run: LlmbRun) -> str:
    """Run id, always the same for a job, so that parallel imports make one run. A cluster may reuse job ids."""
    digest = hashlib.sha256(f"{cluster}\n{run.folder}\n{run.job_id}".encode()).hexdigest()
    return f"llmb{run.job_id}{digest[:4]}"


def _importable(catalog: Catalog, run: LlmbRun, imported_id: str) -> ImportableRun:
    try:
        return ImportableRun(run, plan_of(catalog, run), imported_id=imported_id)
    except LlmbError as error:
        return ImportableRun(run, None, " ".join(str(error).split("\n")), imported_id)


def plan_of(catalog: Catalog, run: LlmbRun) -> Plan:
    """Plan with the expected values of a run. Raises LlmbError with the reason why it cannot be opened."""
    if run.unreadable:
        raise LlmbError(run.unreadable)
    if run.log is None:
        raise LlmbError("The name of its log is unknown.")
    recipe = _recipe(catalog, run)
    if run.framework != recipe.launch.kind:
        raise LlmbError(f"Its framework is {run.framework or 'unknown'}, but {recipe.id} uses {recipe.launch.kind}.")
    plan = make.plan(catalog, read_request(catalog, _request(recipe, run)))
    for problem in plan.problems:
        if problem.severity == "error" and problem.field in _NEEDED:
            raise LlmbError(problem.reason)
    plan = _as_laid_out(catalog, plan, run)
    if wrong := impossible_count(plan):
        fields = ("scale", *_NUMBERS)
        reasons = (
            problem.reason for problem in plan.problems if problem.severity == "error" and problem.field in fields
        )
        raise LlmbError(next(reasons, wrong))
    if not run.changed:
        return plan
    note = Problem("environment", "note", f"llmb-run launched it with changed settings: {', '.join(run.changed)}.", "")
    in_plan = _NUMBERS if _LAYOUT.search(_task(run)) else ()
    unplanned = tuple(name for name in run.parameters if name not in in_plan)
    return replace(plan, problems=(*plan.problems, note), unplanned=unplanned)


def _recipe(catalog: Catalog, run: LlmbRun) -> Recipe:
    """Preset of the run's own release; 25.12.01 and 25.12.02 are corrected releases of 25.12."""
    releases = (run.release, ".".join(run.release.split(".")[:2]))
    for release in filter(None, dict.fromkeys(releases)):
        try:
            return catalog.recipe(run.workload, release)
        except UnknownNameError:
            pass
    name = run.workload.removeprefix("pretrain_")
    presets = [recipe.id for recipe in catalog.recipes if recipe.workload == name]
    wish = f"{name} of release {run.release or 'unknown'}"
    raise LlmbError(f"No preset has {wish}" + (f", only {', '.join(presets)}." if presets else "."))


def _request(recipe: Recipe, run: LlmbRun) -> dict[str, Any]:
    """The run as the document of a plan request."""
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
    """The plan, with the layout from the name of the run's folder if it differs."""
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
    return count_in(value or "")
