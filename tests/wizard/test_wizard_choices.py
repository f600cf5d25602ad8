from __future__ import annotations

from dataclasses import replace

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan.make import plan
from llmb_tui.plan.resolved import selections
from llmb_tui.wizard.answers import Answers, answer, answers_from_selection, selection, with_defaults
from llmb_tui.wizard.choices import Choice, choices, details

WORKLOAD = "workload"


def offered(catalog: Catalog, answers: Answers, field: str) -> dict[str, Choice]:
    return {choice.value: choice for choice in choices(catalog, with_defaults(catalog, answers), field)}


def test_every_size_of_every_release_can_be_chosen(catalog: Catalog) -> None:
    by_value = offered(catalog, Answers(), "workload")

    assert set(by_value) == {f"{recipe.id}/{size}" for recipe in catalog.recipes for size in recipe.models}
    assert all(choice.disabled_reason is None for choice in by_value.values())


def test_a_workload_is_found_by_its_gpu_type_and_release(catalog: Catalog) -> None:
    by_value = offered(catalog, Answers(), "workload")

    assert [value for value, choice in by_value.items() if "gb300" in choice.search_text] == [
        "nemotron4-340b@25.12/340b"
    ]
    assert "24.11" in by_value["llama3.1@24.11/405b"].search_text


def test_a_size_is_found_without_its_neighbours(catalog: Catalog) -> None:
    by_value = offered(catalog, Answers(), "workload")

    assert {value for value, choice in by_value.items() if "405b" in choice.search_text} == {
        "llama3.1@25.04/405b",
        "llama3.1@24.11/405b",
    }


def test_a_gpu_type_that_the_recipe_lacks_is_shown_with_the_reason(catalog: Catalog) -> None:
    by_value = offered(catalog, answer(Answers(), WORKLOAD, "nemotron4@25.04/15b"), "gpu")

    assert set(by_value) == set(catalog.gpu_types())
    assert by_value["h100"].disabled_reason is None
    assert by_value["gb200"].disabled_reason == "not in nemotron4@25.04"


def test_value_that_is_not_published_for_the_size_is_shown_with_the_reason(catalog: Catalog) -> None:
    """No shipped recipe is like that, but a custom one may be."""
    recipe = catalog.recipe("nemotron4")
    lean = replace(
        recipe,
        gpus={**recipe.gpus, "b200": recipe.gpus["h100"]},
        tables=tuple(replace(table, dtypes=("bf16",)) if table.size == "340b" else table for table in recipe.tables),
    )
    own = Catalog((lean,))
    answers = answer(Answers(), WORKLOAD, f"{lean.id}/340b")

    assert offered(own, answers, "gpu")["b200"].disabled_reason == "not published for 340b"
    assert offered(own, answers, "gpu")["h100"].disabled_reason is None
    assert offered(own, answers, "dtype")["fp8"].disabled_reason == "not published for 340b on H100"
    assert offered(own, answers, "dtype")["bf16"].disabled_reason is None


def test_strong_scaling_is_shown_with_the_reason_if_only_weak_is_published(catalog: Catalog) -> None:
    weak_only = offered(catalog, answer(Answers(), WORKLOAD, "nemotron4@25.04/15b"), "scaling")
    some = offered(catalog, answer(answer(Answers(), WORKLOAD, "nemotron4-340b@25.12/340b"), "gpu", "h100"), "scaling")
    both = offered(catalog, answer(answer(Answers(), WORKLOAD, "nemotron4-340b@25.12/340b"), "gpu", "gb200"), "scaling")

    assert weak_only["strong"].disabled_reason == "weak only in nemotron4@25.04"
    assert some["strong"].disabled_reason == "weak only on H100", "other types have both"
    assert both["strong"].disabled_reason is None
    assert both["weak"].disabled_reason is None


def test_scales_show_whether_a_result_is_published(catalog: Catalog) -> None:
    published = offered(catalog, answer(Answers(), WORKLOAD, "nemotron4@25.04/15b"), "scale")
    none = offered(catalog, answer(answer(Answers(), WORKLOAD, "nemotron4-340b@25.12/340b"), "gpu", "b200"), "scale")

    assert list(published) == ["16", "32", "64", "128", "256", "512", "1024", "2048"]
    assert published["64"].published
    assert "2.67 s" in published["64"].detail
    assert any(choice.published is False for choice in none.values())


def test_published_is_a_scale_whose_plan_has_a_published_result(catalog: Catalog) -> None:
    for recipe in catalog.recipes:
        for chosen in selections(recipe):
            choice = offered(catalog, answers_from_selection(chosen), "scale")[str(chosen.scale)]
            assert choice.published == (plan(catalog, chosen).published is not None), chosen


def test_step_time_of_another_release_is_marked(catalog: Catalog) -> None:
    answers = Answers(recipe="nemotron4-340b@25.12", size="340b", gpu="gb200", dtype="fp8")
    assert offered(catalog, answers, "scale")["128"].detail == "no result  32 nodes  1.483 s in 25.05"


def test_reduced_model_is_marked(catalog: Catalog) -> None:
    by_value = offered(catalog, answer(Answers(), WORKLOAD, "grok1@25.02/314b"), "scale")

    assert "2/64 layers" in by_value["8"].detail


def test_only_enabled_choices_can_be_launched(catalog: Catalog) -> None:
    """A choice is disabled if and only if the plan has an error."""
    for workload in offered(catalog, Answers(), "workload"):
        at_workload = answer(Answers(), WORKLOAD, workload)
        for gpu, gpu_choice in offered(catalog, at_workload, "gpu").items():
            at_gpu = answer(at_workload, "gpu", gpu)
            for dtype, dtype_choice in offered(catalog, at_gpu, "dtype").items():
                chosen = selection(catalog, with_defaults(catalog, answer(at_gpu, "dtype", dtype)))
                assert chosen is not None
                possible = gpu_choice.disabled_reason is None and dtype_choice.disabled_reason is None
                assert plan(catalog, chosen).launchable == possible, chosen


def test_only_enabled_scales_can_be_launched(catalog: Catalog) -> None:
    answers = answer(answer(Answers(), WORKLOAD, "nemotron4-340b@25.12/340b"), "gpu", "gb200")
    for scaling in ("weak", "strong"):
        scaled = answer(answers, "scaling", scaling)
        for value, choice in offered(catalog, scaled, "scale").items():
            chosen = selection(catalog, with_defaults(catalog, answer(scaled, "scale", value)))
            assert chosen is not None
            assert plan(catalog, chosen).launchable == (choice.disabled_reason is None), (scaling, value)


def test_details_name_the_source(catalog: Catalog) -> None:
    for recipe in catalog.recipes:
        for size in recipe.models:
            facts = dict(details(catalog, with_defaults(catalog, answer(Answers(), WORKLOAD, f"{recipe.id}/{size}"))))
            assert facts["source"] == recipe.source


def test_gated_access_is_a_need_of_nvidias_scripts(catalog: Catalog) -> None:
    """Our script needs no access."""
    facts = dict(details(catalog, with_defaults(catalog, answer(Answers(), WORKLOAD, "llama3.1@25.04/8b"))))
    assert facts["access"] == "NVIDIA's scripts need meta-llama/Meta-Llama-3-8B"
    assert "access" not in dict(
        details(catalog, with_defaults(catalog, answer(Answers(), WORKLOAD, "grok1@25.02/314b")))
    )
