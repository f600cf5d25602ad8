"""`results`: results of this program's runs, and of any training logs here or on a cluster."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, BinaryIO

from llmb_tui.analysis.document import log_document, run_result, upstream_document
from llmb_tui.analysis.upstream_rules import Rule, UpstreamResult, is_parsed_log, llmb_run, parse_train_timing
from llmb_tui.answers.result import results
from llmb_tui.cli.flags import selection_mapping
from llmb_tui.cli.logs import existing_path
from llmb_tui.cli.output import print_status, write
from llmb_tui.cli.planning import plan_from_flags
from llmb_tui.cli.runs import exit_code, print_cancel_note, print_next_steps, print_unknown_submission
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
from llmb_tui.watch.training_log import TrainingLog, is_training_log, newest_of_jobs

_WORST_FIRST = (2, 4, 3, 0)
"""Exit codes in order of priority: the verb returns the first one that a run has."""
_Document = dict[str, Any]


def results_verb(arguments: argparse.Namespace) -> int:
    """Print the result of each run, by its recipe's rule or by a rule of NVIDIA's tools.

    The rest of a run's log is read first. A cluster that does not answer is asked once. Its runs have exit code 2, like
    an unreadable log among several.
    """
    source = _Results(arguments)
    documents: list[_Document] = []
    codes = [0]
    names = [run for name in arguments.runs for run in source.run_names(name)]
    for name in names:
        try:
            for result, code in source.documents(name):
                documents.extend([result] if result is not None else [])
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
    """Documents and exit codes of the named runs and logs."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._rule: Rule = arguments.rule
        self._services = user_services(arguments)
        self._silent: set[str] = set()
        self._losses = LossComparer(self._services.history)

    def run_names(self, name: str) -> tuple[str, ...]:
        """Ids of a suite's stored runs; a name that is not a suite is returned as it is."""
        return self._services.suites.run_ids(name) if self._services.suites.has(name) else (name,)

    def documents(self, name: str) -> Iterator[tuple[_Document | None, int]]:
        """Documents and exit codes for a run, a path or `CLUSTER:PATH`; None for an unreadable item among several.

        A run's id takes precedence over a folder of the same name, which `fetch` creates: `./NAME` means the folder.
        Raises LlmbError.
        """
        path = None if self._is_run(name) else existing_path(name)
        if path is not None:
            logs, unreadable_folders = local_logs(path)
            yield from self._log_documents(logs, unreadable_folders, name, single=path.is_file())
        elif ":" in name:
            cluster, _, remote_path = name.partition(":")
            logs, unreadable_folders, more = self._cluster_logs(cluster, remote_path)
            if more:
                print_status(f"{name} has more than {MOST} logs; only the first {MOST} by name are read.")
            single = [log.path for log in logs] == [remote_path]
            yield from self._log_documents(logs, unreadable_folders, name, single=single)
        elif os.sep in name:
            raise LlmbError(f"{clean_line(name)} does not exist.", fix="Name a log, or a folder of logs.", exit_code=1)
        else:
            yield self._run_document(name)

    def _is_run(self, name: str) -> bool:
        """Whether a run with this id is stored here."""
        try:
            self._services.runs.folder(name)
        except LlmbError:  # the name cannot be a run's id
            return False
        return self._services.runs.has(name)

    @cached_property
    def _plan(self) -> Plan | None:
        """Plan of the selection flags, which describe the logs; None without such flags."""
        return plan_from_flags(self._services, self._arguments) if selection_mapping(self._arguments) else None

    def _cluster_logs(self, cluster: str, path: str) -> tuple[list[TrainingLog], list[str], bool]:
        session = self._services.clusters.login_node(cluster)
        session.connect(terminal_prompter())
        return cluster_logs(session, path, lambda done, total: print_status(f"{cluster}: {done} of {total} logs read"))

    def _log_documents(
        self, logs: list[TrainingLog], unreadable_folders: list[str], name: str, *, single: bool
    ) -> Iterator[tuple[_Document | None, int]]:
        """Documents and exit codes of logs, by files and starts of jobs as the rule counts them.

        `unreadable_folders`: messages about them. `single`: a named log, which counts in any case.
        """
        for message in unreadable_folders:
            print_status(f"llmb-tui: {message}")
            yield None, 2
        by_script = self._rule == "parse_train_timing"
        counted = (
            logs
            if single
            else [log for log in logs if (is_parsed_log if by_script else is_training_log)(log.file_name)]
        )
        if not counted:
            print_status(f"{name} has no training log (`*.out`).")
        newest = [(log, ()) for log in counted] if by_script or single else newest_of_jobs(counted)
        plan = self._plan if newest else None
        for log, earlier in newest:
            try:
                upstream = self._log_upstream(log)
                if upstream is None and by_script and not single:
                    continue
                threshold = self._services.settings.verdict.threshold
                result = log_result(self._services.catalog, log, earlier, plan, threshold)
            except LlmbError as error:
                if single:
                    raise
                print_status(f"llmb-tui: {error.what} {error.why}")
                yield None, 2
                continue
            judged = result.verdict.result if result.verdict is not None and result.verdict.by_rule else None
            no_success = judged == "FAIL" or (self._arguments.strict and judged != "PASS")
            yield self._with_upstream(log_document(result), upstream), 3 if no_success else 0

    def _run_document(self, run_id: str) -> tuple[_Document, int]:
        run, state, code = self._refresh(run_id)
        print_cancel_note(run)
        result = self._services.history.result(run_id)
        run_document = document(run, state) | {"result": run_result(result, self._losses.against_first(result))}
        log = self._services.runs.folder(run_id) / state.log_name
        name = run.job_log.path(run.job_ids[-1]).rpartition("/")[2] if run.job_log and run.job_ids else log.name
        framework = LOG_FORMATS[run.log_format].upstream_framework
        upstream = self._upstream(lambda: log.open("rb"), name, framework, missing=not log.is_file())
        return self._with_upstream(run_document, upstream), code

    def _log_upstream(self, log: TrainingLog) -> UpstreamResult | None:
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

    def _with_upstream(self, result: _Document, upstream: UpstreamResult | None) -> _Document:
        if self._rule != "recipe":
            result["result"]["upstream"] = upstream_document(upstream) if upstream else None
        return result

    def _refresh(self, run_id: str) -> tuple[Run, RunState, int]:
        """Current run, state and exit code; a cluster that does not answer is added to `_silent`."""
        services = self._services
        record = services.feed.record(run_id)
        if record.run.submission == "unknown" and record.run.cluster not in self._silent:
            try:
                if (run := services.feed.settle(run_id, terminal_prompter())).submission == "unknown":
                    print_unknown_submission(run, run.note)
            except LlmbError as error:
                print_unknown_submission(record.run, error.what)
                self._silent.add(record.run.cluster)
            record = services.feed.record(run_id)
        run, state = record.run, record.state
        print_next_steps(run)
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
        print_status(f"Run {run_id} is shown in its last known state.")
        return run, state, 2
