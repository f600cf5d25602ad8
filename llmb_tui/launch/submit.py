"""`submit_once` and `reconcile`: one intent, at most one submission, and no unknown job.

What is intended is on the local disk before anything happens. On the cluster a helper of `remote/` runs detached, and
the files that it leaves (`submission_status.py`) say what happened, however often the line was cut. Where they do not,
the run is `unknown`, and only a look at the cluster changes that: nothing is ever submitted a second time. Every
procedure submits so; in what they differ is in `Submitter`.

The helper outlives its SSH session, except where systemd-logind kills what a user leaves behind
(`KillUserProcesses=yes`): it is then over before it has answered, and Slurm is asked.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from llmb_tui.cluster.failures import Disconnected, Unanswered, Unreachable
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.client import partitions
from llmb_tui.cluster.slurm.partition import Partition
from llmb_tui.errors import Trouble
from llmb_tui.launch import submission_status
from llmb_tui.launch.procedure import procedure
from llmb_tui.launch.refusal import NEVER_SENT, NEVER_TAKEN, WITH_INTENT, withdrawal
from llmb_tui.launch.run import Run, Submission
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.submission_status import SubmissionStatus
from llmb_tui.launch.submitter import Jobs, Preparation
from llmb_tui.store.journal import Journal
from llmb_tui.text import clean

# Exit codes of prepare.sh.
_NOT_INSTALLED, _NO_TOKEN = 3, 4
_INTERRUPTED = 130
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0

# A busy controller may take a job long after sbatch gave up waiting for its answer, and one that hung may answer a
# question before it has read what came earlier.
_TAKEN_WITHIN_S = 300.0
_ASK_AGAIN_AFTER_S = 10.0


class NotSent(Trouble):
    """Nothing was given to Slurm; the intent of a run, if there is one by now, may be sent later or withdrawn."""

    def __init__(self, trouble: Trouble, run: Run | None = None) -> None:
        # Of the connection it is told what may have run, which was no submission.
        broke = isinstance(trouble, (Disconnected, Unanswered))
        why = "That was before anything was given to Slurm." if broke else trouble.why
        fix = WITH_INTENT.format(run.id) if run else "Submit it again." if broke else ""
        super().__init__(
            f"Nothing was submitted. {trouble.what}", why, f"{trouble.fix}\n{fix}".strip(), trouble.exit_code
        )


class NotNoted(Trouble):
    """The run has its job, and that could not be written down here."""

    def __init__(self, run: Run, job_ids: tuple[str, ...], trouble: Trouble) -> None:
        super().__init__(
            f"Job {', '.join(job_ids)} of run {run.id} is in the queue of {run.cluster}, which cannot be noted here.",
            f"{trouble.what} {trouble.why}".rstrip(),
            f"{trouble.fix} Then `llmb-tui watch {run.id}` finds the job; do not submit it again.".strip(),
        )


OnProgress = Callable[[str], None]
"""Told what the submission is doing, one clean line, each time that it changes."""


def submit_once(  # noqa: PLR0913 - the program's memory, the run, and who is told of it
    session: Session, runs: Runs, journal: Journal, run: Run, script: str, *, on_progress: OnProgress | None = None
) -> Run:
    """Submit a run, at most once however often this is called with it; answers with the run as it then is.

    `unknown` means that the answer was lost: `reconcile` settles it later. Raises Trouble when Slurm refuses the job,
    and when the run was withdrawn; NotSent for what prevents the submission before it begins: then the run stays
    `intended`, and may be submitted again.
    """
    session.require_changes()
    try:
        return _submit(session, runs, journal, run, script, on_progress)
    except KeyboardInterrupt as interrupt:
        raise _interrupted(runs, run) from interrupt
    except Trouble as trouble:
        trouble.run_id = run.id
        raise


def _submit(  # noqa: PLR0913, PLR0917 - as above
    session: Session, runs: Runs, journal: Journal, run: Run, script: str, on_progress: OnProgress | None
) -> Run:
    with runs.lock(run.id):
        again = runs.has(run.id)
        if again:
            run = runs.load(run.id)
        submission = _Submission(session, runs, journal, run, on_progress)
        if run.submission == "intended":
            run = submission.send(script, again=again)
        elif run.submission == "unknown":
            run = submission.settled(lambda: submission_status.probe(session, submission.submitter.place))
    if run.submission == "refused":
        raise submission.submitter.refusal(run, lambda: _partitions(session))
    if run.submission == "withdrawn":
        raise withdrawal(run)
    return run


def _interrupted(runs: Runs, run: Run) -> Trouble:
    """What a person has to know who ended the program meanwhile."""
    if not runs.has(run.id):
        return Trouble("Interrupted: nothing was submitted.", exit_code=_INTERRUPTED)
    what, fix = f"Interrupted: run {run.id} may have been submitted.", f"`llmb-tui watch {run.id}` asks the cluster."
    if runs.load(run.id).submission == "intended":
        what, fix = "Interrupted: nothing was submitted.", WITH_INTENT.format(run.id)
    trouble = Trouble(what, "", fix, _INTERRUPTED)
    trouble.run_id = run.id
    return trouble


def withdraw(runs: Runs, journal: Journal, run: Run) -> Run:
    """Withdraw an intent of which nothing was sent; any other run stays as it is. No cluster is asked.

    Raises Trouble where another thread or process here is at it.
    """
    with runs.lock(run.id, wait=False) as mine:
        if not mine:
            what = f"Run {run.id} is just being submitted or withdrawn by another program."
            raise Trouble(what, "", "Look at it again when that is over.")
        run = runs.load(run.id)
        if run.submission == "intended":
            run = replace(run, submission="withdrawn", note="It was withdrawn before anything was sent.")
            journal.append("withdrawn", run=run.id, note=run.note, job_ids=[])
            runs.save(run)
        return run


def reconcile(session: Session, runs: Runs, journal: Journal, run: Run) -> Run:
    """Settle a run that is `unknown` by what the cluster says; others stay as they are.

    A submission that has not begun by now is withdrawn on the cluster, so that it never will; in observer mode it is
    only looked at. A run that another thread or process is just submitting is left alone. It stays `unknown` while what
    submits may still be at work, some minutes after that ended without an answer, and while it cannot be told which
    jobs are its own. Raises Trouble when the cluster cannot be asked.
    """
    with runs.lock(run.id, wait=False) as mine:
        run = runs.load(run.id)
        if not mine or run.submission != "unknown":
            return run
        submission = _Submission(session, runs, journal, run)
        how: submission_status.ProbeMode = "look" if session.read_only else "withdraw"
        return submission.settle(submission_status.probe(session, submission.submitter.place, how))


def _prepare(session: Session, cluster: str, preparation: Preparation) -> None:
    """Make sure of everything that is wanted; nothing is started.

    Raises Trouble (exit code 1) where something is not installed or the token is not there, and where the folder of
    the run cannot be made.
    """
    words = [preparation.token, str(len(preparation.needed)), *preparation.needed]
    words += [str(len(preparation.folders)), *preparation.folders]
    words += [str(len(preparation.links)), *(part for link in preparation.links for part in link)]
    words += [part for copy in preparation.copies for part in copy]
    script = f"umask {session.profile.umask}\n" + remote_text("prepare.sh")
    result = session.run_script(script, words)
    if result.exit_code == _NOT_INSTALLED:
        raise Trouble(
            f"Not installed on {cluster}: {clean(result.stderr).strip()}",
            "The job would wait in the queue only to fail.",
            "Install the same selection first.",
            exit_code=1,
        )
    if result.exit_code == _NO_TOKEN:
        raise Trouble(
            f"There is no Hugging Face token on {cluster}.",
            "The recipe's launch script needs one.",
            f"Give it among the keys: `llmb-tui secrets {cluster} --give hugging-face` asks for it.",
            exit_code=1,
        )
    if result.exit_code:
        raise Trouble(
            f"The folder of the run could not be made: {preparation.folder}",
            clean(result.stderr).strip(),
            "Free some space, or choose an install directory that you may write to.",
        )
    for path, text in preparation.files:
        session.write_file(path, text.encode())


class _Submission:
    """One run on its way to Slurm, while its lock is held."""

    def __init__(
        self, session: Session, runs: Runs, journal: Journal, run: Run, on_progress: OnProgress | None = None
    ) -> None:
        self.submitter = procedure(run.procedure).submitter(run)
        self._session = session
        self._runs = runs
        self._journal = journal
        self._run = run
        self._on_progress = on_progress
        self._last_line = ""

    def send(self, script: str, *, again: bool) -> Run:
        """Send an intent, and wait for what comes of it; one that was sent before is only looked at.

        `again`: it was stored already, so that the cluster is asked first. Raises NotSent.
        """
        with self._nothing_sent_yet():
            sent_before = self._sent_before() if again else None
        if sent_before is not None:
            self._remember("unknown", note="It was sent before.")
            return self.settled(lambda: sent_before)
        with self._nothing_sent_yet():
            self._runs.save_script(self._run.id, script)  # there is no run without its script
            self._runs.save(self._run)
            self._journal.append("intent", run=self._run.id, cluster=self._run.cluster, job_name=self._run.job_name)
            _prepare(self._session, self._run.cluster, self.submitter.preparation(script))
            # On the disk before the command is sent: whatever happens to this process, the run is looked for later.
            self._remember("unknown", note="The cluster has not answered yet.")
            status = self._begin()
        return self.settled(lambda: self._wait(status))

    @contextlib.contextmanager
    def _nothing_sent_yet(self) -> Iterator[None]:
        """What goes wrong within the block leaves the run intended, with the reason. Raises NotSent."""
        try:
            yield
        except Trouble as trouble:
            with contextlib.suppress(Trouble):  # no room here
                self._runs.save(replace(self._run, note=trouble.what))
            raise NotSent(trouble, self._run) from trouble

    def _sent_before(self) -> SubmissionStatus | None:
        """What the cluster has of it; None where it has neither traces nor jobs."""
        status = submission_status.probe(self._session, self.submitter.place)
        jobs = self.submitter.jobs(self._session, status)
        return status if status.owner or jobs != Jobs() else None

    def _begin(self) -> SubmissionStatus:
        """Start the submission on the cluster. Raises Trouble where it is certain that this did not come to it."""
        try:
            return submission_status.probe(self._session, self.submitter.place, "start")
        except Trouble as trouble:
            if not _may_have_run(trouble):
                self._remember("intended")
                raise
            return SubmissionStatus()

    def settled(self, look: Callable[[], SubmissionStatus]) -> Run:
        """`settle` by what `look` finds; unknown where the cluster cannot be asked."""
        try:
            return self.settle(look())
        except NotNoted:
            raise
        except Trouble as trouble:  # a cluster that cannot be asked leaves the run as it is: unknown
            return self._remember("unknown", note=f"The cluster could not be asked. {trouble}")

    def settle(self, status: SubmissionStatus) -> Run:
        """Remember what the traces mean. Raises Trouble when Slurm has to be asked and does not answer."""
        if status.withdrawn:
            return self._remember("withdrawn", note=NEVER_SENT)
        if never := self.submitter.never(status):
            return self._remember("refused", note=never)
        late = status.over and status.age_s > _TAKEN_WITHIN_S
        jobs = self.submitter.jobs(self._session, status)
        if late and jobs == Jobs():
            time.sleep(_ASK_AGAIN_AFTER_S)
            jobs = self.submitter.jobs(self._session, status)
        if jobs.ids:
            return self._submitted(jobs, status)
        return self._without_jobs(status, jobs.question, late=late)

    def _without_jobs(self, status: SubmissionStatus, question: str, *, late: bool) -> Run:
        """Remember why no job is known."""
        reason, program = self.submitter.reason(status), self.submitter.program
        words = f"{program} said: {reason}" if reason else ""
        if question:
            return self._remember("unknown", note=question)
        if status.over and not self.submitter.may_still_come(status):
            return self._remember("refused", note=reason)
        if late:
            return self._remember("withdrawn", note=f"{NEVER_TAKEN.format(program)} {words}".strip())
        return self._remember("unknown", note=self._open_question(status, words))

    def _wait(self, status: SubmissionStatus) -> SubmissionStatus:
        """Look until the submission is settled or the time is up; the session mends a broken line meanwhile.

        A command that was lost on the way is sent again: who claims the submission first is the only one to do it.
        """
        until = time.monotonic() + self.submitter.answers_within_s
        pause = _FIRST_PAUSE_S
        self._tell(status)
        while not (status.settled or self.submitter.answered(status)) and time.monotonic() < until:
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)
            try:
                status = submission_status.probe(self._session, self.submitter.place, "start")
            except (Disconnected, Unanswered, Unreachable):
                if self._session.state == "closed":
                    raise
            self._tell(status)
        return status

    def _tell(self, status: SubmissionStatus) -> None:
        line = self.submitter.progress(status)
        if self._on_progress is not None and line and line != self._last_line:
            self._last_line = line
            self._on_progress(line)

    def _submitted(self, jobs: Jobs, status: SubmissionStatus) -> Run:
        self._run = replace(self._run, log=jobs.log or self._run.log)
        submitted_at = time.time() - status.age_s
        try:
            return self._remember("submitted", note=jobs.note, job_ids=jobs.ids, submitted_at=submitted_at)
        except Trouble as trouble:  # such as a disk that is full
            raise NotNoted(self._run, jobs.ids, trouble) from trouble

    def _open_question(self, status: SubmissionStatus, words: str) -> str:
        no_job, program = "No job of its name is known to Slurm yet.", self.submitter.program
        if status.over:
            return f"{no_job} {program} ended without an answer; Slurm may still take it. {words}".strip()
        if status.owner:
            says = self.submitter.progress(status)
            return f"{no_job} {program} was started by {status.owner}, and has not answered. {says}".strip()
        return f"{no_job} The connection broke while the submission was on its way."

    def _remember(
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


def _may_have_run(trouble: Trouble) -> bool:
    """False when it is certain that the command never reached the cluster."""
    return isinstance(trouble, Unanswered) or (isinstance(trouble, Disconnected) and trouble.may_have_run)


def _partitions(session: Session) -> list[Partition]:
    """The cluster's partitions, to explain a refusal; none when it does not say."""
    try:
        return partitions(session)
    except Trouble:
        return []
