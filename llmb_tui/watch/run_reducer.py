"""`RunReducer`: folds the events of a run into `RunState`s. Pure: the events carry the time."""

from __future__ import annotations

from dataclasses import replace

from llmb_tui.cluster.job import TERMINAL_STATES, Job
from llmb_tui.diagnosis.rule import Diagnosis
from llmb_tui.language.states import RunLink, Stage, state_label
from llmb_tui.launch.run import Run
from llmb_tui.rates import RateEstimator
from llmb_tui.watch.events import (
    BatchTail,
    JobUpdated,
    LinkChanged,
    LogGrown,
    LogProblem,
    LogRead,
    PollFailed,
    WatchEvent,
)
from llmb_tui.watch.failure import job_failure, worst
from llmb_tui.watch.progress import WARM_UP_STEPS
from llmb_tui.watch.state import FAILED, Progress, RunState, ValidityCheck, Verdict
from llmb_tui.watch.validity import NO_FILES, RunFiles, validity
from llmb_tui.watch.verdict import judge, with_caveats

_PACE_STEPS = 10
_READS = "`llmb-tui results {}` reads it when the cluster can be reached."
_MISSING = "{} does not list the {} at the moment; its last known state is shown."
_ENDS: dict[str, Stage] = {
    "COMPLETED": "done",
    "CANCELLED": "cancelled",
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "NODE_FAIL": "node_fail",
    "BOOT_FAIL": "node_fail",
}
"""Last states of a job that mean more than a failure."""
_HALTED: dict[str, Stage] = {"COMPLETING": "completing", "SUSPENDED": "suspended"}
_FORGOTTEN = "{} no longer knows the {}."


class RunReducer:
    """All that is known of a run at one moment. It starts from the saved data of the run."""

    def __init__(
        self,
        run: Run,
        *,
        threshold: float,
        sidecar: Diagnosis | None = None,
        files: RunFiles = NO_FILES,
    ) -> None:
        """`threshold`: the smallest ratio that passes; `sidecar`: failure line of the files next to the log.

        `files`: evidence on this machine besides the log.
        """
        self._run = run
        self._threshold = threshold
        self.sidecar = sidecar
        """Most significant failure line of the files next to the log."""
        self.files = files
        ended = run.job_state if run.job_ids and run.job_state in TERMINAL_STATES else None
        known = run.job if run.job is not None and run.job.state == ended else None
        self._job = (known or Job(run.job_ids[-1], run.job_name, ended)) if ended else None
        self._others = {job_id: Job(job_id, "", state) for job_id, state in run.other_states}
        self._job_status: tuple[str | None, int, bool] | None = None
        self.job_over = self._job is not None
        """Whether Slurm has ended the job; its log may not be complete yet."""
        self._over = False
        self._log_read = run.log_read
        self.link: RunLink = "connecting"
        self._link_notes: dict[str, str] = {}
        self._slurm_note = ""
        self._out_of_reach = ""
        """Reason why the log can never be read from this machine."""
        self._log = LogRead()
        self._log_marks = (False, False)
        self._pace = _new_pace()

    @property
    def restarts(self) -> int:
        """Number of times that Slurm has started the job again."""
        return self._job.restarts if self._job else 0

    def take(self, event: WatchEvent) -> bool:
        """Process an event; True if the watched job changed its state."""
        if isinstance(event, JobUpdated):
            return self._take_job(event)
        if isinstance(event, LogRead):
            self._take_log(event)
        elif isinstance(event, LinkChanged):
            self.link = event.link
            self._link_notes["link"] = event.note
        elif isinstance(event, PollFailed):
            self._slurm_note = event.note if event.slurm else ""
        elif isinstance(event, LogProblem):
            self._link_notes["log"] = event.note
            self._out_of_reach = event.note if event.for_good else ""
        elif isinstance(event, BatchTail):
            self.sidecar = worst(event.text)
            self._log_read = True
        elif isinstance(event, LogGrown):
            self._link_notes.pop("log", None)
            if event.note:
                self._link_notes["start"] = event.note
        return False

    def end(self) -> None:
        """Note that nothing more will come: the job has ended, and its log was read to its end."""
        self._over = True

    def outran_slurm(self) -> bool:
        """True once when the log begins and once at its last step, because Slurm's last answer is older then."""
        before, self._log_marks = self._log_marks, (self._log.size > 0, self._log.progress.whole)
        return self._log_marks != before and not self.job_over

    def state(self, now: float) -> RunState:
        """Snapshot at `now`, Unix time."""
        log = self._log
        stage = stage_of(self._job, log.progress, started=log.started, ended=self._over)
        checks = self._checks()
        verdict, why_not = self._judge(checks)
        is_going = stage in ("warm-up", "measuring") and not (self.job_over or log.progress.whole)
        return RunState(
            run_id=self._run.id,
            stage=stage,
            job=self._job,
            others=tuple(self._others.values()),
            progress=self._with_reason(log.progress, stage),
            eta_s=_whole(self._pace.seconds_left(log.progress.steps_total, now)) if is_going else None,
            log_name=log.name,
            log_bytes=log.size,
            silent_s=0.0 if self._over or not log.size else _coarse(now - log.grew_at),
            link=self.link,
            link_note=" ".join(note for note in self._link_notes.values() if note),
            slurm_note=self._slurm_note,
            verdict=verdict,
            no_verdict=why_not,
            validity=checks,
            log_unread=self._log_is_unread(),
            log_removed=log.removed,
        )

    def _log_is_unread(self) -> bool:
        """Whether an ended job's log may have more. A run of an older version counts as read if any byte was read."""
        log = self._log
        read = bool(log.size) if self._log_read is None else self._log_read
        read = read and not (self._out_of_reach and not log.size)
        return self._over and not read and not log.progress.whole and self._run.job_log is not None

    def _take_job(self, event: JobUpdated) -> bool:
        if event.job and event.job.id != self._run.job_ids[-1]:
            self._others[event.job.id] = event.job
            return False
        self._slurm_note = ""
        if event.job:
            if self.job_over and not event.job.finished:
                self._log_read = False
            if event.job.restarts > self.restarts:
                self._pace = _new_pace()
            self._job = event.job
        elif not self.job_over:
            words = self._run.words
            self._slurm_note = (_FORGOTTEN if event.gone else _MISSING).format(words.scheduler, words.job)
            self._job = None if event.gone else self._job
        self.job_over = event.gone or (self._job is not None and self._job.finished)
        status = (event.job.state, event.job.restarts, event.gone) if event.job else (None, 0, event.gone)
        moved, self._job_status = status != self._job_status, status
        return moved

    def _take_log(self, log: LogRead) -> None:
        if log.name != self._log.name or log.progress.steps_done < self._pace.count:
            self._pace = _new_pace()
        if log.progress.steps_done and log.progress.steps_done != self._pace.count:
            self._pace.note(log.progress.steps_done, log.read_at)
        self._log = log

    def _checks(self) -> tuple[ValidityCheck, ...]:
        run = self._run
        return validity(run.plan, run.rule, run.log_format, self._log.progress, self.files, finished=self._over)

    def _judge(self, checks: tuple[ValidityCheck, ...]) -> tuple[Verdict | None, str]:
        run = self._run
        if not run.job_ids:
            return None, run.note or f"No verdict: the run has no job, it is {state_label(run.submission).word}."
        if run.job_log is None:
            return None, "No verdict: the path of the job's log is not known."
        if self._log_is_unread() and self._out_of_reach:
            return None, f"No verdict without a log. {self._out_of_reach}"
        if self._log_is_unread():
            return None, f"No verdict: the log has not been read to its end. {_READS.format(run.id)}"
        log = self._log.progress
        verdict, why = judge(run.plan, run.rule, log, finished=self._over, threshold=self._threshold, checks=checks)
        return verdict and with_caveats(verdict, run.differences_from_reference, log), why

    def _with_reason(self, progress: Progress, stage: Stage) -> Progress:
        """Set a failed run's reason: from its log, its batch script's output or Slurm, whichever is most specific."""
        if stage in ("done", "cancelled"):
            return replace(progress, failure=None)
        if stage not in FAILED:
            return progress
        reasons = [
            progress.failure,
            self.sidecar,
            job_failure(self._job, self._run.words.scheduler) if self._job else None,
        ]
        failure = max(filter(None, reasons), key=lambda reason: reason.weight, default=None)
        return replace(progress, failure=failure)


def stage_of(job: Job | None, progress: Progress, *, started: bool, ended: bool) -> Stage:
    """Stage of a run. `started`: the log has a line of the training program; `ended`: the job has ended.

    A run whose last step is in the log is done, even if its clean-up failed. A run has failed without a known reason if
    its job has ended, Slurm no longer knows the job and the log lacks the last step.
    """
    if ended:
        end = _ENDS.get(job.state, "failed") if job else "failed"
        return "done" if progress.whole else end
    if job and job.waiting:
        return "queued"
    if job and job.state in _HALTED:
        return _HALTED[job.state]
    if progress.steps_done:
        return "measuring" if len(progress.step_times_s) >= WARM_UP_STEPS else "warm-up"
    if started:
        return "start"
    return "image" if job else "submitted"


def _new_pace() -> RateEstimator:
    return RateEstimator(newest=_PACE_STEPS + 1)


def _whole(seconds: float | None) -> float | None:
    """Whole seconds, as they are shown, so that smaller changes make no new state."""
    return None if seconds is None else float(round(seconds))


def _coarse(seconds: float) -> float:
    """Whole seconds, or tens of seconds from a minute on, so that smaller changes make no new state."""
    step = 1 if seconds < 60 else 10
    return float(int(max(seconds, 0.0)) // step * step)
