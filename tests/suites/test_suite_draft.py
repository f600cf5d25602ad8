"""A suite during its selection: multiplied rows, available rows, excluded rows, and the names of rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.policy import Policy
from llmb_tui.plan.selection import Overrides
from llmb_tui.suites.draft import (
    Axis,
    Offer,
    SuiteDraft,
    Value,
    draft_of,
    offers,
    product,
    switched,
    toggle_excluded,
    with_number,
)
from llmb_tui.suites.draft_plan import DraftPlan, kinds, plan_draft, usual_name
from llmb_tui.suites.suite import SuiteKind
from llmb_tui.suites.suite_plan import Nodes
from tests.kit.runs import CATALOG, NEMOTRON

EOS = SlurmProfile("eos", "eos.example.com", "acct", "batch", "/lustre/llmb")
DRAFT = draft_of(NEMOTRON, "direct", "eos")
LLAMA = ("llama3.1", "25.04", "8b")


def planned(draft: SuiteDraft, nodes: Nodes | None = None) -> DraftPlan:
    return plan_draft(draft, CATALOG, EOS, Policy(), nodes or Nodes())


def sent_scales(plan: DraftPlan) -> list[int]:
    assert plan.submission is not None
    return [row.row.selection.scale for row in plan.submission.rows]


def with_value(draft: SuiteDraft, axis: Axis, value: Value) -> SuiteDraft:
    return switched(draft, axis, offers(draft, CATALOG)[axis], value)


def offer(draft: SuiteDraft, axis: Axis, value: Value) -> Offer:
    return next(one for one in offers(draft, CATALOG)[axis] if one.value == value)


def test_a_draft_begins_with_the_base_run() -> None:
    assert product(DRAFT) == [NEMOTRON]


def test_every_combination_is_a_run_and_the_repeats_change_fastest() -> None:
    draft = with_value(with_value(DRAFT, "scales", 16), "dtypes", "bf16")
    draft = replace(draft, count=2)
    runs = [(selection.dtype, selection.scale) for selection in product(draft)]
    assert len(runs) == 8
    assert runs[:4] == [(draft.dtypes[0], 16)] * 2 + [(draft.dtypes[0], 64)] * 2


def test_a_value_that_is_switched_twice_is_out_again() -> None:
    assert with_value(with_value(DRAFT, "scales", 16), "scales", 16) == DRAFT


def test_values_have_the_order_of_the_offers() -> None:
    draft = with_value(with_value(DRAFT, "scales", 256), "scales", 16)
    assert draft.scales == (16, 64, 256)


def test_without_any_value_of_an_axis_there_is_nothing_to_run() -> None:
    plan = planned(with_value(DRAFT, "scales", 64))
    assert plan.nothing is not None
    assert plan.nothing.why == "Nothing is chosen of: GPUs."
    assert (plan.rows, plan.submission) == ((), None)


def test_more_runs_than_anybody_means_are_not_planned() -> None:
    plan = planned(replace(DRAFT, count=1001))
    assert plan.nothing is not None
    assert plan.nothing.what == "These are 1,001 runs."


def test_an_unpublished_value_cannot_be_chosen_and_has_a_reason() -> None:
    of_proxy = replace(DRAFT, workloads=(("nemotron4-340b", "25.12", "340b"),))
    assert offer(of_proxy, "scales", 64).chosen
    assert offer(draft_of(replace(NEMOTRON, gpu="gb200"), "direct", "eos"), "workloads", LLAMA).disabled_reason == (
        "not published for GB200"
    )


def test_the_base_is_offered_even_if_it_is_not_published() -> None:
    odd = draft_of(replace(NEMOTRON, scale=24, overrides=Overrides(tp=4)), "direct", "eos")
    assert offer(odd, "scales", 24) == Offer(24, "24", "not published", chosen=True)
    assert [layout.label for layout in offers(odd, CATALOG)["layouts"]] == ["tp4"]


def test_rows_are_excluded_and_included_again() -> None:
    draft = with_value(DRAFT, "scales", 16)
    first = planned(draft).rows[0].row.key
    out = toggle_excluded(draft, [first])
    assert sent_scales(planned(out)) == [64]
    assert len(planned(out).rows) == 2
    assert toggle_excluded(out, [first]) == draft


@pytest.mark.parametrize(
    ("before", "after", "out", "stays"),
    [
        (None, 3, ("",), True),
        (3, None, (" #1", " #2", " #3"), True),
        (3, 2, (" #1", " #2", " #3"), True),
        (3, 2, (" #1", " #2"), False),
        (3, None, (" #2",), False),
        (1, 10**12, ("",), True),
    ],
)
def test_an_excluded_row_stays_excluded_at_any_count(
    before: int | None, after: int | None, out: tuple[str, ...], stays: bool
) -> None:
    draft = with_number(replace(DRAFT, scales=(16, 64)), "count", before)
    key = "nemotron4@25.04 15b fp8 16"
    changed = with_number(toggle_excluded(draft, [key + number for number in out]), "count", after)
    if after == 10**12:  # an unlikely value; the user is still typing
        changed = with_number(changed, "count", after := 2)
    assert sent_scales(planned(changed)) == ([] if stays else [16] * (after or 1)) + [64] * (after or 1)


@pytest.mark.parametrize("kind", ["tune", "repeat"])
def test_a_higher_count_keeps_the_excluded_row_only_for_tune(kind: SuiteKind) -> None:
    draft = replace(DRAFT, kind=kind)
    last = planned(draft).rows[3].row.key
    more = planned(with_number(toggle_excluded(draft, [last]), "count", 6))
    assert (last in more.draft.excluded) == (kind == "tune")


def test_the_order_of_submission_is_shuffled_but_not_the_preview() -> None:
    draft = replace(DRAFT, scales=(16, 32, 64, 128, 256, 512), shuffle=3)
    plan = planned(draft)
    assert [row.row.selection.scale for row in plan.rows] == list(draft.scales)
    assert sorted(sent_scales(plan)) == list(draft.scales) != sent_scales(plan)


def test_a_row_that_cannot_run_blocks_the_suite_until_it_is_excluded() -> None:
    draft = replace(DRAFT, scales=(64, 24))
    (blocked,) = planned(draft).blocked
    assert blocked.row.selection.scale == 24
    for draft_, against in ((draft, blocked.blockers), (toggle_excluded(draft, [blocked.row.key]), ())):
        sent = planned(draft_).submission
        assert sent is not None
        assert tuple(dict.fromkeys(problem for _, problem in sent.blockers)) == against


def test_rows_are_named_by_their_differences() -> None:
    plan = planned(replace(DRAFT, dtypes=("bf16", "fp8"), count=2))
    assert plan.shared == "nemotron4@25.04 15b"
    assert list(plan.labels.values()) == ["bf16 #1", "bf16 #2", "fp8 #1", "fp8 #2"]


def test_rows_that_differ_in_scale_alone_have_a_name_all_the_same() -> None:
    assert set(planned(replace(DRAFT, scales=(16, 64))).labels.values()) == {"15b fp8"}


def test_suites_are_named_by_their_content() -> None:
    assert usual_name(DRAFT) == "nemotron4 15b fp8"
    assert usual_name(replace(DRAFT, workloads=(*DRAFT.workloads, LLAMA))) == "nemotron4 llama3.1 fp8"
    assert planned(replace(DRAFT, kind="scaling")).name == "scaling nemotron4@25.04 15b h100 fp8"
    assert planned(replace(DRAFT, name="mine")).name == "mine"


def test_the_scales_of_a_ready_made_suite_end_at_the_partition_size() -> None:
    plan = planned(replace(DRAFT, kind="scaling"), Nodes(free=2, all=8))
    assert max(sent_scales(plan)) == 64
    assert plan.submission is not None
    assert plan.submission.suite.kind == "scaling"


def test_unavailable_kinds_have_a_reason() -> None:
    against = {kind: why_not for kind, _, why_not in kinds(DRAFT, CATALOG, Nodes(all=1))}
    assert against == dict.fromkeys(("custom", "tune"), "") | dict.fromkeys(
        ("precision", "repeat"), "No configuration of it can be launched."
    ) | dict.fromkeys(("scaling", "acceptance"), "No published configuration fits.")
    assert not any(why_not for _, _, why_not in kinds(DRAFT, CATALOG, Nodes()))


@pytest.mark.parametrize("count", [None, 2])
def test_a_tune_keeps_the_full_run_of_the_best(count: int | None) -> None:
    *tried, full = planned(replace(DRAFT, kind="tune", count=count)).rows
    assert len(tried) == (count or 4)
    assert full.row.of_best
    assert not any(row.row.of_best for row in tried)


def test_a_tune_without_a_short_run_is_refused() -> None:
    draft = replace(DRAFT, kind="tune", count=2)
    first, second, _ = (row.row.key for row in planned(draft).rows)
    with_one, without = planned(toggle_excluded(draft, [first])), planned(toggle_excluded(draft, [first, second]))
    assert with_one.submission is not None
    assert with_one.submission.blockers == ()
    assert without.submission is not None
    ((row, problem),) = without.submission.blockers
    assert row is None
    assert "never be submitted" in problem.reason
    assert problem.fix
