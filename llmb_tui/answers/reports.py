"""`Reports`: makes the report of runs and suites from all that this machine has of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from llmb_tui.answers.blocks import Document
from llmb_tui.answers.document import document
from llmb_tui.evidence.reported_run import RunGatherer
from llmb_tui.suites.suites import Suites


@dataclass(frozen=True, slots=True)
class Reports:
    """Reports of remembered runs and suites."""

    runs: RunGatherer
    suites: Suites

    def document(self, names: Iterable[str], now: float) -> Document:
        """The report of these runs and suites, in order, each once; `now` is Unix time.

        Raises Trouble (exit code 1) for what is neither.
        """
        names = tuple(names)
        run_ids = dict.fromkeys(run_id for name in names for run_id in self.suites.run_ids(name))
        suites = [self.suites.load(name) for name in dict.fromkeys(names) if self.suites.has(name)]
        return document(self.runs.reported(run_ids), now, [self.suites.progress(suite) for suite in suites])
