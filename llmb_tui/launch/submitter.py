"""`Submitter`: in what procedures differ when a run is submitted. What they share is in `launch.submit`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from llmb_tui.cluster.session import Session
from llmb_tui.errors import Trouble
from llmb_tui.launch.refusal import PartitionLookup
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import JobLog
from llmb_tui.launch.submission_status import SubmissionDir, SubmissionStatus


@dataclass(frozen=True, slots=True)
class Preparation:
    """What is looked for, made and written on the cluster before anything is started. Paths are on the cluster."""

    needed: tuple[str, ...]
    """Directories, and files that must not be empty, that the install leaves."""
    folder: str
    """Folder of the run; a refusal to make it names it."""
    folders: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    """(path, text), in the order in which they are written."""
    links: tuple[tuple[str, str], ...] = ()
    """(path below the operator's home directory, link to it); an empty file instead where there is none."""
    copies: tuple[tuple[str, str], ...] = ()
    """(installed file, where it is copied to)."""
    token: str = ""
    """File below the home directory with the Hugging Face token, if it has to be there."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """What is known of a run's jobs."""

    ids: tuple[str, ...] = ()
    """The one that is watched comes last."""
    log: JobLog | None = None
    """Where that one writes, if that was not known before."""
    question: str = ""
    """Why it cannot be said yet which they are, a sentence or two; empty where there are none, or they are known."""
    note: str = ""
    """What a person should know of a run that is submitted."""


class Submitter(Protocol):
    """How one run is submitted."""

    place: SubmissionDir
    """Where it leaves its traces."""
    program: str
    """What submits, by its name."""
    answers_within_s: float
    """How long an answer is waited for."""

    def preparation(self, script: str) -> Preparation:
        """What has to be there first; `script` is what a person has agreed to."""

    def answered(self, status: SubmissionStatus) -> bool:
        """True when a submission that is not over has said all that matters."""

    def never(self, status: SubmissionStatus) -> str:
        """Why it is certain, without asking Slurm, that there is no job and never will be one; empty where it is not.

        That a submission was withdrawn is seen elsewhere.
        """

    def jobs(self, session: Session, status: SubmissionStatus) -> Jobs:
        """The jobs. Raises Trouble when Slurm has to be asked and does not answer."""

    def may_still_come(self, status: SubmissionStatus) -> bool:
        """True when Slurm may still take a job that it does not know yet, of a submission that is over."""

    def reason(self, status: SubmissionStatus) -> str:
        """Why it ended as it did, in its own words; empty where nothing says."""

    def refusal(self, run: Run, partitions: PartitionLookup) -> Trouble:
        """The error for a person, from the `reason` that a refused run remembers; `partitions` are the cluster's."""

    def progress(self, status: SubmissionStatus) -> str:
        """What it is doing, one clean line; empty where nothing says."""
