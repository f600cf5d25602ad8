"""`LoginNodeDelivery`: submit from a login node, by a helper that no cut line stops.

The helper of `remote/` runs detached there, and the files that it leaves (`submission_status.py`) say what happened,
however often the line was cut. It outlives its SSH session, except where systemd-logind kills what a user leaves behind
(`KillUserProcesses=yes`): it is then over before it has answered, and Slurm is asked.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass

from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.failures import Disconnected, Unanswered, Unreachable
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session, login_node
from llmb_tui.cluster.slurm.client import partitions
from llmb_tui.cluster.slurm.partition import Partition
from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean
from llmb_tui.launch import submission_status
from llmb_tui.launch.delivery import Jobs, Outcome, Tell
from llmb_tui.launch.refusal import NEVER_SENT, NEVER_TAKEN, refusal
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import SlurmSpec
from llmb_tui.launch.submission_status import SubmissionDir, SubmissionStatus

# Exit codes of prepare.sh.
_NOT_INSTALLED, _NO_TOKEN = 3, 4
_PUT_DEADLINE_S = 60.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0

# A busy controller may take a job long after sbatch gave up waiting for its answer, and one that hung may answer a
# question before it has read what came earlier.
_TAKEN_WITHIN_S = 300.0
_ASK_AGAIN_AFTER_S = 10.0


@dataclass(frozen=True, slots=True)
class Preparation:
    """What is looked for, made and written on the cluster before anything is started. Paths are on the cluster."""

    needed: tuple[str, ...]
    """Directories, and files that must not be empty, that the install leaves."""
    folder: str
    """Folder of the run. Only the operator may write to it, and to all folders below it."""
    folders: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    """(path, text), in the order in which they are written."""
    links: tuple[tuple[str, str], ...] = ()
    """(path below the operator's home directory, link to it); an empty file instead where there is none."""
    copies: tuple[tuple[str, str], ...] = ()
    """(installed file, where it is copied to)."""
    token: str = ""
    """File below the home directory with the Hugging Face token, if it has to be there."""


class LoginNodeDelivery(ABC):
    """A `Delivery` by a helper on the login node: what a procedure says of one run is in a class of its own."""

    place: SubmissionDir
    """Where it leaves its traces."""
    program: str
    """What submits, by its name."""
    answers_within_s: float
    """How long an answer is waited for."""

    def __init__(self, cluster: Cluster, spec: SlurmSpec) -> None:
        """Raises Trouble (exit code 1) for a cluster without a login node."""
        self._session = login_node(cluster)
        self._asked = spec
        self._begun = SubmissionStatus()

    @abstractmethod
    def preparation(self, script: str) -> Preparation:
        """What has to be there first; `script` is what a person has agreed to."""

    @abstractmethod
    def answered(self, status: SubmissionStatus) -> bool:
        """True when a submission that is not over has said all that matters."""

    @abstractmethod
    def never(self, status: SubmissionStatus) -> str:
        """Why it is certain, without asking Slurm, that there is no job and never will be one; empty where it is not.

        That a submission was withdrawn is seen elsewhere.
        """

    @abstractmethod
    def jobs(self, status: SubmissionStatus) -> Jobs:
        """The jobs. Raises Trouble when Slurm has to be asked and does not answer."""

    @abstractmethod
    def may_still_come(self, status: SubmissionStatus) -> bool:
        """True when Slurm may still take a job that it does not know yet, of a submission that is over."""

    @abstractmethod
    def reason(self, status: SubmissionStatus) -> str:
        """Why it ended as it did, in its own words; empty where nothing says."""

    @abstractmethod
    def progress(self, status: SubmissionStatus) -> str:
        """What it is doing, one clean line; empty where nothing says."""

    def refusal(self, run: Run) -> Trouble:
        """What sbatch's words mean."""
        return refusal(run, self._asked, self._partitions)

    def sent_before(self) -> bool:
        """Whether there are traces of it, or jobs."""
        status = self._probe("look")
        return bool(status.owner) or self.jobs(status) != Jobs()

    def prepare(self, script: str) -> None:
        """Put into the run's folder what the job needs."""
        _prepare(self._session, self.preparation(script))

    def begin(self) -> None:
        """Start the helper; who claims the submission first is the only one to do it."""
        self._begun = self._probe("start")

    def answer(self, tell: Tell) -> Outcome:
        """Wait until it is settled or the time is up; the session mends a broken line meanwhile."""
        return self._outcome(self._wait(self._begun, tell))

    def look(self, *, withdraw: bool) -> Outcome:
        """What its traces mean."""
        return self._outcome(self._probe("withdraw" if withdraw else "look"))

    def _probe(self, how: submission_status.ProbeMode) -> SubmissionStatus:
        return submission_status.probe(self._session, self.place, how)

    def _outcome(self, status: SubmissionStatus) -> Outcome:
        """What the traces mean. Raises Trouble when Slurm has to be asked and does not answer."""
        if status.withdrawn:
            return Outcome("withdrawn", NEVER_SENT)
        if never := self.never(status):
            return Outcome("refused", never)
        late = status.over and status.age_s > _TAKEN_WITHIN_S
        jobs = self.jobs(status)
        if late and jobs == Jobs():
            time.sleep(_ASK_AGAIN_AFTER_S)
            jobs = self.jobs(status)
        if jobs.ids:
            return Outcome("submitted", jobs.note, jobs, status.age_s)
        return self._without_jobs(status, jobs.question, late=late)

    def _without_jobs(self, status: SubmissionStatus, question: str, *, late: bool) -> Outcome:
        reason = self.reason(status)
        words = f"{self.program} said: {reason}" if reason else ""
        if question:
            return Outcome("unknown", question)
        if status.over and not self.may_still_come(status):
            return Outcome("refused", reason)
        if late:
            return Outcome("withdrawn", f"{NEVER_TAKEN.format(self.program)} {words}".strip())
        return Outcome("unknown", self._open_question(status, words))

    def _wait(self, status: SubmissionStatus, tell: Tell) -> SubmissionStatus:
        """Look until the submission is settled or the time is up; a command that was lost on the way is sent again."""
        until = time.monotonic() + self.answers_within_s
        pause = _FIRST_PAUSE_S
        tell(self.progress(status))
        while not (status.over or status.withdrawn or self.answered(status)) and time.monotonic() < until:
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)
            try:
                status = self._probe("look" if status.owner else "start")
            except (Disconnected, Unanswered, Unreachable):
                if self._session.state == "closed":
                    raise
            tell(self.progress(status))
        return status

    def _open_question(self, status: SubmissionStatus, words: str) -> str:
        no_job = "No job of its name is known to Slurm yet."
        if status.over:
            return f"{no_job} {self.program} ended without an answer; Slurm may still take it. {words}".strip()
        if status.owner:
            says = self.progress(status)
            return f"{no_job} {self.program} was started by {status.owner}, and has not answered. {says}".strip()
        return f"{no_job} The connection broke while the submission was on its way."

    def _partitions(self) -> list[Partition]:
        """The cluster's partitions, to explain a refusal; none when it does not say."""
        try:
            return partitions(self._session)
        except Trouble:
            return []


def _prepare(session: Session, preparation: Preparation) -> None:
    """Make sure of everything that is wanted; nothing is started.

    Raises Trouble (exit code 1) where something is not installed or the token is not there, and where the folder of
    the run cannot be made.
    """
    install = session.profile.install_dir.rstrip("/")
    words = [
        install,
        preparation.folder,
        preparation.token,
        str(len(preparation.needed)),
        *preparation.needed,
    ]
    words += [str(len(preparation.folders)), *preparation.folders]
    words += [str(len(preparation.links)), *(part for link in preparation.links for part in link)]
    words += [part for copy in preparation.copies for part in copy]
    script = f"umask {session.profile.umask}\n" + remote_text("there.sh", "inside.sh", "prepare.sh")
    result = session.run_script(script, words)
    if result.exit_code == _NOT_INSTALLED:
        raise Trouble(
            f"Not installed on {session.profile.name}: {clean(result.stderr).strip()}",
            "The job would wait in the queue only to fail.",
            "Install the same selection first.",
            exit_code=1,
        )
    if result.exit_code == _NO_TOKEN:
        raise Trouble(
            f"There is no Hugging Face token on {session.profile.name}.",
            "The recipe's launch script needs one.",
            f"Give it among the keys: `llmb-tui secrets {session.profile.name} --give hugging-face` asks for it.",
            exit_code=1,
        )
    if result.exit_code:
        raise Trouble(
            f"The folder of the run could not be made: {preparation.folder}",
            clean(result.stderr).strip(),
            "Free some space, or choose an install directory that you may write to.",
        )
    put = remote_text("inside.sh", "put.sh")
    for path, text in preparation.files:
        data = text.encode()
        result = session.run_script(put, [install, path, str(len(data))], stdin=data, deadline_s=_PUT_DEADLINE_S)
        if result.exit_code:
            raise Trouble(
                f"Could not write {clean(path)} on {session.profile.name}.",
                clean(result.stderr).strip(),
                "Check the directory's permissions, and the free space and quota there.",
            )
