"""`plan_draft`: what a draft would be: every row, what is sent of them, the sums, and what each is called. Pure.

It takes a millisecond for each row, and a `tune` lists thousands of layouts: a screen asks for it in a thread.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.errors import Trouble
from llmb_tui.language.quantities import count
from llmb_tui.launch.policy import Policy
from llmb_tui.plan.selection import Selection
from llmb_tui.suites.draft import SuiteDraft, product
from llmb_tui.suites.ready_made import most_gpus, ready_made
from llmb_tui.suites.suite import MOST_RUNS, SUITE_KINDS, SuiteKind, SuiteRow, make_suite
from llmb_tui.suites.suite_plan import Nodes, PlannedRow, SuitePlan, plan_suite

_NAMED = 3
"""From so many workloads on their number is named."""
_SCALE_WORD = 3
"""Place of the number of GPUs in a row's key."""
# Who types a name or a number asks for the same again, and a `tune` compares thousands of layouts.
_ready_made = lru_cache(maxsize=16)(ready_made)


@dataclass(frozen=True)
class DraftPlan:
    """Everything that a screen shows of a draft."""

    draft: SuiteDraft
    rows: tuple[PlannedRow, ...] = ()
    """As they are listed, also those that are taken out."""
    sent: SuitePlan | None = None
    """What would be submitted; None where that is nothing."""
    name: str = ""
    shared: str = ""
    """What all rows have in common, in a few words."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What tells a row from the others, by its key."""
    nothing: Trouble | None = None
    """Why there are no rows."""

    def is_out(self, row: PlannedRow) -> bool:
        """It is not sent."""
        return row.row.key in self.draft.taken_out

    @property
    def blocked(self) -> tuple[PlannedRow, ...]:
        """Rows that would be sent and cannot be."""
        return tuple(row for row in self.rows if row.blockers and not self.is_out(row))


def plan_draft(draft: SuiteDraft, catalog: Catalog, profile: ClusterProfile, policy: Policy, nodes: Nodes) -> DraftPlan:
    """What it would be on the cluster of `profile`."""
    try:
        name, selections = runs_of(draft, catalog, nodes)
    except Trouble as trouble:
        return DraftPlan(draft, nothing=trouble)
    runs = [(selection, draft.procedure) for selection in selections]
    whole = make_suite(draft.name or name, draft.cluster, runs, kind=draft.kind)
    rows = plan_suite(whole, catalog, profile, policy).rows
    shared, labels = names(whole.rows)
    planned = DraftPlan(draft, rows, None, whole.name, shared, labels)
    wanted = [(row.selection, row.procedure) for row in whole.rows if row.key not in draft.taken_out]
    if not wanted:
        return planned
    conduct: dict[str, Any] = {name: getattr(draft, name) for name in ("at_most", "stop_after", "chain", "shuffle")}
    sent = make_suite(whole.name, draft.cluster, wanted, kind=draft.kind, **conduct)
    return replace(planned, sent=plan_suite(sent, catalog, profile, policy, nodes.free))


def kinds(draft: SuiteDraft, catalog: Catalog, nodes: Nodes) -> tuple[tuple[SuiteKind, str, str], ...]:
    """Every kind with its sentence, and why it cannot be had here; empty where it can.

    Of a `tune` that is known once its layouts were compared.
    """
    quick = [kind for kind in SUITE_KINDS if kind not in ("custom", "tune")]
    against = {kind: _against(replace(draft, kind=kind, count=None), catalog, nodes) for kind in quick}
    return tuple((kind, sentence, against.get(kind, "")) for kind, sentence in SUITE_KINDS.items())


def names(rows: Iterable[SuiteRow]) -> tuple[str, dict[str, str]]:
    """What all rows have in common in a few words, and what tells each from the others, by its key.

    Without the number of GPUs, which has a column of its own. Rows that differ in nothing else have size and precision.
    """
    words = {
        row.key: [word for at, word in enumerate(row.key.split()) if at != _SCALE_WORD]
        for row in rows
        if not row.of_best
    }
    every = dict.fromkeys(word for one in words.values() for word in one)
    common = [word for word in every if all(word in one for one in words.values())]
    own = {key: " ".join(word for word in one if word not in common) for key, one in words.items()}
    labels = {key: label or " ".join(words[key][1:3]) for key, label in own.items()}
    return " ".join(common), labels | {row.key: row.key for row in rows if row.of_best}


def runs_of(draft: SuiteDraft, catalog: Catalog, nodes: Nodes) -> tuple[str, list[Selection]]:
    """What it is called unless somebody says otherwise, and all of its runs. Raises Trouble where there are none."""
    if draft.kind != "custom":
        return _ready_made(draft.kind, catalog, draft.base, most_gpus(catalog, draft.base, nodes), draft.count)
    axes = {"workloads": draft.workloads, "precisions": draft.dtypes, "GPUs": draft.scales, "layouts": draft.layouts}
    if empty := [name for name, chosen in axes.items() if not chosen]:
        raise Trouble("There is nothing to run.", f"Nothing is chosen of: {', '.join(empty)}.", "Choose one of each.")
    runs = math.prod(map(len, axes.values())) * (draft.count or 1)
    if runs > MOST_RUNS:
        what, why = f"These are {count(runs)} runs.", f"A suite has at most {count(MOST_RUNS)}."
        raise Trouble(what, why, "Choose less of something.")
    return usual_name(draft), product(draft)


def usual_name(draft: SuiteDraft) -> str:
    """What a suite of one's own is called: `nemotron4 15b fp8`, as far as all of its runs are that."""
    chosen = list(dict.fromkeys(workload for workload, _, _ in draft.workloads))
    sizes = {size for *_, size in draft.workloads}
    words = chosen if len(chosen) < _NAMED else [f"{len(chosen)} workloads"]
    return " ".join([*words, *(sizes if len(sizes) == 1 else ()), *(draft.dtypes if len(draft.dtypes) == 1 else ())])


def _against(draft: SuiteDraft, catalog: Catalog, nodes: Nodes) -> str:
    try:
        _, runs = runs_of(draft, catalog, nodes)
    except Trouble as trouble:
        return trouble.why
    return "there is only one" if len(runs) == 1 else ""
