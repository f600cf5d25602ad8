"""`plan`: what will run for a selection, and how fast it should be. Pure, and fast enough for every key press."""

from __future__ import annotations

from collections.abc import Iterator

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.rows import ResultRow, Row
from llmb_tui.language.quantities import flops, given, percent, step_time
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
    """Everything that is known about a selection before it runs.

    Whatever its numbers, there is a plan: what cannot run has a problem of severity `error`. Raises `Unknown`
    for a recipe, size or GPU type that no preset has.
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
    problems += _passed_over(catalog, resolved)
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


def _passed_over(catalog: Catalog, resolved: ResolvedSelection) -> Iterator[Problem]:
    """Presets that cannot be used, in whose place this recipe may have been taken."""
    for preset in catalog.in_place_of(resolved.recipe):
        which = f"of {preset.workload}" if preset.workload else "that may be of this workload"
        which += f"@{preset.release}" if preset.workload and preset.release else ""
        reason = f"A preset {which} was passed over, because it cannot be used: {preset.words}"
        yield warning("release", reason, "Correct it; `llmb-tui config validate` names every fault.")


def _no_estimate(why: str, *, impossible: bool) -> Problem:
    """What cannot run anyway needs no estimate; what can will end without a verdict."""
    if impossible:
        return note("estimate", why)
    return warning("estimate", why, "The run can go ahead, but there will be no verdict.")


def _notes(resolved: ResolvedSelection, result: ResultRow | None, estimate: Estimate | None) -> Iterator[Problem]:
    """What is odd about the published numbers that a plan shows."""
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
            f"Printed {given(result.mfu_pct)} %, made with an older formula ({flops(older)} FLOPs per sample); "
            f"the corrected one ({flops(estimate.model_flops_per_sample)}) gives {percent(estimate.mfu_pct)}.",
        )
    if resolved.recipe.flops.causal:
        yield _note("mfu_pct", "The formula counts attention scores half (causal); the other recipes count them whole.")


def _row_notes(resolved: ResolvedSelection, row: Row) -> Iterator[Problem]:
    """Where the script runs something else than the README prints, and what is odd about the row or the model."""
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
    """What a modelled step time does not say, and one of another variant."""
    if expected.other_variant:
        yield _note("estimate", f"{expected.other_variant} The band is wider for that, and the verdict will be WARN")
    high = expected.step_time_s * (1 + expected.half_width_pct / 100)
    if expected.new_layout:
        reason = "Nobody has published this layout. Published ones are tuned: a poor one can take longer than"
        yield _note("estimate", f"{reason} {step_time(high)}")
    if expected.method == "modelled" and memory and memory.verdict == "needs recompute or sharding":
        reason = "The recomputation or sharding that memory asks for takes time that is not in the estimate"
        yield _note("estimate", reason)


def _note(field: str, reason: str) -> Problem:
    """Something to know; there is nothing to mend."""
    return note(field, reason if reason.endswith(".") else f"{reason}.")
