"""`plan`: configuration, expected speed and problems of a selection; fast enough for every key press."""

from __future__ import annotations

from collections.abc import Iterator

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.rows import ResultRow, Row
from llmb_tui.language.quantities import flops, percent, plain_number, step_time
from llmb_tui.plan import throughput
from llmb_tui.plan.checks import problems_of
from llmb_tui.plan.estimate import estimate_of, expect
from llmb_tui.plan.evidence import evidence_of
from llmb_tui.plan.memory import memory_of, memory_problems
from llmb_tui.plan.options import limit_problems, option_problems, resolved_options, steps_of, time_limit_of
from llmb_tui.plan.plan import Estimate, Expectation, Memory, Plan, Printed, Problem, PublishedResult, note, warning
from llmb_tui.plan.resolved import ResolvedSelection, resolve
from llmb_tui.plan.selection import Selection
from llmb_tui.plan.throughput import flops_per_sample

_GRAVEST_FIRST = ("error", "warning", "note")


def plan(catalog: Catalog, selection: Selection) -> Plan:
    """All facts about a selection before it runs.

    Any numbers give a plan; one that cannot run has a problem of severity `error`. Raises `UnknownNameError` for a
    recipe, size or GPU type without a preset.
    """
    resolved = resolve(catalog, selection)
    expected = expect(resolved, evidence_of(catalog))
    estimate = estimate_of(resolved, expected) if isinstance(expected, Expectation) else None
    result = expected.published if isinstance(expected, Expectation) else None
    steps, limit = steps_of(resolved), time_limit_of(resolved)
    problems = [*problems_of(resolved), *limit_problems(resolved, estimate), *option_problems(resolved, steps, limit)]
    if isinstance(expected, str):
        problems.append(_no_estimate(expected, impossible=any(p.severity == "error" for p in problems)))
    memory = memory_of(resolved)
    problems += _broken_presets(catalog, resolved)
    problems += [*memory_problems(resolved, memory), *_notes(resolved, result, estimate)]
    if isinstance(expected, Expectation):
        problems += _estimate_notes(expected, memory)
    runs_on = resolved.recipe.gpus.get(selection.gpu)
    versions = resolved.recipe.containers.get(runs_on.container) if runs_on else None
    whole = resolved.parallelism.layers == resolved.model.layers
    return Plan(
        selection=selection,
        scaling=resolved.scaling,
        nodes=-(-selection.scale // resolved.gpu.gpus_per_node),
        gpus_per_node=resolved.gpu.gpus_per_node,
        parallelism=resolved.parallelism,
        printed=Printed(**resolved.base.rows[selection.scale].printed) if resolved.listed else None,
        published=_published_result(result) if result else None,
        estimate=estimate,
        memory=memory,
        checkpoint_gb=resolved.model.checkpoint_gb if whole else None,
        gpu_hours=throughput.gpu_hours(selection.scale, steps, estimate.step_time_s) if estimate else None,
        steps=steps,
        time_limit=limit,
        container=runs_on.container if runs_on else None,
        problems=tuple(sorted(problems, key=lambda problem: _GRAVEST_FIRST.index(problem.severity))),
        precision_variant=resolved.variant,
        options=resolved_options(resolved),
        container_versions=tuple(versions.versions.items()) if versions else (),
    )


def _published_result(result: ResultRow) -> PublishedResult:
    return PublishedResult(
        step_time_s=result.step_time_s,
        tokens_per_s=result.tokens_per_s,
        mfu_pct=result.mfu_pct,
        days_per_1t_tokens=result.days_per_1t_tokens,
        source=result.source,
        note=result.note,
    )


def _broken_presets(catalog: Catalog, resolved: ResolvedSelection) -> Iterator[Problem]:
    """Warnings about invalid presets that may be a newer release of this recipe."""
    for preset in catalog.in_place_of(resolved.recipe):
        which = f"of {preset.workload}" if preset.workload else "that may be of this workload"
        which += f"@{preset.release}" if preset.workload and preset.release else ""
        reason = f"A preset {which} is invalid and was skipped: {preset.words}"
        yield warning("release", reason, "Correct the file; `llmb-tui config validate` lists every fault.")


def _no_estimate(why: str, *, impossible: bool) -> Problem:
    """A note if the plan cannot run anyway, else a warning: the run will have no verdict."""
    if impossible:
        return note("estimate", why)
    return warning("estimate", why, "The run is possible, but will have no verdict.")


def _notes(resolved: ResolvedSelection, result: ResultRow | None, estimate: Estimate | None) -> Iterator[Problem]:
    """Notes on the published numbers of a plan."""
    yield from _row_notes(resolved, resolved.base.row_for(resolved.selection.scale))
    if estimate is None:
        return
    if result and result.note:
        yield _note("published", result.note)
    printed, runs = resolved.recipe.printed_flops, resolved.parallelism
    if result and printed:
        older = flops_per_sample(printed, resolved.model, runs.layers, runs.seq_len)
        yield _note(
            "mfu_pct",
            f"NVIDIA's README: MFU {plain_number(result.mfu_pct)} %, by an older formula ({flops(older)} FLOPs per "
            f"sample); the corrected formula ({flops(estimate.model_flops_per_sample)}) gives "
            f"{percent(estimate.mfu_pct)}.",
        )
    if resolved.recipe.flops.causal:
        yield _note("mfu_pct", "The formula counts half of the attention scores (causal); other recipes count all.")


def _row_notes(resolved: ResolvedSelection, row: Row) -> Iterator[Problem]:
    """Notes on differences between script and README, and on the row or the model."""
    corrections = [c for c in resolved.recipe.corrections if c.size == row.size and (not c.gpus or row.gpus in c.gpus)]
    for correction in corrections:
        yield _note(correction.column, correction.reason)
    if resolved.listed:
        for text in row.notes:
            if not any(text.startswith(correction.reason) for correction in corrections):
                yield _note("printed", text)
    if resolved.model.note:
        yield _note("size", resolved.model.note)


def _estimate_notes(expected: Expectation, memory: Memory | None) -> Iterator[Problem]:
    """Notes on an estimate by the model, and on an estimate from another scaling of the precision."""
    if expected.other_variant:
        yield _note("estimate", f"{expected.other_variant} The band is wider, and the verdict will be WARN")
    high = expected.step_time_s * (1 + expected.half_width_pct / 100)
    if expected.new_layout:
        reason = "This layout was never published. Published layouts are tuned; a poor one can take longer than"
        yield _note("estimate", f"{reason} {step_time(high)}")
    if expected.method == "modelled" and memory and memory.verdict == "needs recompute or sharding":
        reason = "The estimate does not include the recomputation or sharding that the memory requires"
        yield _note("estimate", reason)


def _note(field: str, reason: str) -> Problem:
    """A note, ended with a full stop."""
    return note(field, reason if reason.endswith(".") else f"{reason}.")
