"""Differences between two runs besides their times, without facts of a single run and without secrets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.analysis.difference import Change, RunSources, difference
from llmb_tui.language.redact import HIDDEN, hidden_value, without_secrets
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.watch.log_reader import read_log
from tests.kit.runs import make_run, make_spec

GOLDEN = Path(__file__).parents[1] / "watch" / "golden"
SCRIPT = Path(__file__).parents[1] / "launch" / "golden" / "nemotron4-25.04.sh"
TOKEN = "hf_" + "aB3" * 10


def ran(run_id: str, script: str = "", log: str = "", **spec: object) -> RunSources:
    made = replace(make_spec(run_id), **spec)  # type: ignore[arg-type]
    run = make_run(run_id, spec=made)
    return RunSources(run, script, read_log(GOLDEN / log) if log else None)


def changes(before: RunSources, after: RunSources) -> dict[str, tuple[str | None, str | None]]:
    return {change.name: (change.before, change.after) for change in difference(before, after).changes}


def test_two_equal_runs_have_no_difference() -> None:
    run_sources, two = (
        ran(run_id, f"cd /lustre/e_{run_id}\ntrain\n", "nemo-2.2.1.log") for run_id in ("k3f9a2", "m4g0b3")
    )
    result = difference(run_sources, two)
    assert (result.changes, result.texts) == ((), ())
    assert result.unknown == ("Not stated in both logs: driver, NCCL.",)


def test_another_container_brings_other_versions_and_settings() -> None:
    before = ran("k3f9a2", log="nemo-2.2.1.log")
    after = ran("m4g0b3", log="nemo-2.4.0-flops.log", container_image="/lustre/llmb/images/nvidia+nemo+25.07.01.sqsh")
    result = difference(before, after)
    assert result.changes[:2] == (
        Change("versions", "NeMo", "2.2.1", "2.4.0"),
        Change("versions", "Megatron Core", "0.11.0", "0.13.0"),
    )
    assert {change.part for change in result.changes} == {"versions", "launch", "settings"}
    assert changes(replace(before, facts=None), ran("m4g0b3", env=(("A", "1"),))) == {"A": (None, "1")}
    callback = "trainer.callbacks[FLOPsMeasurementCallback]"
    assert [(change.before, change.after) for change in result.changes if change.name == callback] == [
        (None, "nemo.lightning.pytorch.callbacks.flops_callback:FLOPsMeasurementCallback")
    ]


def test_environment_launch_and_script() -> None:
    script = SCRIPT.read_text()
    before = ran("k3f9a2", script, env=(("NCCL_NVLS_ENABLE", "0"), ("NEW", "1")), srun=(("mpi", "pmix"),))
    output_text = script.replace("NCCL_NVLS_ENABLE=0", "NCCL_NVLS_ENABLE=1")
    after = ran("m4g0b3", output_text, env=(("NCCL_NVLS_ENABLE", "1"),), srun=(("mpi", "pmix"), ("wait", "60")))
    assert changes(before, after) == {
        "srun": ("mpi=pmix", "mpi=pmix wait=60"),
        "NCCL_NVLS_ENABLE": ("0", "1"),
        "NEW": ("1", None),
    }
    (text,) = difference(before, after).texts
    assert text.name == "script"
    assert [line for line in text.lines if line[0] in "+-" and line[:3] not in ("---", "+++")] == [
        "-export NCCL_NVLS_ENABLE=0",
        "+export NCCL_NVLS_ENABLE=1",
    ]


def test_a_fact_known_for_only_one_run_is_not_a_difference() -> None:
    known, unknown = ran("k3f9a2", "train\n", "nemo-2.2.1.log", env=(("A", "1"),)), make_run("m4g0b3", spec=None)
    result = difference(known, RunSources(unknown, "", None))
    assert (result.changes, result.texts) == ((), ())
    assert result.unknown == (
        "The log of run m4g0b3 is not on this machine, so its versions are unknown.",
        "Run m4g0b3 was started by another program, so its environment is unknown.",
    )


def test_a_version_missing_in_one_log_is_not_a_difference() -> None:
    before, after = ran("k3f9a2", "", "nemo-2.2.1.log"), ran("m4g0b3", "", "nemo-2.2.1.log")
    assert after.facts is not None
    versions = (("NeMo", "2.3.0"), ("NCCL", "2.21.5"))
    result = difference(before, replace(after, facts=replace(after.facts, versions=versions)))
    assert [(change.name, change.before, change.after) for change in result.changes] == [("NeMo", "2.2.1", "2.3.0")]
    assert any("driver" in words for words in result.unknown)


def test_the_plan_and_the_cluster() -> None:
    before, after = ran("k3f9a2"), ran("m4g0b3")
    layout = replace(after.run.plan.parallelism, tp=4)
    moved: Run = replace(after.run, cluster="selene", plan=replace(after.run.plan, parallelism=layout))
    assert changes(before, RunSources(moved, "", None)) == {"cluster": ("eos", "selene"), "tp": ("2", "4")}


def test_no_secret_is_shown() -> None:
    script = (
        f"export HF_TOKEN={TOKEN}\nexport WANDB_API_KEY='0123456789abcdef'\ncurl https://me:pass-word@host/x\nA={{}}\n"
    )
    env = (("HF_TOKEN", TOKEN), ("MY_PASSWORD", "tea"), ("NOTE", f"see {TOKEN}"), ("HF_TOKEN_PATH", "/home/me/token"))
    before = ran("k3f9a2", script.format(1), env=env)
    after = ran("m4g0b3", script.format(2).replace("aB3", "bC4"), env=tuple((name, f"{value}x") for name, value in env))
    result = difference(before, after)
    assert dict(changes(before, after)) == {
        "HF_TOKEN": (HIDDEN, HIDDEN),
        "MY_PASSWORD": (HIDDEN, HIDDEN),
        "NOTE": (f"see {HIDDEN}", f"see {HIDDEN}"),
        "HF_TOKEN_PATH": ("/home/me/token", "/home/me/tokenx"),
    }
    assert not any(word in repr(result) for word in ("aB3", "bC4", "0123456789abcdef", "pass-word", "tea"))


def test_our_script_has_nothing_to_hide() -> None:
    for path in SCRIPT.parent.glob("*.sh"):
        assert without_secrets(path.read_text()) == path.read_text(), path.name


@pytest.mark.parametrize(
    "text",
    [
        'HF_TOKEN="$(cat "$HOME/.llmb-tui/hugging-face-token")"',
        "HF_TOKEN_PATH=/llmb-tui/hugging-face-token",
        "TOKENIZERS_PARALLELISM=False",
        "tokens/s: 529,584",
        "model.tokenizer.vocab_size = 511",
        "https://nvcr.io/v2/nvidia/nemo",
    ],
)
def test_a_text_that_only_resembles_a_secret_stays(text: str) -> None:
    assert without_secrets(text) == text


@pytest.mark.parametrize("value", ["'pa$$w0rd99x'", '"ab$cdefgh"', "abcdefgh$ijklmnop", "Tr0ub4dor&3xyz"])
def test_a_value_is_hidden_whole(value: str) -> None:
    assert without_secrets(f"export DB_PASSWORD={value} NEXT=1") == f"export DB_PASSWORD={HIDDEN} NEXT=1"


@given(st.sampled_from(["hf_", "nvapi-"]), st.from_regex(r"[A-Za-z0-9]{16,60}", fullmatch=True), st.text(max_size=20))
def test_tokens_are_hidden_at_any_place_in_a_text(prefix: str, rest: str, around: str) -> None:
    assert rest not in without_secrets(f"{around} {prefix}{rest}\n{around}") or rest in around
    assert hidden_value("ANY", f"{prefix}{rest}") == HIDDEN


def test_of_a_long_command_the_options_differ() -> None:
    script = SCRIPT.read_text()
    before, after = ran("k3f9a2", script), ran("m4g0b3", script.replace("--mpi=pmix", "--mpi=pmi2"))
    (text,) = difference(before, after).texts
    assert [line for line in text.lines if line[0] in "+-"][2:] == ["-    --mpi=pmix", "+    --mpi=pmi2"]


def test_folders_and_names_are_no_difference() -> None:
    specs = [
        {"experiment": f"pretrain_{name}", "task_dir": f"/lustre/pretrain_{name}/task"} for name in ("fp8", "bf16")
    ]
    before, after = (
        ran(run_id, f"cd {spec['task_dir']}\n#SBATCH --job-name={spec['experiment']}_{run_id}\n", **spec)
        for run_id, spec in zip(("k3f9a2", "m4g0b3"), specs, strict=True)
    )
    assert difference(before, after).texts == ()


def test_a_long_diff_is_cut_and_counts_the_omitted_lines() -> None:
    before, after = ran("k3f9a2", "a\n" * 300), ran("m4g0b3", "b\n" * 300)
    (text,) = difference(before, after).texts
    assert len(text.lines) == 400
    assert text.cut == 203


def test_files_that_travelled_are_compared() -> None:
    files = (("configs/launch.json", '{\n "steps": 50\n}\n'),)
    before, after = ran("k3f9a2", files=files), ran("m4g0b3", files=(("configs/launch.json", '{\n "steps": 60\n}\n'),))
    assert isinstance(before.run.spec, LaunchSpec)
    assert [text.name for text in difference(before, after).texts] == ["configs/launch.json"]
