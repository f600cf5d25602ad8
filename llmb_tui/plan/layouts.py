"""`layouts`: the valid layouts of a selection at its scale, fastest estimate first."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.layout import fills_pipeline, sequence_pieces, shared_heads, stage_places
from llmb_tui.plan.checks import unusual_of
from llmb_tui.plan.estimate import estimate_of, expect
from llmb_tui.plan.evidence import Evidence, evidence_of
from llmb_tui.plan.memory import memory_of
from llmb_tui.plan.plan import Estimate, Expectation, Memory, Parallelism
from llmb_tui.plan.resolved import ResolvedSelection, quotient, resolve
from llmb_tui.plan.rules import divisors, runs_as_listed, tensor_reach
from llmb_tui.plan.selection import Overrides, Selection

_FREE = ("tp", "pp", "cp", "ep", "vp", "mbs")


@dataclass(frozen=True, slots=True)
class Layout:
    """One layout of a model over the GPUs, with its estimate."""

    overrides: Overrides
    """Overrides that select the layout: only values that differ from the recipe's row."""
    parallelism: Parallelism
    estimate: Estimate | None
    memory: Memory | None
    published: bool
    """True for the recipe's row at this scale."""
    unusual: tuple[str, ...]
    """Unpublished or slow properties, in short sentences."""


@dataclass(frozen=True, slots=True)
class Layouts:
    """The best layouts for a selection, and the number of valid ones."""

    best: tuple[Layout, ...]
    valid: int
    """Number of valid layouts, in `best` or not."""


def layouts(catalog: Catalog, selection: Selection, most: int = 20) -> Layouts:
    """At most `most` layouts with TP, PP, CP, EP, VP and MBS of any size; batch, sequence and layers stay.

    Layouts that fit or are tight come first, fastest first, those without an estimate last; layouts that need
    recomputation or sharding come after all of them. The published layout is always included. TP stays on NVLink.
    Raises `UnknownNameError` for a recipe, size or GPU type without a preset.
    """
    resolved = resolve(catalog, selection)
    fitting: list[ResolvedSelection] = []
    tight: list[ResolvedSelection] = []
    for runs in _valid(resolved):
        candidate = replace(resolved, parallelism=runs)
        memory = memory_of(candidate)
        (tight if memory and memory.verdict == "needs recompute or sharding" else fitting).append(candidate)
    evidence = evidence_of(catalog)
    best = _fastest(fitting, evidence, most)
    if len(best) < most:
        best += _fastest(tight, evidence, most - len(best))
    candidates = _with_published(best, [*fitting, *tight])
    return Layouts(
        tuple(_layout(catalog, selection, candidate, evidence) for candidate in candidates), len(fitting) + len(tight)
    )


def _valid(resolved: ResolvedSelection) -> Iterator[Parallelism]:
    """Every layout that satisfies the divisibility rules."""
    runs, model, scale = resolved.parallelism, resolved.model, resolved.selection.scale
    places = stage_places(model, runs.layers)
    reach = tensor_reach(resolved)
    for tp in divisors(shared_heads(model)):
        if tp > reach or scale % tp:
            continue
        for cp in divisors(scale // tp):
            if runs.seq_len % sequence_pieces(tp, cp):
                continue
            for pp in divisors(places):
                dp = quotient(scale, tp * cp * pp)
                if dp:
                    yield from _batched(resolved, replace(runs, tp=tp, cp=cp, pp=pp, dp=dp), dp, divisors(places // pp))


def _batched(resolved: ResolvedSelection, runs: Parallelism, dp: int, stages: Iterable[int]) -> Iterator[Parallelism]:
    """The layouts with every valid micro-batch size, expert group and number of virtual stages."""
    samples = quotient(runs.gbs, dp)
    groups = [ep for ep in divisors(resolved.model.experts) if dp % ep == 0]
    for mbs in divisors(samples) if samples else ():
        ga = (samples or 0) // mbs
        several = runs.pp > 1 and fills_pipeline(ga, runs.pp)
        for vp in stages:
            if vp == 1 or several:
                for ep in groups:
                    yield replace(runs, ep=ep, vp=vp if vp > 1 else None, mbs=mbs, ga=ga)


def _fastest(candidates: Iterable[ResolvedSelection], evidence: Evidence, most: int) -> list[ResolvedSelection]:
    """The `most` fastest by step time; of equal ones the closest to the published layout."""
    return heapq.nsmallest(most, candidates, key=lambda each: (_step_time_s(each, evidence), len(_differing(each))))


def _step_time_s(resolved: ResolvedSelection, evidence: Evidence) -> float:
    expected = expect(resolved, evidence)
    return expected.step_time_s if isinstance(expected, Expectation) else float("inf")


def _differing(resolved: ResolvedSelection) -> dict[str, int]:
    """The numbers of a layout that differ from the recipe's row, as overrides."""
    runs, row = resolved.parallelism, resolved.base.row_for(resolved.selection.scale)
    values = {name: getattr(runs, name) for name in _FREE if getattr(runs, name) != getattr(row, name)}
    return {name: value or 1 for name, value in values.items()}


def _with_published(best: list[ResolvedSelection], every: Iterable[ResolvedSelection]) -> list[ResolvedSelection]:
    """The best layouts, with the recipe's layout in the last place if it is not among them."""
    if not best or any(runs_as_listed(resolved) for resolved in best):
        return best
    own_layout = next((resolved for resolved in every if runs_as_listed(resolved)), None)
    return [*best[:-1], own_layout] if own_layout else best


def _layout(catalog: Catalog, selection: Selection, candidate: ResolvedSelection, evidence: Evidence) -> Layout:
    rest = {name: value for name, value in selection.overrides.set_fields().items() if name not in _FREE}
    overrides = Overrides(**rest, **_differing(candidate))
    resolved = resolve(catalog, replace(selection, overrides=overrides))
    expected = expect(resolved, evidence)
    return Layout(
        overrides=overrides,
        parallelism=resolved.parallelism,
        estimate=estimate_of(resolved, expected) if isinstance(expected, Expectation) else None,
        memory=memory_of(resolved),
        published=runs_as_listed(resolved),
        unusual=tuple(problem.reason for problem in unusual_of(resolved)),
    )
