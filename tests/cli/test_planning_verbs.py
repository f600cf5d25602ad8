"""`list` and `plan` as other programs see them: stdout and exit code."""

from __future__ import annotations

import io
import json
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llmb_tui.catalog.load import load_presets
from llmb_tui.cli import main, planning
from llmb_tui.cli.arguments import parser
from llmb_tui.cli.flags import selection_mapping
from llmb_tui.plan.request import read_request
from llmb_tui.plan.selection import RunOptions, Selection
from llmb_tui.wizard.answers import command
from tests.kit import verbs

PLAN = ("plan", "--json", "-w", "nemotron4", "-s", "15b", "--gpu", "h100", "-d", "bf16", "--scale", "64")


@pytest.fixture
def call(tmp_path: Path) -> Any:
    def run(*arguments: str, stdin: str = "") -> verbs.Completed:
        return verbs.run(arguments, verbs.environment(tmp_path), stdin)

    return run


def test_plan_prints_one_document(call: Any) -> None:
    result = call(*PLAN)
    assert (result.returncode, result.stderr) == (0, "")
    made = json.loads(result.stdout)
    assert made["selection"] == {
        "workload": "nemotron4", "release": "25.04", "size": "15b", "gpu": "h100", "dtype": "bf16", "scale": 64,
        "scaling": "weak", "precision_variant": None, "variant": None,
    }  # fmt: skip
    assert made["published"]["step_time_s"] == 2.67
    assert made["estimate"]["method"] == "published"


def test_list_has_every_published_configuration(call: Any) -> None:
    made = json.loads(call("list", "--json").stdout)
    assert len(made) == 136
    assert sum(one["published"] is not None for one in made) == 88


@pytest.mark.parametrize(("workload", "rows"), [("grok1", 18), ("llama3.1", 46), ("llama3.1@24.11", 12)])
def test_list_with_a_workload_prints_only_its_rows(call: Any, workload: str, rows: int) -> None:
    made = json.loads(call("list", "--json", "-w", workload).stdout)
    assert len(made) == rows


def test_a_scale_of_an_older_release_is_planned_with_that_release(call: Any) -> None:
    flags = ("-w", "llama3.1", "-s", "405b", "--gpu", "h100", "-d", "bf16", "--scale", "576")
    result = call("plan", "--json", *flags)
    made = json.loads(result.stdout)
    assert (result.returncode, made["selection"]["release"]) == (0, "24.11")
    line = {"workload": "llama3.1", "size": "405b", "gpu": "h100", "dtype": "bf16", "scale": 576}
    assert json.loads(call("plan", "--from", "-", stdin=json.dumps(line)).stdout) == made
    assert "A later release, llama3.1@25.04, does not list this configuration." in call("plan", *flags).stdout


def test_an_unlisted_scale_is_estimated_and_exits_with_1(call: Any) -> None:
    result = call(*PLAN[:-1], "96")
    assert result.returncode == 1
    assert "scale" in result.stderr
    assert json.loads(result.stdout)["estimate"]["method"] == "interpolated"
    read = call(*(word for word in PLAN[:-1] if word != "--json"), "96")
    assert (read.returncode, read.stderr) == (1, result.stderr)
    assert "interpolated" in read.stdout


@pytest.mark.parametrize(
    ("flag", "value", "nearest"),
    [("-w", "nemotron", "nemotron4"), ("-s", "15", "15b"), ("--gpu", "h10", "h100"), ("-d", "fp16", "bf16")],
)
def test_an_unknown_value_names_the_field_and_the_nearest(call: Any, flag: str, value: str, nearest: str) -> None:
    arguments = list(PLAN)
    arguments[arguments.index(flag) + 1] = value
    result = call(*arguments)
    assert (result.returncode, json.loads(result.stdout).keys()) == (1, {"error", "id"})
    assert nearest in result.stderr


def test_plans_of_lines_are_printed_in_order(call: Any) -> None:
    choice = {"workload": "nemotron4", "size": "15b", "gpu": "h100", "dtype": "fp8"}
    lines = [json.dumps({**choice, "scale": scale}) for scale in (16, 64)]
    result = call("plan", "--from", "-", "--json", stdin="\n".join([lines[0], "not json", lines[1]]) + "\n")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.returncode == 0
    assert [a.get("selection", {}).get("scale") for a in answers] == [16, None, 64]
    assert set(answers[1]) == {"error", "field", "nearest"}


@pytest.mark.usefixtures("user_places")
def test_each_line_is_answered_at_once_and_equal_lines_are_planned_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planned: list[str] = []
    lines, answers = iter([b"a\n", b"b\n", b"a\n", b"b\n", b"a\n"]), list[str]()

    def plan_line(_: object, line: str) -> dict[str, str]:
        planned.append(line.strip())
        return {"is": line.strip()}

    class Lines(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            answers.append(capsys.readouterr().out)
            line = next(lines, b"")
            buffer[: len(line)] = line
            return len(line)

    monkeypatch.setattr(planning, "plan_line", plan_line)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Lines()))
    assert main(["plan", "--from", "-"]) == 0
    assert answers[:6] == ["", *(f'{{"is": "{line}"}}\n' for line in "ababa")]
    assert planned == ["a", "b"]


def test_an_invalid_byte_affects_only_its_line(call: Any, tmp_path: Path) -> None:
    good = b'{"workload": "grok1", "size": "314b", "gpu": "h100", "dtype": "fp8", "scale": 512}'
    (tmp_path / "many").write_bytes(b"\xff\n" + good + b"\n")
    first, second = (json.loads(line) for line in call("plan", "--from", str(tmp_path / "many")).stdout.splitlines())
    assert set(first) == {"error", "field", "nearest"}
    assert second["published"]["step_time_s"] == 16.9


def test_wrong_usage_exits_with_1(call: Any) -> None:
    assert call("plan", "--no-such-flag").returncode == 1


def test_a_missing_file_is_refused(call: Any) -> None:
    result = call("plan", "--from", "nowhere.jsonl")
    assert result.returncode == 1
    assert "nowhere.jsonl" in result.stderr


def test_options_of_a_run_as_flags_and_as_keys_of_a_line(call: Any) -> None:
    flags = ("-p", "--profile-start", "3", "--profile-stop", "10", "--save-checkpoint")
    result = call(*PLAN, *flags)
    assert result.returncode == 0
    made = json.loads(result.stdout)
    assert made["options"] == {"profile": True, "profile_start": 3, "profile_stop": 10, "save_checkpoint": True}

    line = {"workload": "nemotron4", "size": "15b", "gpu": "h100", "dtype": "bf16", "scale": 64, **made["options"]}
    assert json.loads(call("plan", "--from", "-", stdin=json.dumps(line)).stdout) == made


@pytest.mark.parametrize(
    ("flags", "field"),
    [
        (("--nccl-trace",), "nccl_trace"),
        (("--hub-tokenizer",), "hub_tokenizer"),
        (("--profile-start", "3"), "profile_start"),
        (("--load-checkpoint", "ckpt"), "load_checkpoint"),
        (("--profile", "--steps", "100"), "steps"),
    ],
)
def test_an_impossible_option_is_an_error_with_its_reason(call: Any, flags: tuple[str, ...], field: str) -> None:
    result = call(*PLAN, *flags)
    assert result.returncode == 1
    assert result.stderr.startswith(f"llmb-tui: {field}: ")
    assert json.loads(result.stdout)["problems"][0]["field"] == field


def test_plan_from_a_file_refuses_selection_flags_and_accepts_a_byte_order_mark(call: Any, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    line = json.dumps({"workload": "nemotron4", "size": "15b", "gpu": "h100", "dtype": "fp8", "scale": 64})
    file.write_bytes(b"\xef\xbb\xbf" + line.encode() + b"\r\n")
    assert json.loads(call("plan", "--from", str(file)).stdout)["nodes"] == 8
    refused = call("plan", "--from", str(file), "--scale", "8")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "--scale" in refused.stderr


def test_help_names_every_option(call: Any) -> None:
    text = call("submit", "--help").stdout
    for flag in ("-p, --profile", "--nccl-trace", "--save-checkpoint", "--load-checkpoint PATH", "--tp N"):
        assert flag in text


def test_the_command_shown_by_the_wizard_parses_to_the_same_selection() -> None:
    catalog = load_presets()
    options = RunOptions(True, True, 3, 9, True, True, "/lustre/my=1")
    chosen = Selection("llama3.1", "25.04", "8b", "h100", "bf16", 8, steps=9, time_limit="00:10:00", options=options)
    words = shlex.split(command(chosen, "eos"))
    assert words.pop(0) == "llmb-tui"
    assert read_request(catalog, selection_mapping(parser().parse_args(words))) == chosen
