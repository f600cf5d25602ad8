"""`submit` and `reconcile`: one intent, at most one job, and no job that is not known here.

What is intended is on the local disk before anything happens. On the cluster `remote/submit.sh` runs detached, and the
files that it leaves (`traces.py`) say what happened, however often the line was cut. Where they do not, the run is
`unknown`, and only a look at the cluster changes that: nothing is ever submitted a second time.
"""

from __future__ import annotations

import time
from dataclasses import replace
from importlib import resources

from llmb_tui.cluster.failures import DeadlinePassed, Disconnected, Unreachable
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm import find_jobs
from llmb_tui.errors import Trouble
from llmb_tui.launch.refusal import NEVER_SENT, may_have_been_accepted, reason, refusal
from llmb_tui.launch.run import Run, Submission
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.traces import WITHDRAWN, Traces, look
from llmb_tui.store.journal import Journal
from llmb_tui.text import clean

_ANSWER_WITHIN_S = 90.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0
_NOT_INSTALLED = 3

# Arguments: container image, number of folders, the folders, then pairs of (installed file, where it is copied to).
_PREPARE = f"""
[ -s "$1" ] || {{ echo "$1" >&2; exit {_NOT_INSTALLED}; }}
folders=$2
shift 2
while [ "$folders" -gt 0 ]; do
    mkdir -p "$1" || exit 1
    shift
    folders=$((folders - 1))
done
while [ $# -gt 0 ]; do
    [ -s "$1" ] || {{ echo "$1" >&2; exit {_NOT_INSTALLED}; }}
    cp "$1" "$2.$$" && mv -f "$2.$$" "$2" || exit 1
    shift 2
done
"""
_START = 'nohup sh "$1" "$2" "$3" </dev/null >/dev/null 2>&1 &'


def submit(session: Session, runs: Runs, journal: Journal, run: Run, script: str) -> Run:
    """Submit a run, at most once however often this is called with it; answers with the run as it then is.

    `unknown` means that the answer was lost: `reconcile` settles it later. Raises Trouble when Slurm refuses the job,
    and for what prevents the submission before it begins: the run stays `intended`, and may be submitted again.
    """
    with runs.lock(run.id):
        if runs.has(run.id):
            run = runs.load(run.id)
        submission = _Submission(session, runs, journal, run)
        if run.submission == "intended":
            runs.save(run)
            runs.save_script(run.id, script)
            journal.append("intent", run=run.id, cluster=run.cluster, job_name=run.spec.job_name)
            submission.copy(script)
            run = submission.begin()
        elif run.submission == "unknown":
            run = submission.settle(look(session, submission.folder))
    if run.submission == "refused":
        raise refusal(run.note)
    return run


def reconcile(session: Session, runs: Runs, journal: Journal, run: Run) -> Run:
    """Settle a run that is `unknown` by what the cluster says; others stay as they are.

    A submission that has not begun by now is withdrawn on the cluster, so that it never will: the run is then
    `refused`. A run that another thread or process is just submitting is left alone. Raises Trouble when the cluster
    cannot be asked.
    """
    with runs.lock(run.id, wait=False) as mine:
        run = runs.load(run.id)
        if not mine or run.submission != "unknown":
            return run
        submission = _Submission(session, runs, journal, run)
        return submission.settle(look(session, submission.folder, withdraw=True))


class _Submission:
    """One run on its way to Slurm, while its lock is held."""

    def __init__(self, session: Session, runs: Runs, journal: Journal, run: Run) -> None:
        self._session = session
        self._runs = runs
        self._journal = journal
        self._run = run
        self.folder = f"{run.spec.experiment_dir}/submit"
        """Folder on the cluster for the traces of the submission."""
        # Where NeMo-Run would put it.
        self._script_path = f"{run.spec.experiment_dir}/{run.spec.task}_sbatch.sh"
        self._helper_path = f"{run.spec.experiment_dir}/submit.sh"

    def copy(self, script: str) -> None:
        """Put everything that the job needs into the run's folder on the cluster. May be repeated."""
        spec = self._run.spec
        copies = {f"{spec.task_dir}/{below}": source for source, below in spec.copies}
        files = {f"{spec.task_dir}/{below}": text for below, text in spec.files}
        # NeMo-Run starts every task in code/.
        folders = {self.folder, f"{spec.task_dir}/code"} | {path.rpartition("/")[0] for path in (*copies, *files)}
        pairs = [part for target, source in copies.items() for part in (source, target)]
        done = self._session.run_script(_PREPARE, [spec.container_image, str(len(folders)), *sorted(folders), *pairs])
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
        self._session.write_file(self._script_path, script.encode())
        helper = resources.files("llmb_tui.remote").joinpath("submit.sh").read_bytes()
        self._session.write_file(self._helper_path, helper)

    def begin(self) -> Run:
        """Start the submission on the cluster, and wait for what comes of it."""
        # On the disk before the command is sent: whatever happens to this process, the run is looked for afterwards.
        intended, self._run = self._run, self._remember("unknown", note="The cluster has not answered yet.")
        try:
            self._session.run_script(_START, [self._helper_path, self.folder, self._script_path])
        except Disconnected as broken:
            if not broken.may_have_run:
                self._runs.save(intended)
                raise
        except DeadlinePassed:
            pass  # it may have started: the traces will say
        try:
            return self.settle(self._wait())
        except Trouble as trouble:  # a cluster that cannot be asked leaves the run as it is: unknown
            return self._remember("unknown", note=f"The cluster could not be asked. {trouble}")

    def settle(self, traces: Traces) -> Run:
        """Remember what the traces mean. Raises Trouble when Slurm has to be asked and does not answer."""
        if traces.job_id:
            return self._remember("submitted", job_ids=(traces.job_id,))
        if traces.owner == WITHDRAWN:
            return self._remember("refused", note=NEVER_SENT)
        if traces.exit_code is not None and not may_have_been_accepted(traces.exit_code, traces.words):
            return self._remember("refused", note=reason(traces.exit_code, traces.words))
        jobs = find_jobs(self._session, self._run.spec.job_name)
        if jobs:
            return self._remember("submitted", job_ids=tuple(job.id for job in jobs))
        return self._remember("unknown", note=_open_question(traces))

    def _wait(self) -> Traces:
        """Look until the submission is settled or the time is up; the session mends a broken line meanwhile."""
        until = time.monotonic() + _ANSWER_WITHIN_S
        pause = _FIRST_PAUSE_S
        while True:
            try:
                traces = look(self._session, self.folder)
            except (Disconnected, DeadlinePassed, Unreachable):
                if self._session.state == "closed":
                    raise
                traces = Traces()
            if traces.settled or time.monotonic() > until:
                return traces
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)

    def _remember(self, submission: Submission, *, note: str = "", job_ids: tuple[str, ...] = ()) -> Run:
        at = time.time() if submission == "submitted" else None
        run = replace(self._run, submission=submission, note=note, job_ids=job_ids, submitted_at=at)
        self._journal.append(submission, run=run.id, note=note, job_ids=list(job_ids))
        self._runs.save(run)
        return run


def _open_question(traces: Traces) -> str:
    if traces.exit_code is not None:
        return f"No job of its name is known to Slurm, but sbatch said: {reason(traces.exit_code, traces.words)}"
    if traces.owner:
        return f"No job of its name is known to Slurm yet. sbatch was started by {traces.owner}, and has not answered."
    return "No job of its name is known to Slurm yet. The connection broke while the submission was on its way."
