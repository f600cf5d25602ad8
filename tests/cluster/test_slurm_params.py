from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from llmb_tui.cluster.slurm.params import Option, parse_slurm_params, sbatch_options
from llmb_tui.errors import LlmbError
from tests.cluster.examples import PROFILE

JSON = '{"OccupiedIdleGPUsJobReaper":{"exemptIdleTimeMins":"90","reason":"model_loading"}}'
"""Comment that NVIDIA's own clusters require (NVIDIA-NeMo/Evaluator#467)."""


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", ()),
        (" ; ;", ()),
        # examples in the recipe
        ("nodelist=node001,node002;constraint=gpu", (("nodelist", "node001,node002"), ("constraint", "gpu"))),
        ("constraint=gpu&memory;exclusive", (("constraint", "gpu&memory"),)),
        ("reservation=gpu_reservation;constraint=gpu", (("reservation", "gpu_reservation"), ("constraint", "gpu"))),
        # without a semicolon blanks separate, and a single word is one parameter
        ("nodelist=a,b hold", (("nodelist", "a,b"), ("hold", None))),
        ("switches=1@60", (("switches", "1@60"),)),
        ("hold", (("hold", None),)),
        ("comment=mine and yours; hold ;", (("comment", "mine and yours"), ("hold", None))),
        ("mail_type=ALL", (("mail-type", "ALL"),)),
        ("comment=a=b", (("comment", "a=b"),)),
        ("nice=-100", (("nice", "-100"),)),
        ("constraint=[a*2&b_c|d]", (("constraint", "[a*2&b_c|d]"),)),
        ("no-requeue;hold", (("hold", None),)),
        ("time-min=10", (("time-min", "10"),)),
        # text in double quotes is not split
        (f"comment={JSON}", (("comment", JSON),)),
        (f"comment={JSON};hold", (("comment", JSON), ("hold", None))),
        (f"hold;comment={JSON}", (("hold", None), ("comment", JSON))),
        (r'comment={"a": "b; \"c;", "d": 1}; hold', (("comment", r'{"a": "b; \"c;", "d": 1}'), ("hold", None))),
        ('comment={"a": "b c"}', (("comment", '{"a": "b c"}'),)),
        ('comment=5" wide;hold', (("comment", '5" wide'), ("hold", None))),
        ("comment=it's;hold", (("comment", "it's"), ("hold", None))),
        ("comment=x -N 99 #y $(id) `id` a\\b;", (("comment", "x -N 99 #y $(id) `id` a\\b"),)),
        ("wckey=P123:bench", (("wckey", "P123:bench"),)),
    ],
)
def test_the_grammar_is_the_recipes(text: str, options: tuple[Option, ...]) -> None:
    assert parse_slurm_params(text) == options


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hold;comment=a;hold", "Duplicate Slurm parameter 'hold' was specified more than once."),
        ("mail_type=ALL;mail-type=END", "Duplicate Slurm parameter 'mail-type'"),
        ("--comment=a", "should not include a leading '--': write 'comment=a'"),
        ("-N 4", "should not include a leading '--'"),
        ("N=4", "'N' is not a Slurm parameter"),
        ("=4", "is not a Slurm parameter"),
        ("comment=", "cannot be nothing"),
        ("comment=a\nb;", "printable ASCII"),
        ("comment=ä", "printable ASCII"),
        (f"comment='{JSON}'", "omit the outer quotes"),
        ('comment="mine"', "omit the outer quotes"),
        ("nodes=4", "'nodes' is set by every run. Use the scale of the selection."),
        ("job-name=x", "The program finds the run by its job name"),
        ("job=x", "'job' is set by every run"),  # sbatch would read it as job-name
        ("output=/x", "The program finds the log by its file name"),
        ("requeue", "two runs in one result"),
        ("no-requeue=1", "no-requeue"),
        ("exclusive=user", "exclusive nodes"),
        ("gres=gpu:4", "GPU request"),
        ("gpus-per-node=h100:8", "GPU type"),
        ("clusters=mpp2", "set SLURM_CLUSTERS in ~/.bashrc"),
        ("mem-per-cpu=4G", "only one request"),
        ("account=x", "Use the cluster's account"),
        ("wrap=id", "made from the selection"),
    ],
)
def test_an_invalid_parameter_is_refused_with_a_reason(text: str, words: str) -> None:
    with pytest.raises(LlmbError) as caught:
        parse_slurm_params(text)
    assert words in caught.value.why
    assert caught.value.exit_code == 1


def test_fields_of_a_profile_come_first_then_its_parameters() -> None:
    fields: dict[str, Any] = {"reservation": "r", "qos": "q", "constraint": "c", "segment": 4, "exclude": "n[1,2]"}
    profile = replace(PROFILE, **fields, slurm_params="comment=x;hold")
    assert sbatch_options(profile) == (
        ("reservation", "r"),
        ("qos", "q"),
        ("constraint", "c"),
        ("segment", "4"),
        ("exclude", "n[1,2]"),
        ("comment", "x"),
        ("hold", None),
    )


@pytest.mark.parametrize("params", ["qos=b", "qo=b"])
def test_a_parameter_that_repeats_a_field_is_refused(params: str) -> None:
    assert sbatch_options(replace(PROFILE, slurm_params="qos=b")) == (("qos", "b"),)
    with pytest.raises(LlmbError, match="also set by the profile's field qos"):
        sbatch_options(replace(PROFILE, qos="a", slurm_params=params))
