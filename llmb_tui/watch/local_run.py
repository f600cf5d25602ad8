"""`LocalRun`: the data that this machine has of one run, in its folder."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from pathlib import Path

from llmb_tui.cluster.job import Job
from llmb_tui.diagnosis.rule import Diagnosis
from llmb_tui.errors import LlmbError
from llmb_tui.language.states import RunLink
from llmb_tui.launch.cluster_kind import kind_of
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import ACCOUNTING, NETWORK, Runs
from llmb_tui.store import documents
from llmb_tui.store.files import explained_errors, text_in
from llmb_tui.watch.events import BatchTail, JobUpdated, LogGrown, LogProblem, LogRead, WatchEvent
from llmb_tui.watch.locallog import LocalLog, has_step, last_step
from llmb_tui.watch.logcopy import READING, LogCopy, copies, is_removed, newest_copy
from llmb_tui.watch.run_reducer import RunReducer
from llmb_tui.watch.state import Progress, RunState
from llmb_tui.watch.validity import RunFiles, run_files


class LocalRun:
    """Feeds a run's reducer with its log, and saves the job states and failure reason for later processes."""

    def __init__(self, runs: Runs, run: Run, threshold: float) -> None:
        self._runs = runs
        self._run = run
        self._folder = runs.folder(run.id)
        self._log = self._read_from(newest_copy(self._folder))
        self._removed: LogRead | None = None
        sidecar, files = load_sidecar(self._folder), self._files()
        self.reducer = RunReducer(run, threshold=threshold, sidecar=sidecar, files=files)
        if is_removed(self._folder):
            try:
                self._removed = documents.load(self._folder / READING, LogRead)
            except LlmbError as error:  # watching the run copies it again
                self.reducer.take(LogProblem(error.what))
        self.reducer.take(self._reading)

    def take(self, event: WatchEvent) -> bool:
        """Process an event; True if the watched job changed its state."""
        if isinstance(event, LogGrown) and event.copy.name != self._log.path.name:
            self._log, self._removed = self._read_from(event.copy), None
        moved = self.reducer.take(event)
        if isinstance(event, JobUpdated) and event.job:
            self._remember(event.job)
        elif isinstance(event, BatchTail):
            save_sidecar(self._folder, self.reducer.sidecar)
            self._remember_read()
        return moved

    @property
    def log_grew_at(self) -> float:
        """Unix time at which the log's copy last grew; 0 if there is none."""
        return self._reading.grew_at

    @property
    def log_removed(self) -> bool:
        """Whether the log's copy was removed after it had been read; it is not copied again."""
        return self._removed is not None

    @property
    def _reading(self) -> LogRead:
        return self._removed or self._log.reading

    def read(self) -> bool:
        """Read up to 8 MiB of new data from the log's copy; True if there may be more."""
        more = self._log.read()
        if self._log.error:
            self.reducer.take(LogProblem(self._log.error, for_good=True))
        self.reducer.take(self._reading)
        return more

    def read_on(self, link: RunLink) -> None:
        """Read the copy to its end. Nothing here appends to it; `link`: state of the connection."""
        while self.read():
            pass
        self.reducer.link = link
        if self.reducer.job_over:
            self.end()

    def end(self) -> None:
        """Finish the run's state: no more data will come, and the copy was read to its end."""
        self._log.end()
        self.reducer.files = self._files()  # the cluster provides them after the end of the job
        self.reducer.take(self._reading)
        self.reducer.end()

    def remove_log(self) -> None:
        """Remove every copy of the log, which was read to its end, and save the facts read from the newest one.

        May be repeated: while the newest copy exists it is used, and it is removed last. Raises LlmbError.
        """
        documents.save(self._folder / READING, replace(self._log.reading, removed=True))
        for copy in copies(self._folder):
            with explained_errors("remove", self._folder / copy.name):
                (self._folder / copy.name).unlink(missing_ok=True)

    def state(self) -> RunState:
        """Current snapshot. The log of a run that does not pass is searched for lines that may explain it."""
        state = self.reducer.state(time.time())
        slow = state.verdict is not None and state.verdict.result != "PASS"
        if slow and self._removed is None and self._log.search_slow_signs():
            self.reducer.take(self._reading)
            state = self.reducer.state(time.time())
        return state

    def _files(self) -> RunFiles:
        """Evidence kept of the run besides its log."""
        sent = self._run.spec.sent_files if self._run.spec else {}
        launch = sent.get("configs/launch.json", "")
        gpus = kind_of(self._run).accounted_gpus(text_in(self._folder / ACCOUNTING))
        return run_files(text_in(self._folder / NETWORK), gpus, launch)

    def _remember_read(self) -> None:
        """Save that the log was read to its end; otherwise it is read again."""
        if not self._run.log_read and self._runs.has(self._run.id):
            with contextlib.suppress(LlmbError):  # no disk space here
                self._runs.save_log_read(self._run.id)

    def _read_from(self, copy: LogCopy) -> LocalLog:
        before = max((other for other in copies(self._folder) if other < copy), default=None)
        job_log = self._run.job_log
        own = before is not None and before.restart < copy.restart and job_log is not None and not job_log.one_for_all
        log_format, name = self._run.log_format, before.name if before else ""
        earlier = {other.restart: other for other in copies(self._folder) if own and other.restart < copy.restart}
        starts = sum(has_step(self._folder / other.name, log_format) for other in earlier.values())
        last = last_step(self._folder / name, log_format) if before and not own else -1
        starts += last >= 0
        known = Progress(before=name, of_next_start=own, starts=starts, last_before=last)
        return LocalLog(self._run, self._folder / copy.name, known)

    def _remember(self, job: Job) -> None:
        """Save a job's state. If another process here works on the run, or the disk is full, a later query saves it."""
        with contextlib.suppress(LlmbError):
            if self._runs.has(self._run.id):
                self._run = self._runs.save_states(self._run, [job]) or self._run


def load_sidecar(folder: Path) -> Diagnosis | None:
    """Reason of a failed job by the files next to its log, found by this process or an earlier one."""
    path = _sidecar(folder)
    if path.is_file():
        with contextlib.suppress(LlmbError):  # watching the run reads it again
            return documents.load(path, Diagnosis)
    return None


def save_sidecar(folder: Path, failure: Diagnosis | None) -> None:
    """Save only the matching line: NeMo-Run's batch scripts print every variable that they export."""
    with contextlib.suppress(LlmbError):  # no disk space here: only this process knows it
        if failure is not None:
            documents.save(_sidecar(folder), failure)
        else:
            _sidecar(folder).unlink(missing_ok=True)


def _sidecar(folder: Path) -> Path:
    return folder / "beside.json"
