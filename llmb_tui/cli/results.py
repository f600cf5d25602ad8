"""`results`: how runs came out, those of this program and any whose logs lie here or on a cluster."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, BinaryIO

from llmb_tui.analysis.document import log_document, run_result, upstream_document
from llmb_tui.analysis.upstream_rules import Rule, UpstreamResult, counts_as_log, llmb_run, parse_train_timing
from llmb_tui.answers.result import results
from llmb_tui.cli.flags import selection_mapping
from llmb_tui.cli.logs import existing
from llmb_tui.cli.output import print_status, write
from llmb_tui.cli.planning import plan_of
from llmb_tui.cli.runs import exit_code, say_cancel, say_intent, say_unknown
from llmb_tui.cli.user import terminal_prompter, user_services
from llmb_tui.errors import LlmbError
from llmb_tui.history import LossComparer
from llmb_tui.language.text import clean_line
from llmb_tui.launch.run import Run
from llmb_tui.plan.plan import Plan
from llmb_tui.watch.find_logs import MOST, cluster_logs, local_logs
from llmb_tui.watch.judge_log import log_result
from llmb_tui.watch.log_formats.registry import LOG_FORMATS
from llmb_tui.watch.log_reader import UnreadableLogError, unreadable
from llmb_tui.watch.report import document
from llmb_tui.watch.state import ENDED, RunState
from llmb_tui.watch.training_log import TrainingLog, newest_of_jobs, trains

_WORST_FIRST = (2, 4, 3, 0)
"""Exit codes of several runs, of which the first that applies is answered with."""
_Document = dict[str, Any]


def results_verb(arguments: argparse.Namespace) -> int:
    """How each run came out, by its recipe's rule or by one of NVIDIA's own.

    What more there is of a run's log is read first. A cluster that does not answer is asked once, and answers 2, as a
    log among others does that cannot be read.
    """
    found = _Results(arguments)
    documents: list[_Document] = []
    codes = [0]
    names = [one for name in arguments.runs for one in found.runs_of(name)]
    for name in names:
        try:
            for one, code in found.of(name):
                documents.extend([one] if one is not None else [])
                codes.append(code)
        except LlmbError as error:
            if len(names) == 1 or (error.exit_code == 1 and not isinstance(error, UnreadableLogError)):
                raise
            print_status(str(error))
            codes.append(2)
    write(results(documents, arguments.rule), arguments)
    if arguments.strict and not documents:
        codes.append(3)
    return min(codes, key=_WORST_FIRST.index)


class _Results:
    """The objects of what was asked for, with what each answers."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._rule: Rule = arguments.rule
        self._services = user_services(arguments)
        self._silent: set[str] = set()
        self._losses = LossComparer(self._services.history)

    def runs_of(self, name: str) -> tuple[str, ...]:
        """Those of a suite that were stored; what is none stands for itself."""
        return self._services.suites.run_ids(name) if self._services.suites.has(name) else (name,)

    def of(self, name: str) -> Iterator[tuple[_Document | None, int]]:
        """Of a run, a path or `CLUSTER:PATH`; None for a log or a folder among others that cannot be read.

        Raises LlmbError. The id of a run means it also where there is a folder of its name, as `fetch` makes one:
        `./NAME` names that.
        """
        path = None if self._is_run(name) else existing(name)
        if path is not None:
            logs, closed = local_logs(path)
            yield from self._of_logs(logs, closed, name, one=path.is_file())
        elif ":" in name:
            cluster, _, there = name.partition(":")
            logs, closed, more = self._there(cluster, there)
            if more:
                print_status(f"{name}: there are more than {MOST} logs; the first {MOST} by name are shown.")
            yield from self._of_logs(logs, closed, name, one=[log.path for log in logs] == [there])
        elif os.sep in name:
            raise LlmbError(f"There is no {clean_line(name)}.", fix="Name a log, or a folder of logs.", exit_code=1)
        else:
            yield self._of_run(name)

    def _is_run(self, name: str) -> bool:
        """It was saved here."""
        try:
            self._services.runs.folder(name)
        except LlmbError:  # no run can be called so
            return False
        return self._services.runs.has(name)

    @cached_property
    def _plan(self) -> Plan | None:
        """What a person says that was trained; None where nobody did."""
        return plan_of(self._services, self._arguments) if selection_mapping(self._arguments) else None

    def _there(self, cluster: str, path: str) -> tuple[list[TrainingLog], list[str], bool]:
        session = self._services.clusters.login_node(cluster)
        session.connect(terminal_prompter())
        return cluster_logs(session, path, lambda done, of: print_status(f"{cluster}: {done} of {of} logs read"))

    def _of_logs(
        self, logs: list[TrainingLog], closed: list[str], name: str, *, one: bool
    ) -> Iterator[tuple[_Document | None, int]]:
        """By the files and the starts of jobs that count by the rule; a log that was named counts in any case.

        `closed`: what is said of folders among them that cannot be read.
        """
        for words in closed:
            print_status(f"llmb-tui: {words}")
            yield None, 2
        by_script = self._rule == "parse_train_timing"
        counted = logs if one else [log for log in logs if (counts_as_log if by_script else trains)(log.file_name)]
        if not counted:
            print_status(f"There is no log of a training (`*.out`) below {name}.")
        newest = [(log, ()) for log in counted] if by_script or one else newest_of_jobs(counted)
        plan = self._plan if newest else None
        for log, earlier in newest:
            try:
                said = self._upstream_of(log)
                if said is None and by_script and not one:
                    continue
                threshold = self._services.settings.verdict.threshold
                result = log_result(self._services.catalog, log, earlier, plan, threshold)
            except LlmbError as error:
                if one:
                    raise
                print_status(f"llmb-tui: {error.what} {error.why}")
                yield None, 2
                continue
            judged = result.verdict.result if result.verdict is not None and result.verdict.by_rule else None
            no_success = judged == "FAIL" or (self._arguments.strict and judged != "PASS")
            yield self._with(log_document(result), said), 3 if no_success else 0

    def _of_run(self, run_id: str) -> tuple[_Document, int]:
        run, state, code = self._looked_at(run_id)
        say_cancel(run)
        result = self._services.history.result(run_id)
        one = document(run, state) | {"result": run_result(result, self._losses.against_first(result))}
        log = self._services.runs.folder(run_id) / state.log_name
        name = run.job_log.path(run.job_ids[-1]).rpartition("/")[2] if run.job_log and run.job_ids else log.name
        framework = LOG_FORMATS[run.log_format].upstream_framework
        return self._with(one, self._upstream(lambda: log.open("rb"), name, framework, missing=not log.is_file())), code

    def _upstream_of(self, log: TrainingLog) -> UpstreamResult | None:
        try:
            return self._upstream(log.open, log.file_name, log.run.framework if log.run else "")
        except OSError as error:
            raise unreadable(log.name, error) from error

    def _upstream(
        self, log: Callable[[], BinaryIO], name: str, framework: str, *, missing: bool = False
    ) -> UpstreamResult | None:
        if self._rule == "recipe" or (missing and self._rule == "parse_train_timing"):
            return None
        if missing:
            return UpstreamResult("llmb-run", "no_log")
        with log() as file:
            return parse_train_timing(file, name) if self._rule == "parse_train_timing" else llmb_run(file, framework)

    def _with(self, one: _Document, said: UpstreamResult | None) -> _Document:
        if self._rule != "recipe":
            one["result"]["upstream"] = upstream_document(said) if said else None
        return one

    def _looked_at(self, run_id: str) -> tuple[Run, RunState, int]:
        """A run, how it stands, and what that answers; clusters that do not answer are added to `_silent`."""
        services = self._services
        record = services.feed.record(run_id)
        if record.run.submission == "unknown" and record.run.cluster not in self._silent:
            try:
                if (asked := services.feed.settle(run_id, terminal_prompter())).submission == "unknown":
                    say_unknown(asked, asked.note)
            except LlmbError as error:
                say_unknown(record.run, error.what)
                self._silent.add(record.run.cluster)
            record = services.feed.record(run_id)
        run, state = record.run, record.state
        say_intent(run)
        if not run.job_ids or (state.stage in ENDED and not state.log_unread):
            return run, state, exit_code(run, state, strict=self._arguments.strict)
        if run.cluster not in self._silent:
            try:
                state = services.feed.monitor(run_id).once(terminal_prompter())
            except LlmbError as error:
                state = replace(state, link="lost", link_note=error.what)
            run = services.runs.load(run_id)
            for note in filter(None, (state.link_note, state.slurm_note)):
                print_status(
                    f"{run.cluster}: {note}" if state.link == "lost" else f"{run.cluster}, run {run_id}: {note}"
                )
            if state.link != "lost":
                return run, state, exit_code(run, state, strict=self._arguments.strict)
            self._silent.add(run.cluster)
        print_status(f"Run {run_id} is shown as it was last seen.")
        return run, state, 2
