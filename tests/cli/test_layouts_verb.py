"""`plan --layouts` and `plan --cluster`: stdout and exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.launch.runs import Runs
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.store.paths import UserPaths
from tests.kit import verbs
from tests.kit.runs import CATALOG
from tests.ui.wizard.found_states import draft_of

CHOICE = ("-w", "nemotron4", "-s", "15b", "--gpu", "h100", "-d", "bf16")
PLAN = ("plan", *CHOICE, "--scale", "64")
STEP = "Training epoch 0, iteration {0}/49 | global_step: {0} | train_step_timing in s: {1} | consumed_samples: {0}\n"
Call = Callable[..., verbs.Completed]


@pytest.fixture
def call(tmp_path: Path) -> Call:
    def run(*arguments: str) -> verbs.Completed:
        return verbs.run(arguments, verbs.environment(tmp_path))

    return run


@pytest.fixture
def ended(tmp_path: Path) -> Callable[[int, float], str]:
    """Store a run of Nemotron4 15b BF16 with the given step time, and return its cluster's name."""

    def make(scale: int, seconds: float) -> str:
        run_plan = plan(CATALOG, Selection("nemotron4", "25.04", "15b", "h100", "bf16", scale))
        drafted = draft_of(run_plan).run
        run = replace(drafted, submission="submitted", job_ids=("7",), submitted_at=1.0, job_state="COMPLETED")
        runs = Runs(UserPaths(tmp_path / "config", tmp_path / "state"))
        runs.save(run)
        (runs.folder(run.id) / "log").write_text("".join(STEP.format(step, seconds) for step in range(50)))
        return run.cluster

    return make


def test_the_table_has_the_published_layout_and_the_number_of_layouts(call: Call) -> None:
    result = call(*PLAN, "--layouts", "5")
    assert (result.returncode, result.stderr) == (0, "")
    title, _, headings, *rows, _, bands = result.stdout.splitlines()
    assert "GBS 256, sequence 4,096, 32 layers: the fastest 5 of 1,336 valid layouts" in title
    assert headings.split()[:8] == ["TP", "PP", "CP", "EP", "DP", "VP", "MBS", "GA"]
    assert len(rows) == 5
    (published,) = [row for row in rows if row.endswith("  published")]
    assert published.split()[:9] == ["2", "1", "1", "1", "32", "–", "2", "4", "2.67"]
    assert "fits" in published
    assert bands.startswith("If the bands of two layouts overlap")


def test_each_layout_in_json_equals_the_plan_of_its_flags(call: Call) -> None:
    result = json.loads(call(*PLAN, "--layouts", "3", "--json").stdout)
    assert result["selection"]["scale"] == 64
    assert result["valid"] > 1000
    assert len(result["layouts"]) == 3
    for layout in result["layouts"]:
        flags = [part for name, value in layout["overrides"].items() for part in (f"--{name}", str(value))]
        made = json.loads(call(*PLAN, *flags, "--json").stdout)
        assert {name: made[name] for name in ("parallelism", "estimate", "memory")} == {
            name: layout[name] for name in ("parallelism", "estimate", "memory")
        }
        assert layout["published"] is (not layout["overrides"])


def test_twenty_layouts_are_listed_by_default(call: Call) -> None:
    assert len(json.loads(call(*PLAN, "--json", "--layouts").stdout)["layouts"]) == 20


def test_a_scale_that_is_not_listed_has_layouts_and_still_exits_with_1(call: Call) -> None:
    result = call("plan", *CHOICE, "--scale", "96", "--layouts", "2", "--json")
    assert result.returncode == 1
    assert "96 GPUs" in result.stderr
    assert len(json.loads(result.stdout)["layouts"]) == 2


@pytest.mark.parametrize("number", ["0", "-3", "x", "1.5"])
def test_an_invalid_number_is_refused(call: Call, number: str) -> None:
    result = call(*PLAN, f"--layouts={number}")
    assert (result.returncode, result.stdout) == (1, "")
    assert number in result.stderr


@pytest.mark.parametrize("more", [("--layouts", "3"), ("--cluster", "eos")])
def test_plan_from_a_file_refuses_layouts_and_cluster(call: Call, more: tuple[str, ...]) -> None:
    result = call("plan", "--from", "-", *more)
    assert (result.returncode, result.stdout) == (1, "")
    assert "--from" in result.stderr


def test_plan_with_layouts_refuses_a_cluster(call: Call) -> None:
    result = call(*PLAN, "--layouts", "2", "--cluster", "nosuch")
    assert (result.returncode, result.stdout) == (1, "")
    assert "`plan --layouts` takes no --cluster." in result.stderr


def test_measured_here_needs_a_named_cluster(call: Call, ended: Callable[[int, float], str]) -> None:
    cluster = ended(128, 2.67 * 1.05)
    plain = json.loads(call(*PLAN, "--json").stdout)
    asked = json.loads(call(*PLAN, "--json", "--cluster", cluster).stdout)
    here = asked.pop("measured_here")
    assert asked == plain
    assert here["step_time_s"] == pytest.approx(2.67 * 1.05, rel=0.01)
    assert here["low_s"] < here["step_time_s"] < here["high_s"]
    assert len(here["runs"]) == 1
    lines = call(*PLAN, "--cluster", cluster).stdout.splitlines()
    (line,) = [line for line in lines if line.startswith("this cluster ")]
    assert "adjusted by earlier runs: 1 run of other configurations on H100" in line


def test_a_run_of_the_same_configuration_is_measured_here(call: Call, ended: Callable[[int, float], str]) -> None:
    cluster = ended(64, 2.75)
    here = json.loads(call(*PLAN, "--json", "--cluster", cluster).stdout)["measured_here"]
    assert here["step_time_s"] == 2.75
    assert here["basis"] == "1 run of this configuration on this cluster, our script"


def test_a_cluster_without_runs_and_an_unknown_cluster(call: Call) -> None:
    result = call(*PLAN, "--cluster", "local")
    assert result.returncode == 0
    assert "no run on local is comparable" in result.stdout
    assert json.loads(call(*PLAN, "--cluster", "local", "--json").stdout)["measured_here"] is None
    unknown = call(*PLAN, "--cluster", "nowhere")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "nowhere" in unknown.stderr


def test_the_text_of_a_plan_has_its_memory(call: Call) -> None:
    assert "memory     70.8 GB of 80 GB, 34.2 GB of it model state: fits" in call(*PLAN).stdout
