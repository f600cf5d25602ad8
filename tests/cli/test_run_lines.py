"""The lines of `watch`: each change once, and an unchanged state again after some minutes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.cli.run_lines import REPEAT_AFTER_S, line_printer
from llmb_tui.cli.runs import final_line
from llmb_tui.cluster.job import Job
from llmb_tui.language.states import Method
from llmb_tui.watch.state import Progress, RunState, Verdict
from tests.kit.runs import PLAN, make_run

HANGS = "`sacct` did not answer in time."


class WatchOutput:
    """Lines that `watch` printed, with a clock that the test moves."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.now = 0.0
        self.publish = line_printer(make_run(job_state=None), self.lines.append, lambda: self.now)

    def after(self, seconds: float, state: RunState) -> list[str]:
        """New lines after the given time."""
        before = len(self.lines)
        self.now += seconds
        self.publish(state)
        return [line.strip() for line in self.lines[before:]]


def measuring(steps: int, note: str = "") -> RunState:
    return RunState("a", "measuring", Job("7", "", "RUNNING"), Progress(steps, 50), link="live", slurm_note=note)


def test_an_unchanged_state_is_repeated_with_its_age() -> None:
    output = WatchOutput()
    queued = RunState("a", "queued", Job("7", "", "PENDING", "JobHeldUser"))
    (first,) = output.after(0, queued)
    assert output.after(REPEAT_AFTER_S - 1, queued) == []
    assert output.after(1, queued) == [f"{first} · for 5 min"]
    assert output.after(REPEAT_AFTER_S, queued) == [f"{first} · for 10 min"]


def test_a_note_is_printed_once_and_repeated_later() -> None:
    output = WatchOutput()
    assert output.after(0, measuring(1, HANGS)) == [f"measuring · job 7 RUNNING · step 1 of 50 · {HANGS}"]
    assert output.after(60, measuring(2, HANGS)) == ["measuring · job 7 RUNNING · step 2 of 50"]
    printed = output.after(REPEAT_AFTER_S, measuring(3, HANGS))
    assert printed == [f"measuring · job 7 RUNNING · step 3 of 50 · {HANGS} · for 6 min"]
    assert output.after(5, measuring(3)) == ["measuring · job 7 RUNNING · step 3 of 50"], "the warning is over"


def test_no_line_is_printed_twice_in_a_row() -> None:
    output = WatchOutput()
    for link in ("connecting", "live", "connecting"):
        output.after(1, RunState("a", "submitted", link=link))
    for note in (HANGS, HANGS, "", HANGS, ""):
        output.after(40, measuring(1, note))
        output.after(40, measuring(1, ""))
    for _ in range(100):
        output.after(60, measuring(1))
    assert output.lines.count("  submitted") == 1
    assert all(line != after for line, after in zip(output.lines, output.lines[1:], strict=False))


@pytest.mark.parametrize(
    ("method", "words"), [("published", "published"), ("other_release", "published for another release")]
)
def test_the_last_line_names_the_expected_figure(method: Method, words: str) -> None:
    assert PLAN.estimate is not None
    run = make_run(plan=replace(PLAN, estimate=replace(PLAN.estimate, method=method)))
    state = RunState(run.id, "done", verdict=Verdict("PASS", 0.985, 2.01, "1.98 s", "last step"))
    assert final_line(run, state) == f"verdict: PASS 98.5 % of {words}"
