"""A cluster profile as text in a form, and back."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from llmb_tui.cluster.profile_check import InvalidFieldError
from llmb_tui.cluster.profile_fields import field_at_fault
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.slurm.profile_fields import EMPTY, EXTRA_FIELDS, FIELDS, profile_of, slurm_texts_of

PLAIN = SlurmProfile("eos", "login", "acct", "batch", "/lustre/llmb")
FULL = replace(
    PLAIN,
    port=2222,
    user="me",
    identity_file="~/.ssh/k",
    cpu_partition="cpu",
    qos="gold",
    reservation="bench",
    constraint="gpu",
    segment=16,
    exclude="cn[003,007]",
    memory="1900G",
    cpus_per_task=14,
    numa_binding=False,
    vboost=True,
    slurm_params="comment=mine;hold",
    mounts=("/data:/data:ro", "/x:/x"),
    env=(("A", "1"), ("B", "x y")),
    group_writable=True,
    gpu_type="h100",
    mpi="pmi2",
)


def test_form_has_every_field_that_a_user_enters() -> None:
    assert {field.name for field in (*FIELDS, *EXTRA_FIELDS)} | {"notice"} == {
        field.name for field in fields(SlurmProfile)
    }


@pytest.mark.parametrize("profile", [PLAIN, FULL, replace(PLAIN, partition="")])
def test_form_texts_are_read_back_as_the_same_profile(profile: SlurmProfile) -> None:
    assert profile_of(EMPTY, slurm_texts_of(profile)) == profile


def test_form_shows_only_values_that_differ_from_the_default() -> None:
    shown = {name for name, text in slurm_texts_of(PLAIN).items() if text}
    assert shown == {field.name for field in FIELDS if field.needed} | {"partition"}


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("numa_binding", "", True),
        ("numa_binding", "No", False),
        ("numa_binding", "yes", True),
        ("vboost", "", False),
        ("vboost", "YES", True),
        ("vboost", "no", False),
        ("cpus_per_task", "0", 0),
        ("memory", "0", "0"),
    ],
)
def test_text_is_converted_to_its_value(field: str, text: str, value: object) -> None:
    assert getattr(profile_of(EMPTY, {**slurm_texts_of(PLAIN), field: text}), field) == value


@pytest.mark.parametrize(
    ("field", "text"),
    [("vboost", "true"), ("numa_binding", "1"), ("cpus_per_task", "x"), ("cpus_per_task", "-4"), ("memory", "lots")],
)
def test_invalid_text_names_its_field(field: str, text: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        profile_of(EMPTY, {**slurm_texts_of(PLAIN), field: text})
    assert field_at_fault(caught.value, FIELDS) == field
