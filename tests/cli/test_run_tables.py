"""Launch method and further options of a run in the tables of `jobs` and `results`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import NOTHING_MORE, RunOptions
from llmb_tui.store.paths import UserPaths
from tests.kit import verbs
from tests.kit.runs import CATALOG, NEMOTRON
from tests.ui.wizard.found_states import draft_of

STEP = "Training epoch 0, iteration {0}/{1} | global_step: {0} | train_step_timing in s: 1.97 | consumed_samples: {0}\n"
Ended = Callable[[RunOptions], Run]


@pytest.fixture
def ended(tmp_path: Path) -> Ended:
    """Store a run of Nemotron4 15b with a step time of 1.97 s; 1.98 s are published."""

    def make(options: RunOptions) -> Run:
        run_plan = plan(CATALOG, replace(NEMOTRON, options=options))
        drafted = draft_of(run_plan).run
        run = replace(drafted, submission="submitted", job_ids=("7",), submitted_at=1.0, job_state="COMPLETED")
        runs = Runs(UserPaths(tmp_path / "config", tmp_path / "state"))
        runs.save(run)
        log = "".join(STEP.format(step, run_plan.steps - 1) for step in range(run_plan.steps))
        (runs.folder(run.id) / "log").write_text(log)
        return run

    return make


def printed(tmp_path: Path, *arguments: str) -> str:
    result = verbs.run(arguments, verbs.environment(tmp_path))
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_jobs_and_results_name_the_launch_method(ended: Ended, tmp_path: Path) -> None:
    run = ended(NOTHING_MORE)
    for table in (printed(tmp_path, "jobs"), printed(tmp_path, "results", run.id)):
        headings, row = table.splitlines()[:2]
        assert "launch" in headings
        assert "our script" in row
        assert "PASS 100.5 %" in row


def test_the_step_time_and_the_median_have_separate_columns(ended: Ended, tmp_path: Path) -> None:
    run = ended(NOTHING_MORE)
    log = tmp_path / "state" / "runs" / run.id / "log"
    steps = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*steps[:-1], steps[-1].replace("1.97", "0.5")]))
    for table in (printed(tmp_path, "jobs"), printed(tmp_path, "results", run.id)):
        headings, row = table.splitlines()[:2]
        assert headings.index("step s") < headings.index("median s")
        assert row.split()[row.split().index("50/50") + 1 :][:2] == ["0.5", "1.97"]
        assert "WARN 396.0 %: 3.96 times as fast as expected, which no cluster explains" in row


def test_a_profiled_run_that_is_fast_is_a_warning(ended: Ended, tmp_path: Path) -> None:
    run = ended(RunOptions(profile=True))
    assert "25/25" in printed(tmp_path, "results", run.id)
    assert "WARN 100.5 %: The run was profiled, which slows it down." in printed(tmp_path, "results", run.id)
    assert "The run was profiled, which slows it down." in printed(tmp_path, "results", run.id, "--json")
