"""`submit_once` and `reconcile`: one intent, at most one submission, and no job without a record.

The intent is on the local disk before anything happens. If the outcome is uncertain, the run is `unknown`, and only a
look at the cluster changes that: nothing is ever submitted a second time. This holds for every procedure; `Delivery`
has their differences.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.failures import DisconnectedError, NoAnswerError
from llmb_tui.errors import LlmbError
from llmb_tui.language.states import Submission
from llmb_tui.launch.delivery import OnStatus, Outcome
from llmb_tui.launch.procedure_loader import procedure
from llmb_tui.launch.refusal import NEXT_STEPS, withdrawal
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.store.journal import Journal

INTERRUPTED = 130


class NotSubmittedError(LlmbError):
    """Nothing was submitted; the run's intent, if it was stored, may be submitted later or withdrawn."""

    def __init__(self, error: LlmbError, run: Run | None = None) -> None:
        # The error of a connection asks whether a command has run; here that command was not the submission.
        broke = isinstance(error, (DisconnectedError, NoAnswerError))
        why = "That was before the submission." if broke else error.why
        fix = NEXT_STEPS.format(run.id) if run else "Submit it again."
        super().__init__(f"Nothing was submitted. {error.what}", why, f"{error.fix}\n{fix}".strip(), error.exit_code)


class JobNotRecordedError(LlmbError):
    """The run has a job that could not be recorded on this machine."""

    def __init__(self, run: Run, job_ids: tuple[str, ...], error: LlmbError) -> None:
        super().__init__(
            f"Job {', '.join(job_ids)} of run {run.id} was submitted to {run.cluster}, but could not be recorded here.",
            f"{error.what} {error.why}".rstrip(),
            f"{error.fix} Then `llmb-tui watch {run.id}` finds the job; do not submit it again.".strip(),
        )


def submit_once(  # noqa: PLR0913 - the program's stores, the run, and a callback
    cluster: Cluster, runs: Runs, journal: Journal, run: Run, script: str, *, on_progress: OnStatus | None = None
) -> Run:
    """Submit a run, at most once even if this is called repeatedly; return the updated run.

    `unknown` means that the answer was lost: `reconcile` settles it later. Raises LlmbError if Slurm rejects the job or
    the run was withdrawn; NotSubmittedError for errors before the submission begins: the run then stays `intended`, and
    may be submitted again.
    """
    cluster.require_changes()
    try:
        return _submit(cluster, runs, journal, run, script, on_progress)
    except KeyboardInterrupt as interrupt:
        raise interrupted(runs, run) from interrupt
    except LlmbError as error:
        if _may_be_stored(runs, run):
            error.run_id = run.id
        raise


def _submit(  # noqa: PLR0913, PLR0917 - as above
    cluster: Cluster, runs: Runs, journal: Journal, run: Run, script: str, on_progress: OnStatus | None
) -> Run:
    with _lock(runs, run):
        stored = runs.has(run.id)
        if stored:
            run = runs.load(run.id)
        submission = _Submission(cluster, runs, journal, run, on_progress)
        if run.submission == "intended":
            run = submission.send(script, stored=stored)
        elif run.submission == "unknown":
            run = submission.settle_by(lambda: submission.delivery.look_up(withdraw=False))
    if run.submission == "refused":
        raise submission.delivery.refusal(run)
    if run.submission == "withdrawn":
        raise withdrawal(run)
    return run


@contextlib.contextmanager
def _lock(runs: Runs, run: Run) -> Iterator[None]:
    """Hold the run; a run that was not stored leaves no folder. Raises NotSubmittedError if the run cannot be held."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(runs.lock(run.id))
        except LlmbError as error:
            if _may_be_stored(runs, run):
                raise
            runs.forget(run.id, mine=False)
            raise NotSubmittedError(error) from error
        try:
            yield
        finally:
            if not _may_be_stored(runs, run):
                runs.forget(run.id, mine=True)


def _may_be_stored(runs: Runs, run: Run) -> bool:
    """False if it is certain that the run is not stored here."""
    try:
        return runs.has(run.id)
    except LlmbError:
        return True


def interrupted(runs: Runs, run: Run) -> LlmbError:
    """The error after the user interrupted the program during a submission."""
    if not runs.has(run.id):
        return LlmbError("Interrupted: nothing was submitted.", exit_code=INTERRUPTED)
    what, fix = f"Interrupted: run {run.id} may have been submitted.", f"`llmb-tui watch {run.id}` asks the cluster."
    if runs.load(run.id).submission == "intended":
        what, fix = "Interrupted: nothing was submitted.", NEXT_STEPS.format(run.id)
    error = LlmbError(what, "", fix, INTERRUPTED)
    error.run_id = run.id
    return error


def withdraw(runs: Runs, journal: Journal, run: Run) -> Run:
    """Withdraw an intent of which nothing was submitted; other runs are not changed. No cluster is asked.

    Raises LlmbError if another thread or process here is working on it.
    """
    with runs.lock(run.id, wait=False) as mine:
        if not mine:
            what = f"Run {run.id} is being submitted or withdrawn by another process."
            raise LlmbError(what, "", "Wait until it has finished, then look at the run again.")
        run = runs.load(run.id)
        if run.submission == "intended":
            note = "It was withdrawn before anything was submitted."
            run = replace(run, submission="withdrawn", sent_at=None, note=note)
            journal.append("withdrawn", run=run.id, note=run.note, job_ids=[])
            runs.save(run)
        return run


def reconcile(cluster: Cluster, runs: Runs, journal: Journal, run: Run) -> Run:
    """Settle a run that is `unknown` by the state of the cluster; other runs are not changed.

    A submission that has not begun is withdrawn on the cluster, so that it never begins; a read-only cluster is only
    queried. A run that another thread or process is submitting is left alone. The run stays `unknown` while the
    submitting program may still be active, for some minutes after it ended without an answer, and while it is
    undecided which jobs belong to the run. Raises LlmbError if the cluster cannot be queried.
    """
    with runs.lock(run.id, wait=False) as mine:
        run = runs.load(run.id)
        if not mine or run.submission != "unknown":
            return run
        submission = _Submission(cluster, runs, journal, run)
        return submission.settle(submission.delivery.look_up(withdraw=not cluster.read_only))


class _Submission:
    """Submission of one run to its cluster, while its lock is held."""

    def __init__(
        self, cluster: Cluster, runs: Runs, journal: Journal, run: Run, on_progress: OnStatus | None = None
    ) -> None:
        self.delivery = procedure(run.procedure).delivery(run, cluster)
        self._runs = runs
        self._journal = journal
        self._run = run
        self._on_progress = on_progress
        self._last_line = ""

    def send(self, script: str, *, stored: bool) -> Run:
        """Send an intent and wait for the outcome; if it was sent before, only look up the outcome.

        `stored`: the intent was stored earlier, so the cluster is asked first. Raises NotSubmittedError.
        """
        with self._nothing_sent_yet():
            was_sent = stored and self.delivery.was_sent()
        if was_sent:
            self._store("unknown", note="It was sent before.")
            return self.settle_by(lambda: self.delivery.look_up(withdraw=False))
        with self._nothing_sent_yet():
            self._runs.save_script(self._run.id, script)  # there is no run without its script
            self._runs.save(self._run)
            self._journal.append("intent", run=self._run.id, cluster=self._run.cluster, job_name=self._run.job_name)
            self.delivery.prepare(script)
            # Stored before the command is sent, so that the run is looked up later whatever happens to this process.
            self._run = replace(self._run, sent_at=time.time())
            self._store("unknown", note="The cluster has not answered yet.")
            self._begin()
        return self.settle_by(lambda: self.delivery.answer(self._report))

    @contextlib.contextmanager
    def _nothing_sent_yet(self) -> Iterator[None]:
        """Keep the run intended, with the reason, if the block raises. Raises NotSubmittedError."""
        try:
            yield
        except LlmbError as error:
            with contextlib.suppress(LlmbError):  # such as a full disk
                self._runs.save(replace(self._run, note=error.what))
            raise NotSubmittedError(error, self._run if self._runs.has(self._run.id) else None) from error

    def _begin(self) -> None:
        """Start the submission on the cluster. Raises LlmbError if it is certain that it did not start."""
        try:
            self.delivery.begin()
        except LlmbError as error:
            if not _may_have_run(error):
                self._store("intended")
                raise

    def settle_by(self, look: Callable[[], Outcome]) -> Run:
        """`settle` with the outcome that `look` returns; unknown if the cluster cannot be queried."""
        try:
            return self.settle(look())
        except JobNotRecordedError:
            raise
        except LlmbError as error:  # the run stays as it is: unknown
            return self._store("unknown", note=f"The cluster could not be queried. {error}")

    def settle(self, outcome: Outcome) -> Run:
        """Store the outcome."""
        if outcome.submission != "submitted":
            return self._store(outcome.submission, note=outcome.note)
        jobs, submitted_at = outcome.jobs, time.time() - outcome.age_s
        self._run = replace(self._run, log=jobs.log or self._run.log)
        try:
            return self._store("submitted", note=outcome.note, job_ids=jobs.ids, submitted_at=submitted_at)
        except LlmbError as error:  # such as a full disk
            raise JobNotRecordedError(self._run, jobs.ids, error) from error

    def _report(self, line: str) -> None:
        if self._on_progress is not None and line and line != self._last_line:
            self._last_line = line
            self._on_progress(line)

    def _store(
        self,
        submission: Submission,
        *,
        note: str = "",
        job_ids: tuple[str, ...] = (),
        submitted_at: float | None = None,
    ) -> Run:
        run = replace(self._run, submission=submission, note=note, job_ids=job_ids, submitted_at=submitted_at)
        self._journal.append(submission, run=run.id, note=note, job_ids=list(job_ids))
        self._runs.save(run)
        return run


def _may_have_run(error: LlmbError) -> bool:
    """False if it is certain that the command never reached the cluster."""
    return isinstance(error, NoAnswerError) or (isinstance(error, DisconnectedError) and error.may_have_run)
