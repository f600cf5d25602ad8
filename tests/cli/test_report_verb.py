"""`report`: files are written completely or not at all and never overwrite others; output on stdout."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from llmb_tui.launch.runs import Runs
from llmb_tui.plan.make import plan
from llmb_tui.store.paths import UserPaths
from tests.kit import verbs
from tests.kit.runs import CATALOG, CREATED_AT, NEMOTRON, make_run
from tests.kit.verbs import Completed

STEP = "Training epoch 0, iteration {0}/49 | global_step: {0} | train_step_timing in s: {1} | consumed_samples: {0}\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Home directory with two runs, of which the second was slower."""
    runs = Runs(UserPaths(tmp_path / "config", tmp_path / "state"))
    for run_id, seconds in (("fast1", 1.97), ("slow1", 2.3)):
        run = make_run(run_id, job_state="COMPLETED", log_read=True, submitted_at=CREATED_AT)
        runs.save(replace(run, job_ids=(run_id[-1],)))
        runs.save_script(run_id, "#!/bin/bash\nexport HF_TOKEN=hf_abcdefghijklmnopqrstuv\nsrun true\n")
        (runs.folder(run_id) / "log").write_text("".join(STEP.format(step, seconds) for step in range(50)))
    return tmp_path


def report(home: Path, *words: str) -> Completed:
    return verbs.run(("report", *words), verbs.environment(home))


def test_one_run_as_html(home: Path) -> None:
    result = report(home, "slow1", "-o", str(home / "out" / "r.html"))
    assert result.returncode == 0, result.stderr
    path = home / "out" / "r.html"
    text = path.read_text()
    assert "✗ FAIL" in text
    assert "2.3 s" in text
    assert "hf_abcdef" not in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert result.stdout.startswith(f"{path}  ")


def test_several_runs_as_markdown_with_separate_charts(home: Path) -> None:
    result = report(home, "fast1", "slow1", "fast1", "-o", str(home / "r.md"), "--charts", str(home / "my charts"))
    assert result.returncode == 0, result.stderr
    text = (home / "r.md").read_text()
    assert text.startswith("# 2 runs\n")
    assert "2 runs: 1 PASS, 1 FAIL." in text
    assert "(my%20charts/slow1-steps.svg)" in text
    pictures = sorted(path.name for path in (home / "my charts").iterdir())
    assert pictures == ["fast1-steps.svg", "slow1-steps.svg"]
    for name in pictures:
        assert Xml.parse(home / "my charts" / name).getroot().tag.endswith("svg")


def test_a_report_without_a_file_is_markdown_on_stdout(home: Path) -> None:
    result = report(home, "fast1")
    assert result.stdout.startswith("# nemotron4@25.04 15b fp8 · 64 × H100\n")
    assert "PASS" in result.stdout


def test_charts_without_a_file_keep_the_report_on_stdout(home: Path) -> None:
    result = report(home, "fast1", "--charts", str(home / "charts"))
    assert result.stdout.startswith("# nemotron4@25.04 15b fp8 · 64 × H100\n")
    assert f"({home / 'charts' / 'scale.svg'})" in result.stdout
    assert f"{home / 'charts' / 'scale.svg'}  " in result.stderr


def test_a_report_of_a_simulated_run_begins_with_that(home: Path) -> None:
    log = home / "state" / "runs" / "fast1" / "log"
    log.write_text("simulated: no training happens; the clock of this job runs 60 times faster\n" + log.read_text())
    printed = report(home, "fast1").stdout
    assert "simulated cluster eos" in printed
    assert "Simulated: no GPU trained anything." in printed
    assert "Simulated" not in report(home, "slow1").stdout


def test_json_is_the_document_and_names_the_files(home: Path) -> None:
    result = report(home, "fast1", "--json", "-o", str(home / "r.html"))
    made = json.loads(result.stdout)
    assert made["files"] == [str(home / "r.html")]
    assert made["verdicts"][0]["result"] == "PASS"
    assert (home / "r.html").exists()


def test_files_are_replaced_only_with_force(home: Path) -> None:
    path = home / "r.html"
    path.write_text("mine")
    refused = report(home, "fast1", "-o", str(path), "--charts", str(home / "charts"))
    assert refused.returncode == 1
    assert "--force" in refused.stderr
    assert path.read_text() == "mine"
    assert not (home / "charts").exists(), "no other file is written"
    assert report(home, "fast1", "-o", str(path), "--force").returncode == 0
    assert path.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("name", ["r.pdf", "r", ".html"])
def test_another_suffix_is_refused(name: str, home: Path) -> None:
    result = report(home, "fast1", "-o", str(home / name))
    assert result.returncode == 1
    assert "ends with .html or .md" in result.stderr
    assert not (home / name).exists()


def test_an_unknown_run_leaves_no_file(home: Path) -> None:
    result = report(home, "fast1", "nothere", "-o", str(home / "r.html"))
    assert result.returncode == 1
    assert "no run and no suite nothere" in result.stderr
    assert not (home / "r.html").exists()


@pytest.mark.parametrize("absurd", ["1e300", "1e308", "1e-300"])
def test_an_absurd_step_time_spoils_no_report(home: Path, absurd: str) -> None:
    """The report of a run also reads the runs at other scales."""
    runs = Runs(UserPaths(home / "config", home / "state"))
    for gpus in (16, 32):
        run_plan = plan(CATALOG, replace(NEMOTRON, scale=gpus))
        runs.save(make_run(f"at{gpus}", plan=run_plan, job_state="COMPLETED", log_read=True))
        seconds = 1.98 if gpus == 32 else absurd
        (runs.folder(f"at{gpus}") / "log").write_text("".join(STEP.format(step, seconds) for step in range(50)))
    for words in (("at32",), ("at16",), ("at16", "at32")):
        result = report(home, *words, "-o", str(home / f"{'-'.join(words)}.html"))
        assert result.returncode == 0, result.stderr
    result = verbs.run(("compare", "at16", "at32"), verbs.environment(home))
    assert "fault" not in result.stderr
