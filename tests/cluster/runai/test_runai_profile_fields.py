"""A Run:ai profile as text in a form, and back."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from llmb_tui.cluster.profile_check import InvalidFieldError
from llmb_tui.cluster.profile_fields import field_at_fault
from llmb_tui.cluster.runai.profile import RunaiProfile, from_environment
from llmb_tui.cluster.runai.profile_fields import (
    RUNAI_EMPTY,
    RUNAI_FIELDS,
    runai_profile_of,
    runai_reachable,
    runai_texts_of,
)

PLAIN = RunaiProfile("acme", "https://acme.run.ai/api/v1", "llmb-app", "bench")
FULL = replace(
    PLAIN,
    mounts=("data:/data:shared-data", "work:/work:shared-work"),
    work_dir="/work/llmb",
    node_pool="h100",
    kubeconfig="~/.kube/config",
    ca_file="/etc/ca.pem",
    image_pull_secret="ngc",
    hub_credential="hub",
    env=(("A", "1"), ("B", "x y")),
    read_only=True,
)


def test_the_table_has_every_field_that_a_user_enters() -> None:
    assert {field.name for field in RUNAI_FIELDS} | {"notice"} == {field.name for field in fields(RunaiProfile)}


@pytest.mark.parametrize("profile", [PLAIN, FULL])
def test_the_texts_of_the_form_are_read_back_as_the_same_profile(profile: RunaiProfile) -> None:
    assert runai_profile_of(RUNAI_EMPTY, runai_texts_of(profile)) == profile


def test_an_empty_text_is_the_default() -> None:
    shown = {name for name, text in runai_texts_of(PLAIN).items() if text}
    assert shown == {field.name for field in RUNAI_FIELDS if field.needed}


def test_a_new_form_is_filled_from_the_recipes_variables() -> None:
    variables = {"BASE_URL": "https://acme.run.ai/api/v1/", "APP_ID": "a", "PROJECT_NAME": "p", "APP_SECRET": "s3cret"}
    variables |= {"RUN_CONF_MOUNTS": "data:/data:c,work:/work:w", "PVC_DIR": "/work"}
    texts = runai_texts_of(from_environment(variables))
    assert {name: text for name, text in texts.items() if text} == {
        "base_url": "https://acme.run.ai/api/v1",
        "app_id": "a",
        "project": "p",
        "mounts": "data:/data:c, work:/work:w",
        "work_dir": "/work",
    }


def test_hidden_fields_are_kept_and_a_slash_at_the_end_is_ignored() -> None:
    base = replace(PLAIN, notice="simulated")
    texts = {**runai_texts_of(PLAIN), "base_url": "https://acme.run.ai/api/v1/"}
    assert runai_profile_of(base, texts) == base


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("name", ""),
        ("project", ""),
        ("base_url", "http://acme/api/v1"),
        ("mounts", "data"),
        ("env", "no equals"),
        ("read_only", "maybe"),
    ],
)
def test_the_field_at_fault_is_named(field: str, text: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        runai_profile_of(RUNAI_EMPTY, {**runai_texts_of(PLAIN), field: text})
    assert field_at_fault(caught.value, RUNAI_FIELDS) == field


def test_a_connection_needs_less() -> None:
    texts = {**runai_texts_of(FULL), "name": "", "mounts": "half", "env": "half"}
    reached = runai_reachable(RUNAI_EMPTY, texts)
    assert reached.route == FULL.route
    with pytest.raises(InvalidFieldError):
        runai_reachable(RUNAI_EMPTY, {**texts, "base_url": "acme"})
