"""Comparison of a run's record, settings and script with the result of its recipe's preset for its plan."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.load import load_presets, read_preset
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.evidence.findings import Finding, compared
from llmb_tui.language.quantities import count, step_time_range
from llmb_tui.language.states import FindingOutcome
from llmb_tui.launch.files import config_files
from llmb_tui.launch.procedure_loader import procedure
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.launch.run import Run
from llmb_tui.launch.settings import ResolvedSettings, resolve_settings
from llmb_tui.plan.make import plan as make_plan
from llmb_tui.plan.plan import PRINTED_METHODS, Estimate, Plan
from llmb_tui.request import RunRequest

_OF_PLAN = (
    "scaling nodes gpus_per_node parallelism printed published steps container precision_variant options"
).split()
"""Fields of a plan that depend on its recipe alone: a new fit does not change published values, and only with them can
a verdict be PASS."""
_OF_STEP_TIME = ("tokens_per_s", "tflops_per_gpu", "mfu_pct")
"""Figures whose product with the estimate's step time is constant, whatever was fitted."""
_MOST_GPUS = 1 << 20
_PLAN = "plan against preset"
_NOWHERE = SlurmProfile("", "", "", "", "/")
"""Profile for computing what a preset gives for a plan on any cluster."""


@cache
def _builtin() -> Catalog:
    return load_presets()


class PresetCheck:
    """Compares runs with the preset in an archive, and that preset with this program's own of the same release."""

    def __init__(self) -> None:
        self._own = _builtin()
        self._read = cache(_recipe_or_error)  # the runs of an archive share presets

    def findings(self, run: Run, script: str, preset: Path | None) -> Iterator[Finding]:
        """Compare a run with a preset. `preset`: file in the archive; None if there is none."""
        recipe_id = run.plan.selection.recipe_id
        if run.plan.selection.scale > _MOST_GPUS:  # some settings list all GPUs
            yield Finding(run.id, _PLAN, "differs", f"No cluster has {count(run.plan.selection.scale)} GPUs.")
            return
        if preset is None:
            yield Finding(run.id, "preset", "unknown", f"The archive has no preset of {recipe_id}.")
            return
        recipe = self._read(preset)
        if isinstance(recipe, LlmbError):
            yield Finding(run.id, "preset", "differs", f"The preset cannot be read: {recipe.what}")
            return
        if recipe.id != recipe_id:
            yield Finding(run.id, "preset", "differs", f"The preset is of {recipe.id}, but the run is of {recipe_id}.")
            return
        yield self._same_preset(run, recipe)
        yield from _plan_findings(run, recipe, self._catalog_with(recipe))
        yield _settings_finding(run, recipe)
        yield _script_finding(run, script)

    def _catalog_with(self, recipe: Recipe) -> Catalog:
        """The presets of this program, with the archive's preset in the place of its own."""
        others = tuple(own for own in self._own.recipes if own.id != recipe.id)
        return Catalog((*others, recipe), self._own.chips, self._own.coefficients)

    def _same_preset(self, run: Run, recipe: Recipe) -> Finding:
        what = "preset against this program's"
        own = next((known for known in self._own.recipes if known.id == recipe.id), None)
        if own is None:
            return Finding(run.id, what, "unknown", f"This program has no preset of {recipe.id}.")
        if asdict(own) == asdict(recipe):
            return Finding(run.id, what, "agrees", f"{recipe.id} is the same in this program.")
        wrong = _unlike(run, own, _planned(self._own, run.plan))
        if (settings := _settings_of(run, own)) != _settings_of(run, recipe):
            wrong.append("settings" if settings else "plan")
        alike = f"{recipe.id} differs in this program, but not for this run."
        return compared(run.id, what, wrong, "The presets differ for this run", alike)


def _recipe_or_error(preset: Path) -> Recipe | LlmbError:
    try:
        return read_preset(preset)
    except LlmbError as error:
        return error


def _plan_findings(run: Run, recipe: Recipe, catalog: Catalog) -> Iterator[Finding]:
    planned = _planned(catalog, run.plan)
    if not isinstance(planned, Plan):
        yield Finding(run.id, _PLAN, "differs", planned)
        return
    wrong = _unlike(run, recipe, planned)
    if recipe.launch.kind != run.log_format:
        wrong.append("log format")
    yield compared(run.id, _PLAN, wrong, "Different from the preset's plan", "The preset gives the same plan.")
    yield _estimate_finding(run, planned.estimate)


def _estimate_finding(run: Run, ours: Estimate | None) -> Finding:
    theirs, what = run.plan.estimate, "expected step time"
    if theirs is None:
        same = ours is None
        return Finding(
            run.id,
            what,
            "agrees" if same else "unknown",
            "Neither has an estimate." if same else "Only this program has an estimate.",
        )
    archived = f"The archive has {_estimate_words(theirs)}."
    if ours is None:
        outcome: FindingOutcome = "differs" if theirs.method in PRINTED_METHODS else "unknown"
        return Finding(run.id, what, outcome, f"{archived} This program has no estimate for this plan.")
    same_value = (theirs.step_time_s, theirs.method) == (ours.step_time_s, ours.method)
    same_band = math.isclose(theirs.low_s, ours.low_s) and math.isclose(theirs.high_s, ours.high_s)
    if same_value and same_band:
        return Finding(run.id, what, "agrees", f"{_estimate_words(theirs)}, as in this program.")
    current = f"This program has {_estimate_words(ours)}"
    if same_value:
        archived = f"{archived[:-1]}, {step_time_range(theirs.low_s, theirs.high_s)}."
        current = f"{current}, {step_time_range(ours.low_s, ours.high_s)}"
    if theirs.method in PRINTED_METHODS:
        return Finding(run.id, what, "differs", f"{archived} {current}.")
    return Finding(run.id, what, "unknown", f"{archived} {current}; its model may have been fitted again since.")


def _estimate_words(estimate: Estimate) -> str:
    return f"{estimate.step_time_text} ({estimate.method.replace('_', ' ')})"


def _settings_finding(run: Run, recipe: Recipe) -> Finding:
    what, spec = "settings against preset", run.spec
    if spec is None or spec.variables is None:
        words = "NVIDIA's scripts set them, and the archive does not contain these scripts."
        return Finding(run.id, what, "unknown", words)
    settings = _settings_of(run, recipe)
    if settings is None:
        return Finding(run.id, what, "differs", "The preset gives no settings for this plan.")
    env, changed = spec.variables, {name for name, _, _ in spec.changed_variables}
    wrong = [name for name, value in settings.env.items() if name not in changed and env.get(name) != value]
    for path, text in config_files(RunRequest(recipe, run.plan, _NOWHERE, run.procedure), settings):
        if not path.endswith("plan.json") and spec.sent_files.get(path) != text:
            wrong.append(path)
    training = (*recipe.launch.command, *settings.overrides) if not recipe.launch.by_entry_script else ()
    if not spec.has_command(settings.prefix, training):
        wrong.append("command")
    more = sorted(set(env) - set(settings.env))
    notes = [*(f"{name} was changed by the cluster's profile" for name in sorted(changed))]
    notes += [f"not in the preset: {', '.join(more)}"] if more else []
    finding = compared(run.id, what, wrong, "Different from the preset", "Same as in the preset.")
    return replace(finding, words=finding.words + (f" ({'; '.join(notes)})" if notes else ""))


def _script_finding(run: Run, script: str) -> Finding:
    what = "script against settings"
    if not script or run.spec is None:
        return Finding(run.id, what, "unknown", "The archive has no script.")
    if type(run.spec) is not PROCEDURES[run.procedure].spec:
        return Finding(run.id, what, "differs", "The settings belong to another launch method.")
    check = procedure(run.procedure).compare_script(run, script)
    agrees = f"The script has {check.checked} as in the settings."
    return compared(run.id, what, check.differences, "Different from the settings", agrees)


def _planned(catalog: Catalog, theirs: Plan) -> Plan | str:
    """Current plan for a run's selection, or the reason why there is none."""
    try:
        return make_plan(catalog, theirs.selection)
    except (LlmbError, ArithmeticError, LookupError, ValueError) as error:
        return f"No plan can be made of its selection: {error}"


def _unlike(run: Run, recipe: Recipe, ours: Plan | str) -> list[str]:
    """Parts of a run's plan that differ from the current plan of a recipe; or the reason why there is no plan."""
    if not isinstance(ours, Plan):
        return [ours]
    wrong = [name for name in _OF_PLAN if getattr(run.plan, name) != getattr(ours, name)]
    if run.plan.estimate is not None and ours.estimate is not None:
        wrong += _unlike_estimate(run.plan.estimate, ours.estimate)
    wrong += [] if recipe.rule == run.rule else ["rule"]
    return [name.replace("_", " ") for name in wrong]


def _unlike_estimate(theirs: Estimate, ours: Estimate) -> Iterator[str]:
    """Parts of an estimate that differ from the current one, without those that a new fit may change."""
    if theirs.flops_formula != ours.flops_formula:
        yield "flops_formula"
    for name in ("model_flops_per_sample", "peak_tflops"):
        if not math.isclose(getattr(theirs, name), getattr(ours, name)):
            yield name
    for name in _OF_STEP_TIME:
        first, second = (getattr(estimate, name) * estimate.step_time_s for estimate in (theirs, ours))
        if not math.isclose(first, second):
            yield name
    # The basis of a fitted estimate changes with other published values. Another version may word the sentence
    # differently.
    printed = theirs.method == ours.method and ours.method in PRINTED_METHODS
    if printed and bool(theirs.other_variant) is not bool(ours.other_variant):
        yield "other_variant"


def _settings_of(run: Run, recipe: Recipe) -> ResolvedSettings | None:
    try:
        return resolve_settings(RunRequest(recipe, run.plan, _NOWHERE, run.procedure))
    except (LlmbError, ArithmeticError, LookupError, ValueError):
        return None
