"""Another launcher needs only what docs/architecture.md lists: a folder, its id and a line of the registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from llmb_tui.cluster.profiles import save_profile
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.launch.procedure import Procedure
from llmb_tui.launch.procedure_loader import procedure
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.plan.selection import OLD_PROCEDURES, ProcedureId
from llmb_tui.store.paths import UserPaths
from tests.kit.program_copy import ProgramCopy

TOY = Path(__file__).parent / "toy"
SELECTION = "-w nemotron4@25.04 -s 15b --gpu h100 -d bf16 --scale 16".split()


def test_every_id_of_a_procedure_is_registered_and_has_words_and_an_implementation() -> None:
    assert set(PROCEDURES) == set(get_args(ProcedureId))
    assert set(OLD_PROCEDURES.values()) <= set(PROCEDURES)
    for name, facts in PROCEDURES.items():
        assert facts.id == name
        assert facts.title
        assert facts.started_by.endswith(".")
        assert Procedure in type(procedure(name)).__mro__
        # No run can be prepared without a form in which it is stored.
        assert (facts.spec is not None) == facts.starts_runs


class Program(ProgramCopy):
    """Copy of the program with the toy procedure, and the demo cluster as its only cluster."""

    def __init__(self, home: Path, cluster: str) -> None:
        super().__init__(home)
        self.cluster = cluster
        self.add(TOY, "launch/toy")
        self.edit("plan/selection.py", 'Literal["direct", ', 'Literal["direct", "toy", ')
        self.edit("launch/procedures.py", "(DIRECT, UPSTREAM, LLMB, RUNAI)", "(DIRECT, UPSTREAM, LLMB, RUNAI, TOY)")
        first = "from llmb_tui.launch.upstream.facts import FACTS as UPSTREAM\n"
        self.edit("launch/procedures.py", first, f"from llmb_tui.launch.toy.facts import FACTS as TOY\n{first}")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    home = tmp_path_factory.mktemp("toy")
    with DemoCluster(home / "cluster", speed=600.0) as demo:
        save_profile(UserPaths(home / "config", home / "state").clusters, demo.profile)
        yield Program(home, demo.profile.name)


@pytest.fixture(scope="module")
def run(program: Program) -> str:
    """Id of a run that was checked, installed, submitted and watched."""
    by_toy = (*SELECTION, "--procedure", "toy")
    checks = json.loads(program("doctor", program.cluster, *by_toy, "--json"))["checks"]
    assert {"id": "toys", "found": "enough"}.items() <= checks[-1].items()
    steps = json.loads(program("install", program.cluster, *by_toy, "--json"))
    assert [(step["title"], step["status"]) for step in steps] == [("Toy box", "done")]
    shown = program("submit", "--cluster", program.cluster, *by_toy, "--dry-run")
    assert "train_step_timing" in shown
    submitted = json.loads(program("submit", "--cluster", program.cluster, *by_toy, "--yes", "--json"))
    assert (submitted["procedure"], len(submitted["job_ids"])) == ("toy", 1)
    changes = [json.loads(line) for line in program("watch", submitted["id"], "--json").splitlines()]
    assert (changes[-1]["state"], changes[-1]["steps_done"]) == ("done", 50)
    identity: str = submitted["id"]
    return identity


CHOICES = """
from llmb_tui.launch.policy import Policy
from llmb_tui.catalog.load import load_presets
from llmb_tui.ui.wizard_effects import wizard_rules
from llmb_tui.wizard.choices import procedures

rules = wizard_rules(catalog := load_presets(), Policy())
previews = {name: rules.preview(name, catalog.recipes[0], None) for name in rules.offered(None)}
print([(choice.label, choice.detail) for choice in procedures(rules, previews)])
"""


def test_a_new_procedure_is_a_choice_of_the_wizard(program: Program) -> None:
    assert "('toy procedure', 'trains nothing')" in program.python("-c", CHOICES)


def test_a_new_procedure_is_offered_with_its_words(program: Program) -> None:
    assert "toy: a loop of echo" in " ".join(program("submit", "--help").split())
    suite = program("suite", "plan", "repeat", *SELECTION, "--procedure", "toy", "--cluster", program.cluster, "--json")
    assert '"toy"' in suite


def test_a_run_by_a_new_procedure_is_judged_reported_and_proved(program: Program, run: str, tmp_path: Path) -> None:
    (result,) = json.loads(program("results", run, "--json"))
    assert (result["procedure"], result["step_time_s"]) == ("toy", 0.01)
    report = program("report", run)
    assert "toy procedure" in report
    assert "It was started by a loop that trains nothing." in report
    assert "Nothing is trained." in report
    archive = str(tmp_path / "evidence.tar.zst")
    program("export", run, "-o", archive)
    verified = program("verify", archive, "--json")
    findings = json.loads(verified)["findings"]
    (script,) = (finding for finding in findings if finding["what"].startswith("script"))
    assert (script["outcome"], script["found"]) == ("agrees", "The script has the toy's name as in the settings.")


def test_measurements_of_a_new_procedure_adjust_the_next_estimate(program: Program, run: str) -> None:
    assert run
    shown = program("plan", *SELECTION, "--cluster", program.cluster)
    assert "toy procedure" in shown
