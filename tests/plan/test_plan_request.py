"""Parsing of flags and lines of JSON, and the answers to invalid ones."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.catalog.catalog import Catalog, UnknownNameError
from llmb_tui.plan.document import document
from llmb_tui.plan.make import plan
from llmb_tui.plan.request import InvalidRequestError, plan_line, plan_request, read_request
from llmb_tui.plan.resolved import selections
from llmb_tui.plan.selection import FIELDS, Overrides, RunOptions, Selection
from tests.kit.runs import CATALOG

GOOD = {"workload": "nemotron4", "size": "15b", "gpu": "h100", "dtype": "bf16", "scale": 64}


def refused(request: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    try:
        result = read_request(CATALOG, request)
    except (InvalidRequestError, UnknownNameError) as error:
        return error.field, error.nearest
    pytest.fail(f"read as {result}")


def test_all_keys(catalog: Catalog) -> None:
    own = {"tp": 4, "pp": 2, "cp": 1, "ep": 1, "vp": 2, "mbs": 1, "gbs": 64, "seq_len": 2048, "layers": 16}
    beside = {
        "hub_tokenizer": True, "profile": True, "profile_start": 3, "profile_stop": 9, "nccl_trace": True,
        "save_checkpoint": True, "load_checkpoint": "/lustre/checkpoint",
    }  # fmt: skip
    request = {
        **GOOD, **own, **beside, "release": "25.04", "strong_scaling": True, "steps": 10, "time_limit": "00:10:00",
    }  # fmt: skip
    assert read_request(catalog, request) == Selection(
        "nemotron4", "25.04", "15b", "h100", "bf16", 64, True, Overrides(4, 2, 1, 1, 2, 1, 64, 2048, 16), 10,
        "00:10:00", RunOptions(True, True, 3, 9, True, True, "/lustre/checkpoint"),
    )  # fmt: skip


def test_the_selection_in_a_plan_document_is_read_back_unchanged(catalog: Catalog) -> None:
    for recipe in catalog.recipes:
        for chosen in selections(recipe):
            selection = document(plan(catalog, chosen))["selection"]
            strong = {"strong_scaling": selection.pop("scaling") == "strong"}
            assert read_request(catalog, selection | strong) == chosen


@pytest.mark.parametrize(
    ("change", "named", "there_is"),
    [
        ({"dtype": "fp8", "precision_variant": "mx"}, "in fp8; it has delayed", ("delayed",)),
        ({"precision_variant": "delayed"}, "in bf16; it has none", ()),
        ({"variant": "v2"}, "it has none", ()),
    ],
)
def test_the_error_for_a_missing_variant_lists_the_available_ones(
    catalog: Catalog, change: dict[str, Any], named: str, there_is: tuple[str, ...]
) -> None:
    answer = plan_line(catalog, json.dumps(GOOD | change))
    assert named in answer["error"]
    assert (answer["field"], tuple(answer["nearest"])) == (list(change)[-1], there_is)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("variant", 1),
        ("profile", 1),
        ("nccl_trace", "yes"),
        ("save_checkpoint", "/lustre"),
        ("hub_tokenizer", []),
        ("profile_stop", "25"),
        ("load_checkpoint", True),
        ("load_checkpoint", "/" * 5000),
    ],
)
def test_an_option_of_the_wrong_kind_names_its_field(field: str, value: object) -> None:
    assert refused({**GOOD, field: value}) == (field, ())


@pytest.mark.parametrize(
    ("given", "workload", "release"),
    [
        ({"workload": "llama3.1", "size": "8b"}, "llama3.1", "25.04"),
        ({"workload": "llama3.1@24.11", "size": "405b"}, "llama3.1", "24.11"),
        ({"workload": "llama3.1", "release": "24.11", "size": "405b"}, "llama3.1", "24.11"),
        ({"workload": "pretrain_nemotron4-340b", "size": "340b"}, "nemotron4-340b", "25.12"),
        ({"workload": "pretrain_nemotron4@25.04", "release": "25.04"}, "nemotron4", "25.04"),
    ],
)
def test_workload_and_release(given: dict[str, str], workload: str, release: str) -> None:
    selection = read_request(CATALOG, {**GOOD, **given})
    assert (selection.workload, selection.release) == (workload, release)


@pytest.mark.parametrize(
    ("change", "release"),
    [
        ({"scale": 576}, "24.11"),
        ({"scale": 576, "dtype": "fp8"}, "24.11"),
        ({"scale": 512}, "25.04"),
        ({"scale": 32}, "25.04"),
        ({"scale": 600}, "25.04"),
        ({"scale": 576, "gpu": "b200"}, "25.04"),
        ({"scale": 576, "strong_scaling": True}, "25.04"),
        ({"scale": 576, "size": "8b"}, "25.04"),
        ({"scale": 576, "workload": "llama3.1@25.04"}, "25.04"),
        ({"scale": 576, "release": "25.04"}, "25.04"),
    ],
)
def test_without_a_release_the_newest_that_lists_the_configuration_is_meant(
    change: dict[str, Any], release: str
) -> None:
    assert read_request(CATALOG, {**GOOD, "workload": "llama3.1", "size": "405b", **change}).release == release


def test_a_size_that_only_an_older_release_has_is_found_there() -> None:
    older, newer = CATALOG.recipe("llama3.1", "25.04"), CATALOG.recipe("llama3.1", "24.11")
    catalog = Catalog((replace(older, release="24.01"), newer))
    asked = {**GOOD, "workload": "llama3.1"}
    assert read_request(catalog, {**asked, "size": "8b", "scale": 24}).release == "24.01"
    assert read_request(catalog, {**asked, "size": "405b", "scale": 24}).release == "24.11"


def test_a_later_release_without_the_configuration_is_mentioned() -> None:
    asked = {**GOOD, "workload": "llama3.1", "size": "405b"}
    run_plan = plan_request(CATALOG, {**asked, "scale": 576})
    assert (run_plan.launchable, run_plan.published is not None) == (True, True)
    assert [problem.reason for problem in run_plan.problems if problem.field == "release"] == [
        "A later release, llama3.1@25.04, does not list this configuration."
    ]
    for same in ({"scale": 512}, {"scale": 576, "release": "24.11"}):
        assert not [
            problem for problem in plan_request(CATALOG, {**asked, **same}).problems if problem.field == "release"
        ]


def test_names_in_upper_case_and_keys_without_a_value() -> None:
    request = {
        **GOOD,
        "workload": "Nemotron4",
        "size": "15B",
        "gpu": "H100",
        "dtype": "BF16",
        "tp": None,
        "steps": None,
    }
    assert read_request(CATALOG, request) == read_request(CATALOG, GOOD)


@pytest.mark.parametrize(
    ("change", "field", "nearest"),
    [
        ({"workload": "nemotrom4"}, "workload", "nemotron4"),
        ({"workload": "grok1@25.20"}, "release", "25.02"),
        ({"release": "25.4"}, "release", "25.04"),
        ({"size": "15"}, "size", "15b"),
        ({"gpu": "h200"}, "gpu", "h100"),
        ({"dtype": "fp4"}, "dtype", "fp8"),
        ({"scal": 64}, "scal", "scale"),
        ({"sequence_len": 64}, "sequence_len", "seq_len"),
        ({"workload": None}, "workload", "nemotron4"),
        ({"size": None}, "size", "340b"),
        ({"gpu": None}, "gpu", "h100"),
        ({"dtype": None}, "dtype", "fp8"),
    ],
)
def test_the_error_for_an_unknown_name_lists_the_nearest_names(
    change: dict[str, Any], field: str, nearest: str
) -> None:
    text, names = refused({**GOOD, **change})
    assert text == field
    assert nearest in names


WRONG: dict[str, list[object]] = {
    "scale": [0, -8, True, "64", 64.0, 1e99, [64], None, 2**31],
    "tp": ["2", 2.0, False, {}, 10**400],
    "steps": [True, "50"],
    "time_limit": [30, True],
    "strong_scaling": [1, "true", "yes"],
    "size": [15, ["15b"]],
    "workload": [4, True],
    "release": [25.04],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in WRONG.items() for value in values])
def test_values_of_the_wrong_kind(field: str, value: object) -> None:
    assert refused({**GOOD, field: value})[0] == field


def test_two_releases_cannot_be_meant() -> None:
    assert refused({**GOOD, "workload": "nemotron4@25.04", "release": "25.12"})[0] == "release"


def test_lines_are_answered_in_order_and_an_invalid_line_stops_no_other() -> None:
    lines = [
        json.dumps({**GOOD, "scale": 16}),
        "",
        "{",
        "[1, 2]",
        "null",
        json.dumps({**GOOD, "gpu": "a100"}),
        json.dumps({**GOOD, "scale": 64, "tp": 3}) + "\r\n",
        "[" * 100_000,
        "9" * 5_000,
        '{"workload": "\\ud800"}',
        json.dumps({**GOOD, "scale": 2048}),
    ]
    answers = [plan_line(CATALOG, line) for line in lines]
    assert [a["selection"]["scale"] if "selection" in a else a["field"] for a in answers] == [
        16, "", "", "", "", "gpu", 64, "", "", "workload", 2048,
    ]  # fmt: skip
    for answer in answers:
        assert "selection" in answer or set(answer) == {"error", "field", "nearest"}
        assert answer.get("error") != ""
        json.dumps(answer).encode()
    assert answers[5]["nearest"][0] == "h100"


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.one_of(st.text(max_size=40), ANY_JSON.map(json.dumps)))
def test_any_line_has_an_answer(line: str) -> None:
    assert plan_line(CATALOG, line)


@given(st.dictionaries(st.sampled_from(list(FIELDS)), ANY_JSON))
def test_any_value_of_a_valid_key_gives_a_plan_or_an_error(change: dict[str, Any]) -> None:
    answer = plan_line(CATALOG, json.dumps({**GOOD, **change}))
    assert ("selection" in answer) != ("error" in answer)
