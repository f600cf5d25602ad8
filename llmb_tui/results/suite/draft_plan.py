"""`plan_draft`: what a draft would be: every row, what is sent of them, the sums, and what each is called. Pure.

It takes a millisecond for each row, and a `tune` lists thousands of layouts: a screen asks for it in a thread.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.errors import Trouble
from llmb_tui.launch.policy import Policy
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Problem
from llmb_tui.results.suite.draft import Run, SuiteDraft, product
from llmb_tui.results.suite.ready_made import ready_made
from llmb_tui.results.suite.suite import SUITE_KINDS, Suite, SuiteKind, SuiteRow, make_suite
from llmb_tui.results.suite.suite_file import MOST_RUNS
from llmb_tui.results.suite.suite_plan import PlannedRow, SuitePlan, plan_suite

_NAMED = 3
"""From so many workloads on their number is named."""
# Who types a name or a number asks for the same again, and a `tune` compares thousands of layouts.
_ready_made = lru_cache(maxsize=16)(ready_made)
_SCALE_WORD = 3
"""Place of the number of GPUs in a row's key."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """Of the cluster's partition; None where nobody has asked, or it does not say."""

    free: int | None = None
    all: int | None = None
    askable: bool = True
    """False: a cluster of this kind does not say."""


@dataclass(frozen=True)
class DraftPlan:
    """Everything that a screen shows of a draft."""

    draft: SuiteDraft
    rows: tuple[PlannedRow, ...] = ()
    """As they are listed, also those that are taken out."""
    sent: SuitePlan | None = None
    """What would be submitted; None where that is nothing."""
    name: str = ""
    """What the suite is called."""
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

    @property
    def blockers(self) -> tuple[Problem, ...]:
        """Everything that stands against submitting it, each once: the suite's own first."""
        against = self.sent.blockers if self.sent else ()
        return tuple(dict.fromkeys(problem for _, problem in against))


def plan_draft(draft: SuiteDraft, catalog: Catalog, profile: ClusterProfile, policy: Policy, nodes: Nodes) -> DraftPlan:
    """What it would be on the cluster of `profile`."""
    try:
        name, runs = runs_of(draft, catalog, nodes)
    except Trouble as trouble:
        return DraftPlan(draft, nothing=trouble)
    whole = make_suite(draft.name or name, draft.cluster, runs, kind=draft.kind)
    rows = plan_suite(whole, catalog, profile, policy).rows
    sent = _sent(draft, whole)
    planned = plan_suite(sent, catalog, profile, policy, nodes.free) if sent.rows else None
    shared, labels = names(whole.rows)
    return DraftPlan(draft, rows, planned, whole.name, shared, labels)


def kinds(draft: SuiteDraft, catalog: Catalog, nodes: Nodes) -> tuple[tuple[SuiteKind, str, str], ...]:
    """Every kind with its sentence, and why it cannot be had here; empty where it can.

    Of a `tune` that is known once its layouts were compared.
    """
    quick = [kind for kind in SUITE_KINDS if kind not in ("custom", "tune")]
    against = {kind: _against(replace(draft, kind=kind, count=None), catalog, nodes) for kind in quick}
    return tuple((kind, sentence, against.get(kind, "")) for kind, sentence in SUITE_KINDS.items())


def names(rows: Sequence[SuiteRow]) -> tuple[str, dict[str, str]]:
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


def can_be_out(row: SuiteRow) -> bool:
    """False for the full run of a `tune`, which is what the others are for."""
    return not row.of_best


def runs_of(draft: SuiteDraft, catalog: Catalog, nodes: Nodes) -> tuple[str, list[Run]]:
    """What it is called unless somebody says otherwise, and all of its runs. Raises Trouble where there are none."""
    if draft.kind != "custom":
        most = None
        if nodes.all is not None:
            most = nodes.all * plan(catalog, draft.base).gpus_per_node
        suite = _ready_made(
            draft.kind, catalog, draft.base, draft.cluster, draft.procedure, most_gpus=most, count=draft.count
        )
        return suite.name, [(row.selection, row.procedure) for row in suite.rows]
    if empty := [name for name, chosen in _axes(draft).items() if not chosen]:
        raise Trouble("There is nothing to run.", f"Nothing is chosen of: {', '.join(empty)}.", "Choose one of each.")
    count = math.prod(map(len, _axes(draft).values())) * (draft.count or 1)
    if count > MOST_RUNS:
        raise Trouble(f"These are {count:,} runs.", f"A suite has {MOST_RUNS:,} at most.", "Choose less of something.")
    return usual_name(draft), product(draft)


def usual_name(draft: SuiteDraft) -> str:
    """What a suite of one's own is called: `nemotron4 15b fp8`, as far as all of its runs are that."""
    chosen = list(dict.fromkeys(workload for workload, _, _ in draft.workloads))
    sizes = {size for *_, size in draft.workloads}
    words = chosen if len(chosen) < _NAMED else [f"{len(chosen)} workloads"]
    return " ".join([*words, *(sizes if len(sizes) == 1 else ()), *(draft.dtypes if len(draft.dtypes) == 1 else ())])


def _axes(draft: SuiteDraft) -> dict[str, Sequence[object]]:
    return {"workloads": draft.workloads, "precisions": draft.dtypes, "GPUs": draft.scales, "layouts": draft.layouts}


def _against(draft: SuiteDraft, catalog: Catalog, nodes: Nodes) -> str:
    try:
        _, runs = runs_of(draft, catalog, nodes)
    except Trouble as trouble:
        return trouble.why
    return "there is only one" if len(runs) == 1 else ""


def _sent(draft: SuiteDraft, whole: Suite) -> Suite:
    """What is sent of a suite, shuffled where that is wanted."""
    return make_suite(
        whole.name,
        whole.cluster,
        [(row.selection, row.procedure) for row in whole.rows if row.key not in draft.taken_out],
        kind=whole.kind,
        at_most=draft.at_most,
        stop_after=draft.stop_after,
        chain=draft.chain,
        shuffle=draft.shuffle,
    )
