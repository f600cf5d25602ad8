"""Suites are submitted in threads that are independent of screens; a later request returns the state of each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from llmb_tui.cluster.prompter import Prompter
from llmb_tui.errors import LlmbError
from llmb_tui.suites.submissions import Submissions, SuiteSubmissionProgress
from llmb_tui.suites.suite import Suite, make_suite
from tests.kit.runs import NEMOTRON
from tests.kit.waiting import until

SUITE = replace(make_suite("mine", "eos", [(NEMOTRON, "direct")]), id="s1")


class Runner:
    """Reports two messages, the second when the test allows it; then ends as the test sets."""

    def __init__(self, error: Exception | None = None) -> None:
        self.go = threading.Event()
        self.begun = 0
        self.stop: threading.Event | None = None
        self.error = error

    def submit(self, suite: Suite, tell: Callable[[str], None], stop: threading.Event, _: Prompter | None) -> Any:
        self.begun += 1
        self.stop = stop
        tell(f"checking {suite.cluster}")
        assert self.go.wait(10)
        tell("job 1")
        if self.error:
            raise self.error


def test_a_submission_in_progress_is_not_started_twice() -> None:
    runner = Runner()
    submissions = Submissions(runner.submit)
    messages: list[str] = []
    end = submissions.follow(messages.append)
    assert submissions.of("s1") is None
    submissions.begin(SUITE)
    until(lambda: submissions.of("s1") == SuiteSubmissionProgress("checking eos"), "the first words")
    submissions.begin(SUITE)
    runner.go.set()
    until(lambda: submissions.of("s1") == SuiteSubmissionProgress("job 1", is_active=False), "the end")
    assert (runner.begun, messages) == (1, ["s1"] * 3)
    end()
    submissions.begin(SUITE)
    until(lambda: runner.begun == 2, "the second submission")
    assert messages == ["s1"] * 3


@pytest.mark.parametrize("error", [LlmbError("eos does not answer."), KeyError("a value of somebody")])
def test_the_reason_of_an_early_end_is_reported(error: Exception) -> None:
    runner = Runner(error)
    submissions = Submissions(runner.submit)
    runner.go.set()
    submissions.begin(SUITE)
    until(lambda: (of := submissions.of("s1")) is not None and not of.is_active, "the end")
    ended = submissions.of("s1")
    assert ended is not None
    assert ended.error is not None
    assert ended.words == "job 1"
    assert "somebody" not in str(ended.error)


def test_the_end_of_the_program_ends_it_between_two_rows() -> None:
    runner = Runner()
    submissions = Submissions(runner.submit)
    submissions.begin(SUITE)
    until(lambda: runner.stop is not None, "the start of the submission")
    submissions.end()
    assert runner.stop is not None
    assert runner.stop.is_set()
    runner.go.set()
