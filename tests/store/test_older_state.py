"""Files that the previous version stored, in `older/`, are read: it used other ids for two procedures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from llmb_tui.cli import main
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.services import Services
from llmb_tui.store.paths import CONFIG_VARIABLE, STATE_VARIABLE, UserPaths
from llmb_tui.ui.wizard_effects import read_start
from tests.kit.runs import delivery_of

DIRECT, UPSTREAM, LLMB = "251121080102aaaa", "251121090102bbbb", "llmb48123abcd"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UserPaths:
    places = UserPaths(tmp_path / "config", tmp_path / "state")
    shutil.copytree(Path(__file__).parent / "older", places.state)
    for variable, path in ((CONFIG_VARIABLE, places.config), (STATE_VARIABLE, places.state)):
        monkeypatch.setenv(variable, str(path))
    return places


def test_its_runs_have_the_procedures_of_today(places: UserPaths) -> None:
    runs = {run.id: run for run in Services(places).runs.all()}
    assert {run_id: run.procedure for run_id, run in runs.items()} == {
        DIRECT: "direct",
        UPSTREAM: "upstream",
        LLMB: "llmb",
    }
    folders = {run_id: delivery_of(runs[run_id]).place.folder for run_id in (DIRECT, UPSTREAM)}
    assert folders[DIRECT].endswith(f"_{DIRECT}/submit")
    assert folders[UPSTREAM] == f"/lustre/llmb/published/llama3.1-25.04/.llmb-tui/launches/{UPSTREAM}"
    assert runs[UPSTREAM].results == "/lustre/llmb/published/llama3.1-25.04/experiments/e/e_1/p"


def test_a_run_that_is_written_again_is_of_today(places: UserPaths) -> None:
    runs = Services(places).runs
    runs.save(runs.load(UPSTREAM))
    stored = json.loads((runs.folder(UPSTREAM) / "run.json").read_text())
    assert stored["procedure"] == "upstream"
    assert runs.load(UPSTREAM).job_ids == ("103", "102")


def test_its_journal_is_read_and_continued(places: UserPaths) -> None:
    journal = Services(places).journal
    journal.append("intent", run="new")
    events = [(record["event"], record["run"]) for record in journal.read()]
    submissions = ("intent", "unknown", "submitted")
    assert events == [
        *((word, DIRECT) for word in submissions),
        *((word, UPSTREAM) for word in submissions),
        ("intent", "new"),
    ]


def test_the_wizard_starts_at_the_last_step(places: UserPaths) -> None:
    services = Services(places)
    services.clusters.save(SlurmProfile("eos", "login.example.org", "research_llm_bench", "batch", "/lustre/llmb"))
    answers = read_start(services)[0].answers
    assert (answers.recipe, answers.size, answers.procedure, answers.cluster) == (
        "llama3.1@25.04",
        "8b",
        "upstream",
        "eos",
    )


@pytest.mark.usefixtures("places")
def test_results_name_the_procedures_of_today(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", DIRECT, UPSTREAM, LLMB, "--json"]) == 2  # their cluster cannot be asked
    assert [one["procedure"] for one in json.loads(capsys.readouterr().out)] == ["direct", "upstream", "llmb"]


@pytest.mark.usefixtures("places")
def test_the_old_flag_is_accepted_with_a_notice(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "eos", "--procedure", "recipe"]) == 1
    output = capsys.readouterr().err
    assert "--procedure recipe is now called upstream" in output
    assert "No recipe is named." in output
