"""`plan_draft`: preview of a draft: every row, the rows to submit, the sums, and the names of the rows. Pure.

It takes a millisecond per row, and a `tune` lists thousands of layouts, so a screen calls it in a thread.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import count
from llmb_tui.launch.policy import Policy
from llmb_tui.plan.selection import Selection
from llmb_tui.suites.draft import SuiteDraft, product
from llmb_tui.suites.ready_made import most_gpus, ready_made
from llmb_tui.suites.suite import MOST_RUNS, SUITE_KINDS, SuiteKind, SuiteRow, make_suite
from llmb_tui.suites.suite_plan import Nodes, PlannedRow, SuitePlan, plan_suite

_NAMED = 3
"""From this number of workloads on, their number is shown instead of their names."""
_SCALE_WORD = 3
"""Position of the number of GPUs in a row's key."""
# Typing a name or a number requests the same runs again, and a `tune` compares thousands of layouts.
_ready_made = lru_cache(maxsize=16)(ready_made)


@dataclass(frozen=True)
class DraftPlan:
    """Everything that a screen shows of a draft."""

    draft: SuiteDraft
    rows: tuple[PlannedRow, ...] = ()
    """All rows in display order, including the excluded ones."""
    submission: SuitePlan | None = None
    """The part that would be submitted; None if that is nothing."""
    name: str = ""
    shared: str = ""
    """Short text of what all rows have in common."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Short text that distinguishes each row, by its key."""
    nothing: LlmbError | None = None
    """Reason why there are no rows."""

    def is_out(self, row: PlannedRow) -> bool:
        """Whether the row is excluded."""
        return row.row.key in self.draft.excluded

    @property
    def blocked(self) -> tuple[PlannedRow, ...]:
        """Included rows that cannot be submitted."""
        return tuple(row for row in self.rows if row.blockers and not self.is_out(row))


def plan_draft(draft: SuiteDraft, catalog: Catalog, profile: ClusterProfile, policy: Policy, nodes: Nodes) -> DraftPlan:
    """Preview of a draft on the cluster of `profile`."""
    try:
        name, selections = runs_of(draft, catalog, nodes)
    except LlmbError as error:
        return DraftPlan(draft, nothing=error)
    runs = [(selection, draft.procedure) for selection in selections]
    whole = make_suite(draft.name or name, draft.cluster, runs, kind=draft.kind)
    rows = plan_suite(whole, catalog, profile, policy).rows
    shared, labels = names(whole.rows)
    planned = DraftPlan(draft, rows, None, whole.name, shared, labels)
    wanted = [(row.selection, row.procedure) for row in whole.rows if row.key not in draft.excluded]
    if not wanted:
        return planned
    conduct: dict[str, Any] = {name: getattr(draft, name) for name in ("at_most", "stop_after", "chain", "shuffle")}
    sent = make_suite(whole.name, draft.cluster, wanted, kind=draft.kind, **conduct)
    return replace(planned, submission=plan_suite(sent, catalog, profile, policy, nodes.free))


def kinds(draft: SuiteDraft, catalog: Catalog, nodes: Nodes) -> tuple[tuple[SuiteKind, str, str], ...]:
    """Every kind with its description and the reason why it is not available here; empty if it is.

    For a `tune` that is known only after its layouts were compared.
    """
    quick = [kind for kind in SUITE_KINDS if kind not in ("custom", "tune")]
    against = {kind: _against(replace(draft, kind=kind, count=None), catalog, nodes) for kind in quick}
    return tuple((kind, sentence, against.get(kind, "")) for kind, sentence in SUITE_KINDS.items())


def names(rows: Iterable[SuiteRow]) -> tuple[str, dict[str, str]]:
    """Short text of what all rows have in common, and short texts that distinguish them, by key.

    The number of GPUs is left out, because it has its own column. Rows without other differences show size and
    precision.
    """
    words = {
        row.key: [word for position, word in enumerate(row.key.split()) if position != _SCALE_WORD]
        for row in rows
        if not row.of_best
    }
    every = dict.fromkeys(word for row_words in words.values() for word in row_words)
    common = [word for word in every if all(word in row_words for row_words in words.values())]
    own = {key: " ".join(word for word in row_words if word not in common) for key, row_words in words.items()}
    labels = {key: label or " ".join(words[key][1:3]) for key, label in own.items()}
    return " ".join(common), labels | {row.key: row.key for row in rows if row.of_best}


def runs_of(draft: SuiteDraft, catalog: Catalog, nodes: Nodes) -> tuple[str, list[Selection]]:
    """Default name and all runs of a draft. Raises LlmbError if there are none."""
    if draft.kind != "custom":
        return _ready_made(draft.kind, catalog, draft.base, most_gpus(catalog, draft.base, nodes), draft.count)
    axes = {"workloads": draft.workloads, "precisions": draft.dtypes, "GPUs": draft.scales, "layouts": draft.layouts}
    if empty := [name for name, chosen in axes.items() if not chosen]:
        raise LlmbError(
            "The suite has no runs.", f"Nothing is chosen of: {', '.join(empty)}.", "Choose at least one of each."
        )
    runs = math.prod(map(len, axes.values())) * (draft.count or 1)
    if runs > MOST_RUNS:
        what, why = f"These are {count(runs)} runs.", f"A suite has at most {count(MOST_RUNS)}."
        raise LlmbError(what, why, "Choose fewer values.")
    return usual_name(draft), product(draft)


def usual_name(draft: SuiteDraft) -> str:
    """Default name of a custom suite, such as `nemotron4 15b fp8`, with what all of its runs have in common."""
    chosen = list(dict.fromkeys(workload for workload, _, _ in draft.workloads))
    sizes = {size for *_, size in draft.workloads}
    words = chosen if len(chosen) < _NAMED else [f"{len(chosen)} workloads"]
    return " ".join([*words, *(sizes if len(sizes) == 1 else ()), *(draft.dtypes if len(draft.dtypes) == 1 else ())])


def _against(draft: SuiteDraft, catalog: Catalog, nodes: Nodes) -> str:
    try:
        _, runs = runs_of(draft, catalog, nodes)
    except LlmbError as error:
        return error.why
    return "there is only one" if len(runs) == 1 else ""
