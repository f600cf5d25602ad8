"""`plan`: what will run for a selection, and how fast it should be. Pure, and fast enough for every key press."""

from __future__ import annotations

from collections.abc import Iterator

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.rows import ResultRow
from llmb_tui.plan import throughput
from llmb_tui.plan.checks import problems_of
from llmb_tui.plan.draft import Draft, draft_of
from llmb_tui.plan.estimate import Expectation, estimate_of, expect
from llmb_tui.plan.evidence import evidence_of
from llmb_tui.plan.limits import limit_problems, steps_of, time_limit_of
from llmb_tui.plan.memory import memory_of, memory_problems
from llmb_tui.plan.notes import estimate_notes, formula_notes, result_notes, row_notes
from llmb_tui.plan.options import option_problems, resolved_options
from llmb_tui.plan.plan import Estimate, Plan, Printed, Problem, Published
from llmb_tui.plan.selection import Selection

_GRAVEST_FIRST = ("error", "warning", "note")


def plan(catalog: Catalog, selection: Selection) -> Plan:
    """Everything that is known about a selection before it runs.

    Whatever its numbers, there is a plan: what cannot run has a problem of severity `error`. Raises `Unknown`
    for a recipe, size or GPU type that no preset has.
    """
    draft = draft_of(catalog, selection)
    expected = expect(draft, evidence_of(catalog))
    estimate = estimate_of(draft, expected) if isinstance(expected, Expectation) else None
    result = expected.published if isinstance(expected, Expectation) else None
    steps, limit = steps_of(draft), time_limit_of(draft)
    problems = [*problems_of(draft), *limit_problems(draft, estimate), *option_problems(draft, steps, limit)]
    if isinstance(expected, str):
        problems.append(_no_estimate(expected, impossible=any(p.severity == "error" for p in problems)))
    memory = memory_of(draft)
    problems += [*memory_problems(draft, memory), *_notes(draft, result, estimate)]
    if isinstance(expected, Expectation):
        problems += estimate_notes(expected, memory)
    runs_on = draft.recipe.gpus.get(selection.gpu)
    whole = draft.parallelism.layers == draft.model.layers
    return Plan(
        selection=selection,
        scaling=draft.scaling,
        nodes=-(-selection.scale // draft.gpu.gpus_per_node),
        gpus_per_node=draft.gpu.gpus_per_node,
        parallelism=draft.parallelism,
        printed=Printed(**draft.base.rows[selection.scale].printed) if draft.listed else None,
        published=_published(result) if result else None,
        estimate=estimate,
        memory=memory,
        checkpoint_gb=draft.model.checkpoint_gb if whole else None,
        gpu_hours=throughput.gpu_hours(selection.scale, steps, estimate.step_time_s) if estimate else None,
        steps=steps,
        time_limit=limit,
        container=runs_on.container if runs_on else None,
        problems=tuple(sorted(problems, key=lambda problem: _GRAVEST_FIRST.index(problem.severity))),
        options=resolved_options(draft),
    )


def _published(result: ResultRow) -> Published:
    return Published(
        step_time_s=result.step_time_s,
        tokens_per_s=result.tokens_per_s,
        mfu_pct=result.mfu_pct,
        days_per_1t_tokens=result.days_per_1t_tokens,
        source=result.source,
        note=result.note,
    )


def _no_estimate(why: str, *, impossible: bool) -> Problem:
    """What cannot run anyway needs no estimate; what can will end without a verdict."""
    if impossible:
        return Problem("estimate", "note", why, "")
    return Problem("estimate", "warning", why, "The run can go ahead, but there will be no verdict.")


def _notes(draft: Draft, result: ResultRow | None, estimate: Estimate | None) -> Iterator[Problem]:
    yield from row_notes(draft, draft.base.row_for(draft.selection.scale))
    if result and estimate:
        yield from result_notes(draft, result, estimate)
    if estimate:
        yield from formula_notes(draft)
