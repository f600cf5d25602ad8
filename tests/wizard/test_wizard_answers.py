from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import FIELDS, NOTHING_MORE, ON, RunOptions
from llmb_tui.wizard.answers import (
    Answers,
    answer,
    answers_from_selection,
    command,
    input_problems,
    selection,
    value_of,
    with_defaults,
)
from tests.kit.runs import CATALOG

NAMES = (*({*FIELDS} - {"release", "size", "strong_scaling"}), "scaling", "procedure", "layout")


def given_all(*pairs: tuple[str, str]) -> Answers:
    answers = Answers()
    for field, value in pairs:
        answers = answer(answers, field, value)
    return answers


def test_there_is_something_to_preview_before_any_answer(catalog: Catalog) -> None:
    chosen = selection(catalog, with_defaults(catalog, Answers()))

    assert chosen is not None
    assert plan(catalog, chosen).launchable


def test_every_workload_gets_defaults_that_can_be_launched(catalog: Catalog) -> None:
    for recipe in catalog.recipes:
        for size in recipe.models:
            chosen = selection(catalog, with_defaults(catalog, given_all(("workload", f"{recipe.id}/{size}"))))
            assert chosen is not None
            assert (chosen.workload, chosen.release, chosen.size) == (recipe.workload, recipe.release, size)
            assert plan(catalog, chosen).launchable, chosen


def test_defaults_are_the_first_size_and_the_smallest_listed_scale(catalog: Catalog) -> None:
    full = with_defaults(catalog, replace(Answers(), recipe="nemotron4@25.04"))

    assert (full.size, full.gpu, full.dtype, full.strong, full.scale) == ("15b", "h100", "bf16", False, 16)


def test_an_answer_stays_when_an_earlier_answer_makes_it_invalid(catalog: Catalog) -> None:
    answers = given_all(("workload", "nemotron4-340b@25.12/340b"), ("gpu", "gb200"), ("scale", "128"))

    answers = answer(answers, "workload", "nemotron4@25.04/15b")

    chosen = selection(catalog, with_defaults(catalog, answers))
    assert chosen is not None
    assert (chosen.gpu, chosen.scale) == ("gb200", 128)
    assert "gpu" in {problem.field for problem in plan(catalog, chosen).problems if problem.severity == "error"}


def test_an_unanswered_default_follows_an_earlier_answer(catalog: Catalog) -> None:
    before = selection(catalog, with_defaults(catalog, given_all(("workload", "nemotron4@25.04/15b"))))
    after = selection(catalog, with_defaults(catalog, given_all(("workload", "nemotron4@25.04/340b"))))

    assert before is not None
    assert after is not None
    assert (before.scale, after.scale) == (16, 256)


def test_a_typed_scale_that_is_not_listed_is_previewed_and_not_launchable(catalog: Catalog) -> None:
    chosen = selection(catalog, with_defaults(catalog, given_all(("workload", "nemotron4@25.04/15b"), ("scale", "96"))))

    assert chosen is not None
    run_plan = plan(catalog, chosen)
    assert run_plan.estimate is not None
    assert not run_plan.launchable


@pytest.mark.parametrize(
    ("field", "text"),
    [("scale", "0"), ("steps", "0"), ("time_limit", "soon"), ("time_limit", "1-"), ("time_limit", "0:00")],
)
def test_invalid_text_is_kept_and_reported(catalog: Catalog, field: str, text: str) -> None:
    answers = answer(Answers(), field, text)

    assert [problem.field for problem in input_problems(answers)] == [field]
    assert all(problem.severity == "error" and problem.fix for problem in input_problems(answers))
    assert selection(catalog, with_defaults(catalog, answers)) is None
    assert value_of(answers, field) == text


@pytest.mark.parametrize("text", ["00:30:00", "12:00:00", "2-00:00:00", "90"])
def test_time_limit_is_passed_on_as_typed(catalog: Catalog, text: str) -> None:
    chosen = selection(catalog, with_defaults(catalog, answer(Answers(), "time_limit", text)))

    assert chosen is not None
    assert chosen.time_limit == text


@pytest.mark.parametrize("field", ["scale", "steps", "time_limit", "profile_start", "load_checkpoint", "profile"])
def test_empty_text_removes_the_answer(field: str) -> None:
    typed = {"time_limit": "00:10:00", "load_checkpoint": "/ckpt", "profile": ON}.get(field, "3")
    answers = answer(Answers(), field, typed)

    assert value_of(answers, field) == typed
    assert answer(answers, field, "") == Answers()


@given(st.sampled_from(sorted(NAMES)), st.text(max_size=12))
def test_no_typed_text_breaks_the_wizard(field: str, text: str) -> None:
    if field == "workload":
        text = f"{CATALOG.recipes[0].id}/{next(iter(CATALOG.recipes[0].models))}"
    elif field in ("gpu", "dtype"):
        text = "h100" if field == "gpu" else "fp8"
    answers = answer(Answers(), field, text)

    chosen = selection(CATALOG, with_defaults(CATALOG, answers))

    assert (chosen is None) == bool(input_problems(answers))
    if chosen is not None:
        plan(CATALOG, chosen)


def test_the_answers_of_a_selection_lead_back_to_it(catalog: Catalog) -> None:
    for workload in ("nemotron4@25.04/340b", "nemotron4-340b@25.12/340b", "llama3.1@25.04/8b"):
        chosen = selection(
            catalog, with_defaults(catalog, given_all(("workload", workload), ("dtype", "fp8"), ("steps", "25")))
        )
        assert chosen is not None
        assert selection(catalog, with_defaults(catalog, answers_from_selection(chosen, "eos"))) == chosen


def test_the_command_names_the_same_choice(catalog: Catalog) -> None:
    answers = given_all(
        ("workload", "nemotron4-340b@25.12/340b"),
        ("gpu", "gb200"),
        ("dtype", "fp8"),
        ("scaling", "strong"),
        ("scale", "256"),
        ("steps", "20"),
        ("time_limit", "01:00:00"),
    )
    chosen = selection(catalog, with_defaults(catalog, answers))
    assert chosen is not None

    assert command(chosen, "my cluster") == (
        "llmb-tui submit -w nemotron4-340b@25.12 -s 340b --gpu gb200 -d fp8 --scale 256 --strong-scaling"
        " --steps 20 --time-limit 01:00:00 --cluster 'my cluster'"
    )
    assert command(chosen, None).startswith("llmb-tui plan -w nemotron4-340b@25.12 ")


def test_command_has_a_flag_for_each_option(catalog: Catalog) -> None:
    answers = given_all(
        ("workload", "llama3.1@25.04/8b"),
        ("profile", ON),
        ("profile_stop", "30"),
        ("save_checkpoint", ON),
        ("load_checkpoint", "/my ckpt"),
        ("nccl_trace", ON),
        ("hub_tokenizer", ON),
    )
    chosen = selection(catalog, with_defaults(catalog, answers))
    assert chosen is not None

    assert command(chosen, None).endswith(
        " --profile --profile-stop 30 --nccl-trace --save-checkpoint --load-checkpoint '/my ckpt' --hub-tokenizer"
    )


def test_profile_steps_have_no_effect_while_the_profile_is_off(catalog: Catalog) -> None:
    answers = given_all(("workload", "nemotron4@25.04/15b"), ("profile", ON), ("profile_start", "3"))
    off = answer(answers, "profile", "")

    idle, profiled = (
        selection(catalog, with_defaults(catalog, off)),
        selection(catalog, with_defaults(catalog, answer(off, "profile", ON))),
    )

    assert idle is not None
    assert profiled is not None
    assert idle.options == NOTHING_MORE
    assert plan(catalog, idle).launchable
    assert profiled.options == RunOptions(profile=True, profile_start=3)
