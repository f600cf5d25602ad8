"""`unusual_of`: what can run but nobody has published, or is known to be slow: warnings and notes."""

from __future__ import annotations

from collections.abc import Iterator

from llmb_tui.plan.draft import Draft
from llmb_tui.plan.plan import Problem
from llmb_tui.plan.rules import tensor_reach

_COMPARED = ("pp", "cp", "ep", "vp", "mbs")


def unusual_of(draft: Draft) -> Iterator[Problem]:
    """What is unusual about a layout, beside the published ones of the same model, GPU type and precision."""
    yield from _beyond_a_node(draft)
    yield from _above_published(draft)
    yield from _waiting_stages(draft)


def _beyond_a_node(draft: Draft) -> Iterator[Problem]:
    tp, reach = draft.parallelism.tp, tensor_reach(draft)
    if tp > reach:
        reason = f"TP {tp} reaches beyond a node of {draft.gpu.gpus_per_node} GPUs, where the network is much slower."
        yield Problem("tp", "warning", reason, f"Choose TP {reach} or less.")


def _above_published(draft: Draft) -> Iterator[Problem]:
    rows = draft.base.rows.values()
    for name in _COMPARED:
        value = getattr(draft.parallelism, name) or 1
        most = max(getattr(row, name) or 1 for row in rows)
        if value > most:
            yield _note(name, f"{name.upper()} {value} is above the published {most}.")


def _waiting_stages(draft: Draft) -> Iterator[Problem]:
    runs = draft.parallelism
    if runs.pp == 1 or runs.vp:
        return
    if all(row.vp for row in draft.base.rows.values() if row.pp > 1) and draft.base.full.pp > 1:
        yield _note("vp", f"PP {runs.pp} has no virtual stages, which the published pipelines have.")
    if runs.ga and runs.ga < runs.pp:
        yield _note("pp", f"GA {runs.ga} is less than PP {runs.pp}: some stages always wait.")


def _note(field: str, reason: str) -> Problem:
    return Problem(field, "note", reason, "")
