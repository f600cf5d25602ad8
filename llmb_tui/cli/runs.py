"""`jobs`, `watch`, `logs`, `cancel`, `results`: runs that were submitted."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llmb_tui.cli.output import print_json, print_line, print_table, say
from llmb_tui.cli.unknown import settle_all, settled
from llmb_tui.cli.user import confirm, has_terminal, user_services
from llmb_tui.errors import Trouble
from llmb_tui.launch.run import Run
from llmb_tui.services import Services
from llmb_tui.watch.lines import LineSplitter
from llmb_tui.watch.logfile import Measured, log_files, measure
from llmb_tui.watch.monitor import replay
from llmb_tui.watch.report import document
from llmb_tui.watch.roster import look_at
from llmb_tui.watch.state import RunState

FAILED_VERDICT = 3
_PIECE = 1 << 18
_HEADINGS = ("run", "state", "workload", "GPUs", "cluster", "procedure", "step", "step s", "verdict")


def jobs_verb(arguments: argparse.Namespace) -> int:
    """All runs, newest first; a cluster that does not answer leaves its runs as they were last seen."""
    services = user_services()
    runs = services.runs()
    settle_all(services)
    _look_at_going(services)
    known = [(run, replay(runs, run)) for run in runs.all()]
    if arguments.json:
        print_json([document(run, state) for run, state in known])
    elif known:
        print_table(_HEADINGS, [_row(run, state) for run, state in known])
    for trouble in runs.unreadable():
        say(str(trouble))
    return 0


def _look_at_going(services: Services) -> None:
    """One look for each cluster that has a run which is not known to have ended."""
    runs = services.runs()
    going = [run for run in runs.all() if run.going and run.job_ids]
    for cluster in sorted({run.cluster for run in going}):
        try:
            look_at(services.session(cluster), runs, [run for run in going if run.cluster == cluster])
        except Trouble as trouble:
            say(f"{cluster}: {trouble.what} Its runs are shown as they were last seen.")


def watch_verb(arguments: argparse.Namespace) -> int:
    """Follow a run to its end, or say how it stands."""
    services = user_services()
    run = settled(services, arguments.run, patiently=not arguments.once)
    if arguments.once:
        state = services.monitor(run.id).once()
        run = services.runs().load(run.id)
        for note in filter(None, (state.link_note, state.slurm_note)):
            say(note)
        if arguments.json:
            print_json(document(run, state))
        else:
            print_table(_HEADINGS, [_row(run, state)])
        return exit_code(state)
    if not arguments.json:
        print_line(f"run {run.id} on {run.cluster}, {run.procedure} procedure")
    tell = _json_teller(run) if arguments.json else line_teller(print_line)
    state = services.monitor(run.id).watch(tell, threading.Event())
    if not arguments.json:
        print_line(final_line(state))
    return exit_code(state)


def logs_verb(arguments: argparse.Namespace) -> int:
    """Print the log of a run, or of a file; with `-f` until the run ends."""
    path = Path(arguments.run)
    write = _json_line if arguments.json else _text_line
    if path.is_file():
        _print_whole(path, write)
        return 0
    services = user_services()
    run = settled(services, arguments.run, patiently=arguments.follow)
    monitor = services.monitor(run.id)
    if not arguments.follow:
        state = monitor.once()
        _print_whole(services.runs().folder(run.id) / state.log_name, write)
        return 0
    printers: dict[str, _LogPrinter] = {}

    def print_new(state: RunState) -> None:
        path = services.runs().folder(run.id) / state.log_name
        printers.setdefault(state.log_name, _LogPrinter(path, write)).print_new()

    print_new(monitor.watch(print_new, threading.Event()))
    for printer in printers.values():
        printer.end()
    return 0


def _text_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _json_line(line: str) -> None:
    print_json({"line": line})


def _print_whole(path: Path, write: Callable[[str], None]) -> None:
    printer = _LogPrinter(path, write)
    printer.print_new()
    printer.end()


def cancel_verb(arguments: argparse.Namespace) -> int:
    """Cancel every job of a run, after a yes where there is a terminal."""
    services = user_services()
    run = settled(services, arguments.run)
    if run.submission == "unknown":
        raise Trouble(f"It is not known yet whether run {run.id} has a job. Nothing was cancelled.", run.note)
    if not run.job_ids:
        raise Trouble(f"Run {run.id} has no job to cancel.", run.note, exit_code=1)
    jobs = ", ".join(run.job_ids)
    if not arguments.yes and has_terminal() and not confirm(f"Cancel job {jobs} on {run.cluster}?"):
        raise Trouble("Nothing was cancelled.", exit_code=1)
    services.cancel(run)
    if arguments.json:
        print_json({"id": run.id, "cancelled": list(run.job_ids)})
    else:
        say(f"Slurm was asked to cancel job {jobs}.")
    return 0


def results_verb(arguments: argparse.Namespace) -> int:
    """Verdicts of runs; step times of log files and of folders of them."""
    runs = user_services().runs()
    documents: list[dict[str, Any]] = []
    worst = 0
    for name in arguments.runs:
        path = Path(name)
        if path.exists():
            documents += [_log_document(measure(file)) for file in log_files(path)]
        else:
            run = runs.load(name)
            state = replay(runs, run)
            documents.append(document(run, state))
            worst = max(worst, exit_code(state))
    if arguments.json:
        print_json(documents)
    else:
        headings = ("run or log", "procedure", "state", "steps", "step s", "rule", "verdict")
        print_table(headings, [_result_row(one) for one in documents])
    return worst


def exit_code(state: RunState) -> int:
    """3 for a verdict of FAIL of a run that is over, else 0."""
    return FAILED_VERDICT if state.stage == "done" and state.verdict and state.verdict.result == "FAIL" else 0


def final_line(state: RunState) -> str:
    """How a run ended, in one line."""
    if state.verdict is None:
        why = state.progress.failure_reason if state.stage == "failed" else ""
        return f"verdict: none. {state.no_verdict} {why}".rstrip()
    method = state.verdict.against.split(" ", 1)[0]
    return f"verdict: {state.verdict.result} {state.verdict.ratio * 100:.1f} % of {method}"


def line_teller(tell: Callable[[str], None]) -> Callable[[RunState], None]:
    """A `publish` that tells each change of stage, of the link, of its notes and of the step in one line."""
    told: list[tuple[object, ...]] = []

    def publish(state: RunState) -> None:
        progress = state.progress
        notes = (state.link_note, state.slurm_note)
        key = (state.stage, state.link, notes, progress.steps_done)
        if told and told[-1] == key:
            return
        again = bool(told) and told[-1][2] == notes
        told[:] = [key]
        parts = [f"  {state.stage}"]
        if state.job:
            parts.append(f"job {state.job.id} {state.job.state}")
        if progress.steps_done:
            parts.append(f"step {progress.steps_done} of {progress.steps_total or '?'}")
        if progress.last and progress.last.step_time_s is not None:
            parts.append(f"{progress.last.step_time_s:.4g} s")
        if state.link == "lost":
            parts.append("link lost")
        tell(" · ".join([*parts, *filter(None, () if again else notes)]))

    return publish


def _json_teller(run: Run) -> Callable[[RunState], None]:
    told: list[dict[str, object]] = []

    def publish(state: RunState) -> None:
        now = document(run, state)
        if told != [now]:
            told[:] = [now]
            print_json(now)

    return publish


class _LogPrinter:
    """Prints the lines of a log that were not printed yet, one frame of a progress bar at a time."""

    def __init__(self, path: Path, write: Callable[[str], None]) -> None:
        self._path = path
        self._write = write
        self._splitter = LineSplitter()
        self._read = 0

    def print_new(self) -> None:
        """Print what was appended since the last time."""
        if not self._path.is_file():
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            while data := file.read(_PIECE):
                self._read += len(data)
                for line in self._splitter.feed(data):
                    self._write(line)
        sys.stdout.flush()

    def end(self) -> None:
        """Print the unfinished last line, if there is one."""
        if self._splitter.rest:
            self._write(self._splitter.rest)


def _row(run: Run, state: RunState) -> tuple[str, ...]:
    chosen, progress = run.plan.selection, state.progress
    return (
        run.id,
        state.stage if run.submission == "submitted" else run.submission,
        f"{chosen.workload}@{chosen.release} {chosen.size} {chosen.dtype}",
        f"{chosen.scale} {chosen.gpu.upper()}",
        run.cluster,
        run.procedure,
        f"{progress.steps_done}/{progress.steps_total or run.plan.steps}",
        "–" if progress.median_s is None else f"{progress.median_s:.4g}",
        "–" if state.verdict is None else f"{state.verdict.result} {state.verdict.ratio * 100:.1f} %",
    )


def _log_document(measured: Measured) -> dict[str, object]:
    """The run object for a log of which nothing else is known: its last step, and no verdict."""
    reason = "A log alone does not say which configuration it is, so there is nothing to compare with."
    return {
        "id": str(measured.path),
        "selection": None,
        "procedure": None,
        "cluster": None,
        "job_ids": [],
        "state": "unknown",
        "submitted_at": None,
        "steps_done": measured.steps_done,
        "steps_total": measured.steps_total,
        "step_time_s": measured.last_s,
        "rule": "last step",
        "verdict": {"result": None, "ratio": None, "against": None, "reasons": [reason]},
    }


def _result_row(one: dict[str, Any]) -> tuple[str, ...]:
    verdict, step_time = one["verdict"], one["step_time_s"]
    return (
        one["id"],
        one["procedure"] or "–",
        one["state"],
        f"{one['steps_done']}/{one['steps_total'] or '?'}",
        "–" if step_time is None else f"{step_time:.4g}",
        one["rule"],
        f"{verdict['result']} {verdict['ratio'] * 100:.1f} %" if verdict["result"] else " ".join(verdict["reasons"]),
    )
