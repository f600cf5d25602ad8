"""`submit_once` and `reconcile`: one intent, at most one submission, and no unknown job.

What is intended is on the local disk before anything happens. Where it is not certain what became of it the run is
`unknown`, and only a look at the cluster changes that: nothing is ever submitted a second time. Every procedure submits
so; in what they differ is in `Delivery`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.failures import Disconnected, Unanswered
from llmb_tui.errors import Trouble
from llmb_tui.language.states import Submission
from llmb_tui.launch.delivery import Outcome, Tell
from llmb_tui.launch.procedure_loader import procedure
from llmb_tui.launch.refusal import WITH_INTENT, withdrawal
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.store.journal import Journal

INTERRUPTED = 130


class NotSent(Trouble):
    """Nothing was sent; the intent of a run, if there is one by now, may be sent later or withdrawn."""

    def __init__(self, trouble: Trouble, run: Run | None = None) -> None:
        # Of the connection it is told what may have run, which was no submission.
        broke = isinstance(trouble, (Disconnected, Unanswered))
        why = "That was before anything was sent." if broke else trouble.why
        fix = WITH_INTENT.format(run.id) if run else "Submit it again."
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


def submit_once(  # noqa: PLR0913 - the program's memory, the run, and who is told of it
    cluster: Cluster, runs: Runs, journal: Journal, run: Run, script: str, *, on_progress: Tell | None = None
) -> Run:
    """Submit a run, at most once however often this is called with it; answers with the run as it then is.

    `unknown` means that the answer was lost: `reconcile` settles it later. Raises Trouble when Slurm refuses the job,
    and when the run was withdrawn; NotSent for what prevents the submission before it begins: then the run stays
    `intended`, and may be submitted again.
    """
    cluster.require_changes()
    try:
        return _submit(cluster, runs, journal, run, script, on_progress)
    except KeyboardInterrupt as interrupt:
        raise interrupted(runs, run) from interrupt
    except Trouble as trouble:
        if _may_be_stored(runs, run):
            trouble.run_id = run.id
        raise


def _submit(  # noqa: PLR0913, PLR0917 - as above
    cluster: Cluster, runs: Runs, journal: Journal, run: Run, script: str, on_progress: Tell | None
) -> Run:
    with _lock(runs, run):
        again = runs.has(run.id)
        if again:
            run = runs.load(run.id)
        submission = _Submission(cluster, runs, journal, run, on_progress)
        if run.submission == "intended":
            run = submission.send(script, again=again)
        elif run.submission == "unknown":
            run = submission.settled(lambda: submission.delivery.look(withdraw=False))
    if run.submission == "refused":
        raise submission.delivery.refusal(run)
    if run.submission == "withdrawn":
        raise withdrawal(run)
    return run


@contextlib.contextmanager
def _lock(runs: Runs, run: Run) -> Iterator[None]:
    """Hold the run; one that was not stored when that ends leaves no folder. Raises NotSent where it cannot be held."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(runs.lock(run.id))
        except Trouble as trouble:
            if _may_be_stored(runs, run):
                raise
            runs.forget(run.id, mine=False)
            raise NotSent(trouble) from trouble
        try:
            yield
        finally:
            if not _may_be_stored(runs, run):
                runs.forget(run.id, mine=True)


def _may_be_stored(runs: Runs, run: Run) -> bool:
    """False when it is certain that there is no such run here."""
    try:
        return runs.has(run.id)
    except Trouble:
        return True


def interrupted(runs: Runs, run: Run) -> Trouble:
    """What a person has to know who ended the program while a run was on its way."""
    if not runs.has(run.id):
        return Trouble("Interrupted: nothing was submitted.", exit_code=INTERRUPTED)
    what, fix = f"Interrupted: run {run.id} may have been submitted.", f"`llmb-tui watch {run.id}` asks the cluster."
    if runs.load(run.id).submission == "intended":
        what, fix = "Interrupted: nothing was submitted.", WITH_INTENT.format(run.id)
    trouble = Trouble(what, "", fix, INTERRUPTED)
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
            note = "It was withdrawn before anything was sent."
            run = replace(run, submission="withdrawn", sent_at=None, note=note)
            journal.append("withdrawn", run=run.id, note=run.note, job_ids=[])
            runs.save(run)
        return run


def reconcile(cluster: Cluster, runs: Runs, journal: Journal, run: Run) -> Run:
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
        submission = _Submission(cluster, runs, journal, run)
        return submission.settle(submission.delivery.look(withdraw=not cluster.read_only))


class _Submission:
    """One run on its way to its cluster, while its lock is held."""

    def __init__(
        self, cluster: Cluster, runs: Runs, journal: Journal, run: Run, on_progress: Tell | None = None
    ) -> None:
        self.delivery = procedure(run.procedure).delivery(run, cluster)
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
            sent_before = again and self.delivery.sent_before()
        if sent_before:
            self._remember("unknown", note="It was sent before.")
            return self.settled(lambda: self.delivery.look(withdraw=False))
        with self._nothing_sent_yet():
            self._runs.save_script(self._run.id, script)  # there is no run without its script
            self._runs.save(self._run)
            self._journal.append("intent", run=self._run.id, cluster=self._run.cluster, job_name=self._run.job_name)
            self.delivery.prepare(script)
            # On the disk before the command is sent: whatever happens to this process, the run is looked for later.
            self._run = replace(self._run, sent_at=time.time())
            self._remember("unknown", note="The cluster has not answered yet.")
            self._begin()
        return self.settled(lambda: self.delivery.answer(self._tell))

    @contextlib.contextmanager
    def _nothing_sent_yet(self) -> Iterator[None]:
        """What goes wrong within the block leaves the run intended, with the reason. Raises NotSent."""
        try:
            yield
        except Trouble as trouble:
            with contextlib.suppress(Trouble):  # no room here
                self._runs.save(replace(self._run, note=trouble.what))
            raise NotSent(trouble, self._run if self._runs.has(self._run.id) else None) from trouble

    def _begin(self) -> None:
        """Start the submission on the cluster. Raises Trouble where it is certain that this did not come to it."""
        try:
            self.delivery.begin()
        except Trouble as trouble:
            if not _may_have_run(trouble):
                self._remember("intended")
                raise

    def settled(self, look: Callable[[], Outcome]) -> Run:
        """`settle` by what `look` finds; unknown where the cluster cannot be asked."""
        try:
            return self.settle(look())
        except NotNoted:
            raise
        except Trouble as trouble:  # a cluster that cannot be asked leaves the run as it is: unknown
            return self._remember("unknown", note=f"The cluster could not be asked. {trouble}")

    def settle(self, outcome: Outcome) -> Run:
        """Remember what became of it."""
        if outcome.submission != "submitted":
            return self._remember(outcome.submission, note=outcome.note)
        jobs, submitted_at = outcome.jobs, time.time() - outcome.age_s
        self._run = replace(self._run, log=jobs.log or self._run.log)
        try:
            return self._remember("submitted", note=outcome.note, job_ids=jobs.ids, submitted_at=submitted_at)
        except Trouble as trouble:  # such as a disk that is full
            raise NotNoted(self._run, jobs.ids, trouble) from trouble

    def _tell(self, line: str) -> None:
        if self._on_progress is not None and line and line != self._last_line:
            self._last_line = line
            self._on_progress(line)

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
