"""The lines of `watch`: each change once, and what stays as it is again after a while."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.cli.run_lines import AGAIN_AFTER_S, line_teller
from llmb_tui.cli.runs import final_line
from llmb_tui.cluster.job import Job
from llmb_tui.language.states import Method
from llmb_tui.watch.state import Progress, RunState, Verdict
from tests.kit.runs import PLAN, make_run

HANGS = "`sacct` did not answer in time."


class Told:
    """What `watch` printed, by a clock that the test moves."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.now = 0.0
        self.publish = line_teller(make_run(job_state=None), self.lines.append, lambda: self.now)

    def later(self, seconds: float, state: RunState) -> list[str]:
        """What is new after that time."""
        before = len(self.lines)
        self.now += seconds
        self.publish(state)
        return [line.strip() for line in self.lines[before:]]


def measuring(steps: int, note: str = "") -> RunState:
    return RunState("a", "measuring", Job("7", "", "RUNNING"), Progress(steps, 50), link="live", slurm_note=note)


def test_what_stays_true_is_said_again_after_a_while_with_how_long_it_is_so() -> None:
    told = Told()
    queued = RunState("a", "queued", Job("7", "", "PENDING", "JobHeldUser"))
    (first,) = told.later(0, queued)
    assert told.later(AGAIN_AFTER_S - 1, queued) == []
    assert told.later(1, queued) == [f"{first} · for 5 min"]
    assert told.later(AGAIN_AFTER_S, queued) == [f"{first} · for 10 min"]


def test_a_note_comes_with_its_first_line_and_again_while_steps_go_on() -> None:
    told = Told()
    assert told.later(0, measuring(1, HANGS)) == [f"measuring · job 7 RUNNING · step 1 of 50 · {HANGS}"]
    assert told.later(60, measuring(2, HANGS)) == ["measuring · job 7 RUNNING · step 2 of 50"]
    said = told.later(AGAIN_AFTER_S, measuring(3, HANGS))
    assert said == [f"measuring · job 7 RUNNING · step 3 of 50 · {HANGS} · for 6 min"]
    assert told.later(5, measuring(3)) == ["measuring · job 7 RUNNING · step 3 of 50"], "it is over"


def test_no_line_comes_twice_in_a_row() -> None:
    told = Told()
    for link in ("connecting", "live", "connecting"):
        told.later(1, RunState("a", "submitted", link=link))
    for note in (HANGS, HANGS, "", HANGS, ""):
        told.later(40, measuring(1, note))
        told.later(40, measuring(1, ""))
    for _ in range(100):
        told.later(60, measuring(1))
    assert told.lines.count("  submitted") == 1
    assert all(line != after for line, after in zip(told.lines, told.lines[1:], strict=False))


@pytest.mark.parametrize(
    ("method", "words"), [("published", "published"), ("other_release", "published for another release")]
)
def test_the_last_line_names_what_a_run_was_held_against(method: Method, words: str) -> None:
    assert PLAN.estimate is not None
    run = make_run(plan=replace(PLAN, estimate=replace(PLAN.estimate, method=method)))
    state = RunState(run.id, "done", verdict=Verdict("PASS", 0.985, 2.01, "1.98 s", "last step"))
    assert final_line(run, state) == f"verdict: PASS 98.5 % of {words}"
