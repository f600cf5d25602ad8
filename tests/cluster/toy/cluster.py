"""`ToyCluster`: reads a queue, cancels its jobs and reads their logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from llmb_tui.cluster.cluster import Cluster, SchedulerError
from llmb_tui.cluster.failures import DisconnectedError, UnreachableError
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.link import LinkHealth
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.remote_file import Proof, Sample, cksum
from llmb_tui.language.states import LinkState
from tests.cluster.toy.profile import ToyProfile


class ToyCluster(Cluster):
    """A `Cluster` whose jobs are files: the text of `ID.job` is the state of a job."""

    profile: ToyProfile

    def __init__(self, profile: ToyProfile) -> None:
        self.profile = profile
        self.read_only = profile.read_only
        self._state: LinkState = "connecting"

    @property
    def state(self) -> LinkState:
        return self._state

    @property
    def health(self) -> LinkHealth:
        return LinkHealth(self._state, None, "")

    def connect(self, prompter: Prompter | None = None) -> None:  # noqa: ARG002 - it asks nothing
        if self._state == "closed":
            raise DisconnectedError("The toy was closed.", may_have_run=False)
        if not Path(self.profile.queue).is_dir():
            self._state = "lost"
            raise UnreachableError(f"There is no queue at {self.profile.queue}.", "", "Make that directory.")
        self._state = "live"

    def with_answer_cache(self) -> ToyCluster:
        return self

    def ping(self) -> None:
        self.connect()

    def close(self) -> None:
        self._state = "closed"

    def query_jobs(self, job_ids: Sequence[str]) -> dict[str, Job]:
        self.connect()
        files = {job_id: self._file(job_id) for job_id in job_ids}
        return {
            job_id: Job(job_id, "toy", file.read_text(), nodes=1, exit_code="0:0")
            for job_id, file in files.items()
            if file.exists()
        }

    def bad_nodes(self, node_list: str) -> tuple[str, ...]:  # noqa: ARG002 - it has no nodes
        return ()

    def cancel(self, job_id: str) -> bool:
        self.require_changes()
        if self.query_jobs([job_id])[job_id].finished:
            return False
        self._file(job_id).write_text("CANCELLED")
        return True

    def suspend(self, job_id: str) -> NoReturn:
        raise SchedulerError(f"The toy does not suspend job {job_id}.", exit_code=1)

    resume = suspend

    def accounting(self, job_ids: Sequence[str]) -> str:
        jobs = self.query_jobs(job_ids).values()
        return "".join(f"{job.id} {job.state}\n" for job in jobs)

    def output(self, log: JobLog, job_id: str) -> ToyOutput:
        return ToyOutput(Path(log.path(job_id)))

    def _file(self, job_id: str) -> Path:
        return Path(self.profile.queue, f"{job_id}.job")


class ToyOutput:
    """A `JobOutput` with one log."""

    one_for_all = True
    may_come_back = False

    def __init__(self, file: Path) -> None:
        self._file = file

    def starts(self) -> list[int]:
        return [0] if self._file.exists() else []

    def log(self, restart: int) -> ToyFile:  # noqa: ARG002 - every start writes to the same file
        return ToyFile(self._file)

    def other_output(self, most: int) -> bytes:  # noqa: ARG002 - it writes nothing else
        return b""


class ToyFile:
    """A `RemoteFile` on this machine."""

    def __init__(self, file: Path) -> None:
        self.path = str(file)
        self._file = file

    def prove(self, sample: Sample, known: bytes) -> Proof | None:  # noqa: ARG002 - it is never rotated
        if not self._file.exists():
            return None
        data = self._file.read_bytes()
        part = data[: sample.head] + data[sample.start : sample.start + sample.length]
        return Proof(str(self._file.stat().st_ino), len(data), cksum(part))

    def tail(self, sample: Sample, offset: int, known: bytes) -> ToyTail:
        proof = self.prove(sample, known)
        return ToyTail(proof, self._file.read_bytes()[offset:] if proof else b"")


class ToyTail:
    """A `FileTail` with the content of the file at its opening."""

    changed = False
    fills_gap = True

    def __init__(self, proof: Proof | None, rest: bytes) -> None:
        self.proof: Proof | None = proof
        self._rest = rest

    def read(self, timeout_s: float) -> bytes | None:  # noqa: ARG002 - all of it is here
        rest, self._rest = self._rest, b""
        return rest

    def close(self) -> None:
        """Do nothing, because nothing is open."""
