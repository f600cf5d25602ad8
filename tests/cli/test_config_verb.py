"""`config`, and the other verbs with unreadable files."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.cluster.profiles import save_profile
from llmb_tui.cluster.slurm.profile import SlurmProfile
from tests.kit import verbs

EOS = SlurmProfile("eos", "login.eos.example", "acct", "batch", "/lustre/llmb", env=(("NCCL_DEBUG", "INFO"),))


@pytest.fixture
def call(tmp_path: Path) -> Any:
    variables = verbs.environment(tmp_path)
    del variables["LLMB_TUI_STATE_DIR"]

    def run(*arguments: str) -> verbs.Completed:
        return verbs.run(arguments, variables)

    return run


@pytest.fixture
def clusters(tmp_path: Path) -> Path:
    folder = tmp_path / "config" / "clusters"
    save_profile(folder, EOS)
    return folder


def test_path_prints_every_path_and_its_origin(call: Any, tmp_path: Path) -> None:
    places = json.loads(call("config", "path", "--json").stdout)
    assert places["clusters"] == {"path": str(tmp_path / "config" / "clusters"), "from": "LLMB_TUI_CONFIG_DIR"}
    assert places["journal"]["from"] == "default"
    assert str(tmp_path) in places["journal"]["path"]
    text = call("config", "path").stdout
    assert all(name in text for name in ("config", "presets", "state", "runs"))


def test_show_prints_the_origin_of_each_setting(call: Any, clusters: Path) -> None:
    shown = json.loads(call("config", "show", "--json").stdout)
    (cluster,) = shown["clusters"]
    assert cluster["file"] == str(clusters / "eos.toml")
    assert cluster["settings"]["host"] == {"value": "login.eos.example", "from": "file"}
    assert cluster["settings"]["env"] == {"value": {"NCCL_DEBUG": "INFO"}, "from": "file"}
    assert cluster["settings"]["gpu_request"] == {"value": "gpus-per-node", "from": "default"}
    assert shown["presets"] == []
    lines = call("config", "show").stdout.splitlines()
    assert any("eos.env" in line and "NCCL_DEBUG=INFO" in line and "eos.toml" in line for line in lines)


@pytest.mark.usefixtures("clusters")
def test_validate_accepts_valid_files(call: Any) -> None:
    result = call("config", "validate", "--json")
    assert (result.returncode, json.loads(result.stdout)) == (0, {"ok": True, "files": 1, "faults": []})
    assert call("config", "validate").stdout.endswith("no faults\n")


def test_validate_prints_file_line_field_and_fix_of_every_fault(call: Any, clusters: Path, tmp_path: Path) -> None:
    (clusters / "bad.toml").write_text(
        'name = "bad"\nhost = "h"\naccount = "a b"\npartition = "p"\ninstall_dir = "/i"\n'
    )
    (clusters / "torn.toml").write_text('name = "torn\n')
    presets = tmp_path / "config" / "presets"
    presets.mkdir()
    (presets / "mine.toml").write_text('workload = "mine"\n')
    runs = Path(json.loads(call("config", "path", "--json").stdout)["runs"]["path"])
    (runs / "abc").mkdir(parents=True)
    (runs / "abc" / "run.json").write_text("{}")
    result = call("config", "validate", "--json")
    assert result.returncode == 1
    faults = {Path(fault["file"]).name: fault for fault in json.loads(result.stdout)["faults"]}
    assert set(faults) == {"bad.toml", "torn.toml", "mine.toml", "runs"}
    assert (faults["bad.toml"]["line"], faults["bad.toml"]["field"]) == (3, "account")
    assert (faults["torn.toml"]["line"], faults["torn.toml"]["field"]) == (1, "")
    assert faults["mine.toml"]["field"]
    assert "abc" in faults["runs"]["what"]
    assert all(fault["mend"] for fault in faults.values())
    text = call("config", "validate").stdout
    fields = [fault["field"] for fault in json.loads(result.stdout)["faults"] if fault["file"].endswith("mine.toml")]
    assert {"release", "tables", "launch"} < set(fields)
    assert all(f"mine.toml, line 1: {field}: is missing" in text for field in fields)
    assert text.count("move it out of the presets directory") == 1
    assert f"{len(fields) + 3} faults" in text
    assert "bad.toml, line 3" in text


def test_validate_checks_the_examples_of_custom_failure_rules(call: Any, tmp_path: Path) -> None:
    failures = tmp_path / "config" / "failures"
    failures.mkdir(parents=True)
    rule = '[[submit]]\nwords = ["no GPUs"]\nreason = "ask for GPUs."\nfix = "See the wiki."\nexamples = ["{}"]\n'
    (failures / "site.toml").write_text(rule.format("sorry, no GPUs asked for"))
    assert json.loads(call("config", "validate", "--json").stdout) == {"ok": True, "files": 1, "faults": []}
    (failures / "site.toml").write_text(rule.format("sorry"))
    (failures / "torn.toml").write_text("[[submit\n")
    result = call("config", "validate", "--json")
    assert result.returncode == 1
    faults = {Path(fault["file"]).name: fault for fault in json.loads(result.stdout)["faults"]}
    assert (faults["site.toml"]["line"], faults["site.toml"]["field"]) == (5, "submit[0].examples[0]")
    assert faults["torn.toml"]["line"] == 1
    assert "failures directory" in faults["site.toml"]["mend"]
    assert str(failures) in call("config", "path").stdout


def test_a_journal_that_cannot_be_read_is_a_fault(call: Any) -> None:
    path = Path(json.loads(call("config", "path", "--json").stdout)["journal"]["path"])
    path.mkdir(parents=True)  # a directory cannot be read as a file, not even by root
    result = call("config", "validate", "--json")
    assert [Path(fault["file"]).name for fault in json.loads(result.stdout)["faults"]] == ["journal.jsonl"]


def test_broken_files_are_ignored_with_a_message(call: Any, clusters: Path, tmp_path: Path) -> None:
    save_profile(clusters, replace(EOS, name="nil", env=()))
    (clusters / "bad.toml").write_text("name = 1\n")
    presets = tmp_path / "config" / "presets"
    presets.mkdir()
    (presets / "mine.toml").write_text("not = [toml")
    listed = call("list", "--json", "-w", "grok1")
    assert (listed.returncode, len(json.loads(listed.stdout))) == (0, 18)
    assert listed.stderr.count("mine.toml") == 1
    result = call("clusters", "--json")
    assert [cluster["name"] for cluster in json.loads(result.stdout)] == ["eos", "nil"]
    assert json.loads(result.stdout)[0]["env"] == {"NCCL_DEBUG": "INFO"}
    assert "bad.toml" in result.stderr


def test_a_broken_cluster_file_is_reported_when_it_is_needed(call: Any, clusters: Path) -> None:
    (clusters / "bad.toml").write_text("name = 1\n")
    result = call("doctor", "bad")
    assert result.returncode == 1
    assert f"{os.sep}bad.toml, line 1" in result.stderr


def test_an_unknown_cluster_is_a_wrong_request(call: Any) -> None:
    result = call("doctor", "nowhere")
    assert (result.returncode, "nowhere" in result.stderr) == (1, True)


def test_settings_are_shown_with_their_source_and_checked(call: Any, tmp_path: Path) -> None:
    file = tmp_path / "config" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[verdict]\nthreshold = 0.97\n[keys]\napp.qit = "x"\n', encoding="utf-8")
    shown = json.loads(call("--set", "limits.gpu_hours=5", "config", "show", "--json").stdout)["settings"]
    assert shown["verdict.threshold"] == {"value": 0.97, "from": "file"}
    assert shown["limits.gpu_hours"] == {"value": 5, "from": "flag"}
    assert shown["keys.app.quit"] == {"value": "q", "from": "default"}
    result = call("config", "validate", "--json")
    (fault,) = json.loads(result.stdout)["faults"]
    assert (result.returncode, fault["file"], fault["line"], fault["field"]) == (1, str(file), 4, "keys.app.qit")
    file.write_text("[verdict]\nthreshold = 97\n", encoding="utf-8")
    result = call("jobs")
    assert result.returncode == 1
    assert f"{file}, line 2" in result.stderr
    assert "verdict.threshold" in result.stderr


def test_flags_before_and_after_the_verb_both_count(call: Any) -> None:
    result = call("--set", "verdict.threshold=0.9", "config", "show", "--json", "--set", "limits.gpu_hours=5")
    shown = json.loads(result.stdout)["settings"]
    assert shown["verdict.threshold"]["value"] == 0.9
    assert shown["limits.gpu_hours"]["value"] == 5
