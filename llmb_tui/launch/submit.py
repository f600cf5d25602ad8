"""`submit` and `reconcile`: one intent, at most one job, and no job that is not known here.

What is intended is on the local disk before anything happens. On the cluster `remote/submit.sh` runs detached, and the
files that it leaves (`traces.py`) say what happened, however often the line was cut. Where they do not, the run is
`unknown`, and only a look at the cluster changes that: nothing is ever submitted a second time.

`submit.sh` outlives its SSH session, except where systemd-logind kills what a user leaves behind
(`KillUserProcesses=yes`): it is then over before it has answered, and Slurm is asked.
"""

from __future__ import annotations

import time
from dataclasses import replace
from importlib import resources

from llmb_tui.cluster.failures import DeadlinePassed, Disconnected, Unreachable
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.client import find_jobs, partitions
from llmb_tui.cluster.slurm.partition import Partition
from llmb_tui.errors import Trouble
from llmb_tui.launch import traces
from llmb_tui.launch.refusal import (
    NEVER_SENT,
    NEVER_TAKEN,
    may_have_been_accepted,
    reason,
    refusal,
    withdrawal,
)
from llmb_tui.launch.run import Run, Submission
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.traces import Traces
from llmb_tui.store.journal import Journal
from llmb_tui.text import clean

_ANSWER_WITHIN_S = 90.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0
_NOT_INSTALLED = 3

# A busy controller may take a job long after sbatch gave up waiting for its answer, and one that hung may answer a
# question before it has read what came earlier.
_TAKEN_WITHIN_S = 300.0
_ASK_AGAIN_AFTER_S = 10.0

# Arguments: container image, number of folders, the folders, number of links, pairs of (path below the home directory,
# link to it, or an empty file where there is no such file), then pairs of (installed file, where it is copied to).
_PREPARE = f"""
[ -s "$1" ] || {{ echo "$1" >&2; exit {_NOT_INSTALLED}; }}
folders=$2
shift 2
while [ "$folders" -gt 0 ]; do
    mkdir -p "$1" || exit 1
    shift
    folders=$((folders - 1))
done
links=$1
shift
while [ "$links" -gt 0 ]; do
    if [ -s "$HOME/$1" ]; then ln -sfn "$HOME/$1" "$2"; else rm -f "$2" && : >"$2"; fi || exit 1
    shift 2
    links=$((links - 1))
done
while [ $# -gt 0 ]; do
    [ -s "$1" ] || {{ echo "$1" >&2; exit {_NOT_INSTALLED}; }}
    cp "$1" "$2.$$" && mv -f "$2.$$" "$2" || exit 1
    shift 2
done
"""


def submit(session: Session, runs: Runs, journal: Journal, run: Run, script: str) -> Run:
    """Submit a run, at most once however often this is called with it; answers with the run as it then is.

    `unknown` means that the answer was lost: `reconcile` settles it later. Raises Trouble when Slurm refuses the job,
    when the run was withdrawn, and for what prevents the submission before it begins: then the run stays `intended`,
    and may be submitted again.
    """
    with runs.lock(run.id):
        if runs.has(run.id):
            run = runs.load(run.id)
        submission = _Submission(session, runs, journal, run)
        if run.submission == "intended":
            runs.save(run)
            runs.save_script(run.id, script)
            journal.append("intent", run=run.id, cluster=run.cluster, job_name=run.job_name)
            submission.copy(script)
            run = submission.begin()
        elif run.submission == "unknown":
            run = submission.settle(traces.look(session, run.direct))
    if run.submission == "refused":
        raise refusal(run, lambda: _partitions(session))
    if run.submission == "withdrawn":
        raise withdrawal(run)
    return run


def reconcile(session: Session, runs: Runs, journal: Journal, run: Run) -> Run:
    """Settle a run that is `unknown` by what the cluster says; others stay as they are.

    A submission that has not begun by now is withdrawn on the cluster, so that it never will. A run that another
    thread or process is just submitting is left alone. It stays `unknown` while sbatch may still be at work, and some
    minutes after it ended without an answer. Raises Trouble when the cluster cannot be asked.
    """
    with runs.lock(run.id, wait=False) as mine:
        run = runs.load(run.id)
        if not mine or run.submission != "unknown":
            return run
        return _Submission(session, runs, journal, run).settle(traces.look(session, run.direct, "withdraw"))


class _Submission:
    """One run on its way to Slurm, while its lock is held."""

    def __init__(self, session: Session, runs: Runs, journal: Journal, run: Run) -> None:
        self._session = session
        self._runs = runs
        self._journal = journal
        self._run = run

    def copy(self, script: str) -> None:
        """Put everything that the job needs into the run's folder on the cluster. May be repeated."""
        spec = self._run.direct
        copies = {f"{spec.task_dir}/{below}": source for source, below in spec.copies}
        files = {f"{spec.task_dir}/{below}": text for below, text in spec.files}
        # NeMo-Run starts every task in code/.
        folders = {path.rpartition("/")[0] for path in (*copies, *files)}
        folders |= {traces.folder(spec), f"{spec.task_dir}/code", *spec.folders}
        words = [spec.container_image, str(len(folders)), *sorted(folders), str(len(spec.links))]
        words += [part for source, below in spec.links for part in (source, f"{spec.task_dir}/{below}")]
        words += [part for target, source in copies.items() for part in (source, target)]
        done = self._session.run_script(_PREPARE, words)
        if done.exit_code == _NOT_INSTALLED:
            raise Trouble(
                f"Not installed on {self._run.cluster}: {clean(done.stderr).strip()}",
                "The job would wait in the queue only to fail.",
                "Install the same selection first.",
                exit_code=1,
            )
        if done.exit_code:
            raise Trouble(
                f"The folder of the run could not be made: {spec.task_dir}",
                clean(done.stderr).strip(),
                "Free some space, or choose an install directory that you may write to.",
            )
        for path, text in files.items():
            self._session.write_file(path, text.encode())
        self._session.write_file(traces.script_path(spec), script.encode())
        helper = resources.files("llmb_tui.remote").joinpath("submit.sh").read_bytes()
        self._session.write_file(traces.helper_path(spec), helper)

    def begin(self) -> Run:
        """Start the submission on the cluster, and wait for what comes of it."""
        # On the disk before the command is sent: whatever happens to this process, the run is looked for afterwards.
        self._remember("unknown", note="The cluster has not answered yet.")
        found = Traces()
        try:
            found = traces.look(self._session, self._run.direct, "start")
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
        if found.job_ids:
            return self._submitted(found.job_ids, found)
        if found.withdrawn:
            return self._remember("withdrawn", note=NEVER_SENT)
        if found.exit_code is not None and not may_have_been_accepted(found.exit_code, found.words):
            return self._remember("refused", note=reason(found.exit_code, found.words))
        late = found.over and found.age_s > _TAKEN_WITHIN_S
        jobs = self._jobs()
        if late and not jobs:
            time.sleep(_ASK_AGAIN_AFTER_S)
            jobs = self._jobs()
        if jobs:
            return self._submitted(jobs, found)
        if late:
            return self._remember("withdrawn", note=f"{NEVER_TAKEN} {_sbatch_said(found)}".strip())
        return self._remember("unknown", note=_open_question(found))

    def _wait(self, found: Traces) -> Traces:
        """Look until the submission is settled or the time is up; the session mends a broken line meanwhile.

        A command that was lost on the way is sent again: who claims the submission first is the only one to do it.
        """
        until = time.monotonic() + _ANSWER_WITHIN_S
        pause = _FIRST_PAUSE_S
        while not found.settled and time.monotonic() < until:
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)
            try:
                found = traces.look(self._session, self._run.direct, "start")
            except (Disconnected, DeadlinePassed, Unreachable):
                if self._session.state == "closed":
                    raise
        return found

    def _jobs(self) -> tuple[str, ...]:
        return tuple(job.id for job in find_jobs(self._session, self._run.job_name))

    def _submitted(self, job_ids: tuple[str, ...], found: Traces) -> Run:
        return self._remember("submitted", job_ids=job_ids, submitted_at=time.time() - found.age_s)

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


def _open_question(found: Traces) -> str:
    known = "No job of its name is known to Slurm yet."
    if found.over:
        return f"{known} sbatch ended without an answer; Slurm may still take it. {_sbatch_said(found)}".strip()
    if found.owner:
        return f"{known} sbatch was started by {found.owner}, and has not answered."
    return f"{known} The connection broke while the submission was on its way."


def _sbatch_said(found: Traces) -> str:
    return "" if found.exit_code is None else f"sbatch said: {reason(found.exit_code, found.words)}"
