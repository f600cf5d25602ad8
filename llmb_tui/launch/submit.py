"""`submit` and `reconcile`: one intent, at most one submission, and no job that is not known here.

What is intended is on the local disk before anything happens. On the cluster a helper of `remote/` runs detached, and
the files that it leaves (`traces.py`) say what happened, however often the line was cut. Where they do not, the run is
`unknown`, and only a look at the cluster changes that: nothing is ever submitted a second time. Both procedures are
submitted so; in what they differ is in `DirectWay` and `PublishedWay`.

The helper outlives its SSH session, except where systemd-logind kills what a user leaves behind
(`KillUserProcesses=yes`): it is then over before it has answered, and Slurm is asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from llmb_tui.cluster.failures import DeadlinePassed, Disconnected, Unreachable
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.client import partitions
from llmb_tui.cluster.slurm.partition import Partition
from llmb_tui.errors import Trouble
from llmb_tui.launch import traces
from llmb_tui.launch.direct_way import DirectWay
from llmb_tui.launch.prepare import prepare
from llmb_tui.launch.published.spec import PublishedSpec
from llmb_tui.launch.published.way import PublishedWay
from llmb_tui.launch.refusal import NEVER_SENT, NEVER_TAKEN, refusal, withdrawal
from llmb_tui.launch.run import Run, Submission
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.traces import Traces
from llmb_tui.launch.way import Jobs, Way
from llmb_tui.store.journal import Journal

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0

# A busy controller may take a job long after sbatch gave up waiting for its answer, and one that hung may answer a
# question before it has read what came earlier.
_TAKEN_WITHIN_S = 300.0
_ASK_AGAIN_AFTER_S = 10.0

OnProgress = Callable[[str], None]
"""Told what the submission is doing, one clean line, each time that it changes."""


def way_of(run: Run) -> Way:
    """How a run is submitted. Raises TypeError for one that somebody else submitted."""
    return PublishedWay(run.spec) if isinstance(run.spec, PublishedSpec) else DirectWay(run.direct)


def submit(  # noqa: PLR0913 - the program's memory, the run, and who is told of it
    session: Session, runs: Runs, journal: Journal, run: Run, script: str, *, on_progress: OnProgress | None = None
) -> Run:
    """Submit a run, at most once however often this is called with it; answers with the run as it then is.

    `unknown` means that the answer was lost: `reconcile` settles it later. Raises Trouble when Slurm refuses the job,
    when the run was withdrawn, and for what prevents the submission before it begins: then the run stays `intended`,
    and may be submitted again.
    """
    with runs.lock(run.id):
        if runs.has(run.id):
            run = runs.load(run.id)
        submission = _Submission(session, runs, journal, run, on_progress)
        if run.submission == "intended":
            runs.save(run)
            runs.save_script(run.id, script)
            journal.append("intent", run=run.id, cluster=run.cluster, job_name=run.job_name)
            prepare(session, run.cluster, submission.way.preparation(script))
            run = submission.begin()
        elif run.submission == "unknown":
            run = submission.settle(traces.look(session, submission.way.place))
    if run.submission == "refused":
        raise refusal(run, lambda: _partitions(session))
    if run.submission == "withdrawn":
        raise withdrawal(run)
    return run


def reconcile(session: Session, runs: Runs, journal: Journal, run: Run) -> Run:
    """Settle a run that is `unknown` by what the cluster says; others stay as they are.

    A submission that has not begun by now is withdrawn on the cluster, so that it never will. A run that another
    thread or process is just submitting is left alone. It stays `unknown` while what submits may still be at work, some
    minutes after that ended without an answer, and while it cannot be told which jobs are its own. Raises Trouble when
    the cluster cannot be asked.
    """
    with runs.lock(run.id, wait=False) as mine:
        run = runs.load(run.id)
        if not mine or run.submission != "unknown":
            return run
        submission = _Submission(session, runs, journal, run)
        return submission.settle(traces.look(session, submission.way.place, "withdraw"))


class _Submission:
    """One run on its way to Slurm, while its lock is held."""

    def __init__(
        self, session: Session, runs: Runs, journal: Journal, run: Run, on_progress: OnProgress | None = None
    ) -> None:
        self.way = way_of(run)
        self._session = session
        self._runs = runs
        self._journal = journal
        self._run = run
        self._on_progress = on_progress
        self._told = ""

    def begin(self) -> Run:
        """Start the submission on the cluster, and wait for what comes of it."""
        # On the disk before the command is sent: whatever happens to this process, the run is looked for afterwards.
        self._remember("unknown", note="The cluster has not answered yet.")
        found = Traces()
        try:
            found = traces.look(self._session, self.way.place, "start")
        except Trouble as trouble:
            if not _may_have_run(trouble):
                self._remember("intended")
                raise
        try:
            return self.settle(self._wait(found))
        except Trouble as trouble:  # a cluster that cannot be asked leaves the run as it is: unknown
            return self._remember("unknown", note=f"The cluster could not be asked. {trouble}")

    def settle(self, found: Traces) -> Run:
        """Remember what the traces mean. Raises Trouble when Slurm has to be asked and does not answer."""
        if found.withdrawn:
            return self._remember("withdrawn", note=NEVER_SENT)
        if never := self.way.never(found):
            return self._remember("refused", note=never)
        late = found.over and found.age_s > _TAKEN_WITHIN_S
        jobs = self.way.jobs(self._session, found)
        if late and jobs == Jobs():
            time.sleep(_ASK_AGAIN_AFTER_S)
            jobs = self.way.jobs(self._session, found)
        if jobs.ids:
            return self._submitted(jobs, found)
        return self._without_jobs(found, jobs.question, late=late)

    def _without_jobs(self, found: Traces, question: str, *, late: bool) -> Run:
        """Remember why no job is known."""
        reason, program = self.way.reason(found), self.way.program
        said = f"{program} said: {reason}" if reason else ""
        if question:
            return self._remember("unknown", note=question)
        if found.over and not self.way.may_still_come(found):
            return self._remember("refused", note=reason)
        if late:
            return self._remember("withdrawn", note=f"{NEVER_TAKEN.format(program)} {said}".strip())
        return self._remember("unknown", note=self._open_question(found, said))

    def _wait(self, found: Traces) -> Traces:
        """Look until the submission is settled or the time is up; the session mends a broken line meanwhile.

        A command that was lost on the way is sent again: who claims the submission first is the only one to do it.
        """
        until = time.monotonic() + self.way.answers_within_s
        pause = _FIRST_PAUSE_S
        self._tell(found)
        while not (found.settled or self.way.answered(found)) and time.monotonic() < until:
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)
            try:
                found = traces.look(self._session, self.way.place, "start")
            except (Disconnected, DeadlinePassed, Unreachable):
                if self._session.state == "closed":
                    raise
            self._tell(found)
        return found

    def _tell(self, found: Traces) -> None:
        line = self.way.progress(found)
        if self._on_progress is not None and line and line != self._told:
            self._told = line
            self._on_progress(line)

    def _submitted(self, jobs: Jobs, found: Traces) -> Run:
        self._run = replace(self._run, log=jobs.log or self._run.log)
        submitted_at = time.time() - found.age_s
        return self._remember("submitted", note=jobs.note, job_ids=jobs.ids, submitted_at=submitted_at)

    def _open_question(self, found: Traces, said: str) -> str:
        known, program = "No job of its name is known to Slurm yet.", self.way.program
        if found.over:
            return f"{known} {program} ended without an answer; Slurm may still take it. {said}".strip()
        if found.owner:
            says = self.way.progress(found)
            return f"{known} {program} was started by {found.owner}, and has not answered. {says}".strip()
        return f"{known} The connection broke while the submission was on its way."

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
    return isinstance(trouble, DeadlinePassed) or (isinstance(trouble, Disconnected) and trouble.may_have_run)


def _partitions(session: Session) -> list[Partition]:
    """The cluster's partitions, to explain a refusal; none when it does not say."""
    try:
        return partitions(session)
    except Trouble:
        return []
