"""`LoginNodeDelivery`: submit from a login node, by a helper that survives a broken connection.

A helper of `remote/` runs detached on the login node, and the files that it writes (`submission_status.py`) record what
happened, however often the connection breaks. It outlives its SSH session, unless systemd-logind kills the user's
processes (`KillUserProcesses=yes`): the helper then ends without an answer, and Slurm is asked.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass

from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.failures import DisconnectedError, NoAnswerError, UnreachableError
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session, login_node
from llmb_tui.cluster.slurm.client import partitions
from llmb_tui.cluster.slurm.partition import Partition
from llmb_tui.errors import LlmbError, remedy_in
from llmb_tui.language.text import clean
from llmb_tui.launch import submission_status
from llmb_tui.launch.delivery import Jobs, OnStatus, Outcome
from llmb_tui.launch.refusal import NEVER_SENT, NEVER_TAKEN, refusal
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import SlurmSpec
from llmb_tui.launch.submission_status import SubmissionDir, SubmissionStatus

# Exit codes of prepare.sh.
_NOT_INSTALLED, _NO_TOKEN = 3, 4
_PUT_DEADLINE_S = 60.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0

TAKEN_WITHIN_S = 300.0
"""A busy controller may accept a job for so long after sbatch stopped waiting for its answer, seconds."""
ASK_AGAIN_AFTER_S = 10.0
"""Pause before the last query, seconds: a controller that hung may answer it before it has read earlier requests."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """Items that are checked, created and written on the cluster before the start. Paths are on the cluster."""

    needed: tuple[str, ...]
    """Directories and non-empty files that the install has created."""
    folder: str
    """Folder of the run. Only the operator may write to it and to the folders below it."""
    folders: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    """(path, text), in the order in which they are written."""
    links: tuple[tuple[str, str], ...] = ()
    """(path below the operator's home directory, link to it); an empty file if the path is missing."""
    copies: tuple[tuple[str, str], ...] = ()
    """(installed file, path of its copy)."""
    token: str = ""
    """File below the home directory with the Hugging Face token, if the run needs it."""


class LoginNodeDelivery(ABC):
    """A `Delivery` by a helper on the login node; a procedure's subclass has what depends on the procedure."""

    place: SubmissionDir
    """Folder with the traces of the submission."""
    program: str
    """Name of the program that submits, such as `sbatch`."""
    answers_within_s: float
    """Longest wait for an answer, in seconds."""

    def __init__(self, cluster: Cluster, spec: SlurmSpec) -> None:
        """Raises LlmbError (exit code 1) if the cluster has no login node."""
        self._session = login_node(cluster)
        self._slurm_spec = spec
        self._started = SubmissionStatus()

    @abstractmethod
    def preparation(self, script: str) -> Preparation:
        """Everything that must exist before the start; `script` is the confirmed script."""

    @abstractmethod
    def has_answered(self, status: SubmissionStatus) -> bool:
        """True if an unfinished submission has already reported everything that matters."""

    @abstractmethod
    def never_submitted(self, status: SubmissionStatus) -> str:
        """Why it is certain, without asking Slurm, that there will never be a job; empty if it is not certain.

        A withdrawn submission is detected elsewhere.
        """

    @abstractmethod
    def jobs(self, status: SubmissionStatus) -> Jobs:
        """The jobs of the submission. Raises LlmbError if Slurm must be asked and does not answer."""

    @abstractmethod
    def may_still_be_accepted(self, status: SubmissionStatus) -> bool:
        """True if Slurm may still accept a job of a submission that has ended, though it does not know the job yet."""

    @abstractmethod
    def reason(self, status: SubmissionStatus) -> str:
        """Why the submission ended as it did, in the program's own words; empty if nothing explains it."""

    @abstractmethod
    def progress(self, status: SubmissionStatus) -> str:
        """Current activity of the submission, one clean line; empty if unknown."""

    def refusal(self, run: Run) -> LlmbError:
        """The error that explains the rejection by sbatch."""
        return refusal(run, self._slurm_spec, self._partitions)

    def was_sent(self) -> bool:
        """True if the submission left traces or jobs."""
        status = self._probe("look")
        return bool(status.owner) or self.jobs(status) != Jobs()

    def prepare(self, script: str) -> None:
        """Copy everything that the job needs into the run's folder."""
        prepare(self._session, self.preparation(script))

    def begin(self) -> None:
        """Start the helper; only the first process to claim the submission performs it."""
        self._started = self._probe("start")

    def answer(self, on_progress: OnStatus) -> Outcome:
        """Wait until the outcome is known or the time is up; meanwhile the session reconnects if needed."""
        return self._outcome(self._wait(self._started, on_progress))

    def look_up(self, *, withdraw: bool) -> Outcome:
        """The outcome by the traces on the cluster."""
        return self._outcome(self._probe("withdraw" if withdraw else "look"))

    def _probe(self, how: submission_status.ProbeMode) -> SubmissionStatus:
        return submission_status.probe(self._session, self.place, how)

    def _outcome(self, status: SubmissionStatus) -> Outcome:
        """The outcome by the traces. Raises LlmbError if Slurm must be asked and does not answer."""
        if status.withdrawn:
            return Outcome("withdrawn", NEVER_SENT)
        if never := self.never_submitted(status):
            return Outcome("refused", never)
        late = status.has_ended and status.age_s > TAKEN_WITHIN_S
        jobs = self.jobs(status)
        if late and jobs == Jobs():
            time.sleep(ASK_AGAIN_AFTER_S)
            jobs = self.jobs(status)
        if jobs.ids:
            return Outcome("submitted", jobs.note, jobs, status.age_s)
        return self._without_jobs(status, jobs.question, late=late)

    def _without_jobs(self, status: SubmissionStatus, question: str, *, late: bool) -> Outcome:
        reason = self.reason(status)
        words = f"{self.program} said: {reason}" if reason else ""
        if question:
            return Outcome("unknown", question)
        if status.has_ended and not self.may_still_be_accepted(status):
            return Outcome("refused", reason)
        if late:
            return Outcome("withdrawn", f"{NEVER_TAKEN.format(self.program)} {words}".strip())
        return Outcome("unknown", self._open_question(status, words))

    def _wait(self, status: SubmissionStatus, on_progress: OnStatus) -> SubmissionStatus:
        """Poll until the outcome is known or the time is up; a lost start command is sent again."""
        until = time.monotonic() + self.answers_within_s
        pause = _FIRST_PAUSE_S
        on_progress(self.progress(status))
        while not (status.has_ended or status.withdrawn or self.has_answered(status)) and time.monotonic() < until:
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)
            try:
                status = self._probe("look" if status.owner else "start")
            except (DisconnectedError, NoAnswerError, UnreachableError):
                if self._session.state == "closed":
                    raise
            on_progress(self.progress(status))
        return status

    def _open_question(self, status: SubmissionStatus, words: str) -> str:
        no_job = "Slurm knows no job of this name yet."
        if status.has_ended:
            return f"{no_job} {self.program} ended without an answer; Slurm may still accept the job. {words}".strip()
        if status.owner:
            activity = self.progress(status)
            return f"{no_job} {status.owner} started {self.program}, which has not answered. {activity}".strip()
        return f"{no_job} The connection broke during the submission."

    def _partitions(self) -> list[Partition]:
        """Partitions of the cluster, to explain a rejection; empty if Slurm does not answer."""
        try:
            return partitions(self._session)
        except LlmbError:
            return []


def prepare(session: Session, preparation: Preparation) -> None:
    """Prepare everything that the run needs, without starting anything.

    Raises LlmbError (exit code 1) if something is not installed or the token is missing, and if the run's folder cannot
    be made.
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
        raise LlmbError(
            f"Not installed on {session.profile.name}: {clean(result.stderr).strip()}",
            "The job would wait in the queue and then fail.",
            "Install the same selection first.",
            exit_code=1,
        )
    if result.exit_code == _NO_TOKEN:
        raise LlmbError(
            f"{session.profile.name} has no Hugging Face token.",
            "The recipe's launch script needs one.",
            f"Add it: `llmb-tui secrets {session.profile.name} --give hugging-face` asks for it.",
            exit_code=1,
        )
    if result.exit_code:
        raise LlmbError(
            f"Could not create the run's folder {preparation.folder}.",
            clean(result.stderr).strip(),
            remedy_in(result.stderr),
        )
    put = remote_text("inside.sh", "put.sh")
    for path, text in preparation.files:
        data = text.encode()
        result = session.run_script(put, [install, path, str(len(data))], stdin=data, deadline_s=_PUT_DEADLINE_S)
        if result.exit_code:
            raise LlmbError(
                f"Could not write {clean(path)} on {session.profile.name}.",
                clean(result.stderr).strip(),
                remedy_in(result.stderr),
            )
