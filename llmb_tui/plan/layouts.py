"""`layouts`: every layout that is valid for a selection's scale, the fastest by the estimate first."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan.draft import Draft, draft_of, quotient
from llmb_tui.plan.estimate import Expectation, estimate_of, expect
from llmb_tui.plan.evidence import Evidence, evidence_of
from llmb_tui.plan.memory import memory_of
from llmb_tui.plan.nearest import divisors
from llmb_tui.plan.plan import Estimate, Memory, Parallelism
from llmb_tui.plan.rules import (
    fills_pipeline,
    runs_as_listed,
    sequence_pieces,
    shared_heads,
    stage_places,
    tensor_reach,
)
from llmb_tui.plan.selection import Overrides, Selection
from llmb_tui.plan.unusual import unusual_of

_FREE = ("tp", "pp", "cp", "ep", "vp", "mbs")


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to lay a model out over the GPUs, and what to expect of it."""

    overrides: Overrides
    """What makes a selection run it: only what differs from the recipe's own row."""
    parallelism: Parallelism
    estimate: Estimate | None
    memory: Memory | None
    published: bool
    """It is the recipe's own row for this scale."""
    unusual: tuple[str, ...]
    """What nobody has published, or is known to be slow, in short sentences."""


@dataclass(frozen=True, slots=True)
class Layouts:
    """The best layouts for a selection, and how many there are."""

    best: tuple[Layout, ...]
    valid: int
    """How many layouts are valid, listed here or not."""


def layouts(catalog: Catalog, selection: Selection, most: int = 20) -> Layouts:
    """At most `most` layouts with TP, PP, CP, EP, VP and MBS of any size; batch, sequence and layers stay.

    The fastest comes first among those that fit or are tight; one without an estimate comes after those that have
    one, and one that needs recomputation or sharding after all others. The published one is always among them. TP
    stays on NVLink. Raises `Unknown` for a recipe, size or GPU type that no preset has.
    """
    draft = draft_of(catalog, selection)
    fitting: list[Draft] = []
    others: list[Draft] = []
    for runs in _valid(draft):
        candidate = replace(draft, parallelism=runs)
        memory = memory_of(candidate)
        (others if memory and memory.verdict == "needs recompute or sharding" else fitting).append(candidate)
    evidence = evidence_of(catalog)
    best = _fastest(fitting, evidence, most)
    if len(best) < most:
        best += _fastest(others, evidence, most - len(best))
    chosen = _with_published(best, [*fitting, *others])
    return Layouts(tuple(_layout(catalog, selection, one, evidence) for one in chosen), len(fitting) + len(others))


def _valid(draft: Draft) -> Iterator[Parallelism]:
    """Every layout that divides all that it has to."""
    runs, model, scale = draft.parallelism, draft.model, draft.selection.scale
    places = stage_places(model, runs.layers)
    reach = tensor_reach(draft)
    for tp in divisors(shared_heads(model)):
        if tp > reach or scale % tp:
            continue
        for cp in divisors(scale // tp):
            if runs.seq_len % sequence_pieces(tp, cp):
                continue
            for pp in divisors(places):
                dp = quotient(scale, tp * cp * pp)
                if dp:
                    yield from _batched(draft, replace(runs, tp=tp, cp=cp, pp=pp, dp=dp), dp, divisors(places // pp))


def _batched(draft: Draft, runs: Parallelism, dp: int, stages: Iterable[int]) -> Iterator[Parallelism]:
    """The micro-batches, expert groups and virtual stages that a layout can have."""
    samples = quotient(runs.gbs, dp)
    groups = [ep for ep in divisors(draft.model.experts) if dp % ep == 0]
    for mbs in divisors(samples) if samples else ():
        ga = (samples or 0) // mbs
        several = runs.pp > 1 and fills_pipeline(ga, runs.pp)
        for vp in stages:
            if vp == 1 or several:
                for ep in groups:
                    yield replace(runs, ep=ep, vp=vp if vp > 1 else None, mbs=mbs, ga=ga)


def _fastest(drafts: Iterable[Draft], evidence: Evidence, most: int) -> list[Draft]:
    """The `most` drafts of the shortest step time; of equal ones the one whose layout is closest to the published."""
    return heapq.nsmallest(most, drafts, key=lambda draft: (_step_time_s(draft, evidence), _distance(draft)))


def _step_time_s(draft: Draft, evidence: Evidence) -> float:
    expected = expect(draft, evidence)
    return expected.step_time_s if isinstance(expected, Expectation) else float("inf")


def _distance(draft: Draft) -> int:
    """In how many numbers a layout differs from the recipe's."""
    return len(_differing(draft, draft.parallelism))


def _differing(draft: Draft, runs: Parallelism) -> dict[str, int]:
    """The numbers of a layout that differ from the recipe's row, as a selection overrides them."""
    row = draft.base.row_for(draft.selection.scale)
    values = {name: getattr(runs, name) for name in _FREE if getattr(runs, name) != getattr(row, name)}
    return {name: value or 1 for name, value in values.items()}


def _with_published(best: list[Draft], every: Iterable[Draft]) -> list[Draft]:
    """The recipe's own layout takes the last place where it would not be listed."""
    if not best or any(runs_as_listed(draft) for draft in best):
        return best
    published = next((draft for draft in every if runs_as_listed(draft)), None)
    return [*best[:-1], published] if published else best


def _layout(catalog: Catalog, selection: Selection, chosen: Draft, evidence: Evidence) -> Layout:
    kept = {name: value for name, value in selection.overrides.given().items() if name not in _FREE}
    overrides = Overrides(**kept, **_differing(chosen, chosen.parallelism))
    draft = draft_of(catalog, replace(selection, overrides=overrides))
    expected = expect(draft, evidence)
    return Layout(
        overrides=overrides,
        parallelism=draft.parallelism,
        estimate=estimate_of(draft, expected) if isinstance(expected, Expectation) else None,
        memory=memory_of(draft),
        published=runs_as_listed(draft),
        unusual=tuple(problem.reason for problem in unusual_of(draft)),
    )
