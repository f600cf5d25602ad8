"""`RunaiOutput`: the log of a workload's first pod; `PodLog`: one pod's log, with the interface of a file.

Kubernetes only sends a log from its beginning, so each reader reads the known bytes again and compares them; after them
a following read returns new bytes. The node keeps the newest part of a long log (`containerLogMaxSize`, 10 MiB unless
the site has changed it). If the beginning is gone, the known bytes are searched for, and reading continues after them.
If they are not found, or found more than once, the log counts as another log.
"""

from __future__ import annotations

import contextlib
import time
from urllib.parse import quote, urlencode

from llmb_tui.cluster.failures import AnswerTooLongError, DeadlineError, DisconnectedError
from llmb_tui.cluster.remote_file import OutputUnreachableError, Proof, Sample, cksum
from llmb_tui.cluster.runai.api import RunaiApi
from llmb_tui.cluster.runai.failures import refusal
from llmb_tui.cluster.runai.https import Reply, Response
from llmb_tui.cluster.runai.kube import Kube
from llmb_tui.cluster.runai.values import first_pod
from llmb_tui.language.text import clean_line

WITHIN_S = 60.0
"""Time within which the known bytes must arrive, seconds."""
QUIET_S = 3.0
"""Longest pause, seconds, of a following read before it has returned the known bytes."""
_MOST_BYTES = 64 << 20
_LONGEST_REFUSAL = 1 << 16
_NOT_THERE = (400, 404)
"""Statuses for a container that has not started, and for a pod that does not exist."""
_NO_LOG = b"unable to retrieve container logs for "
"""Text that a node sends in place of a removed log."""
_SHORTEST = 32
"""Fewest equal bytes that identify the beginning of a log within the known bytes."""


class PodTail:
    """A `FileTail` of a pod's log."""

    fills_gap = False
    changed = False

    def __init__(self, proof: Proof | None, reply: Reply | None = None, rest: bytes = b"") -> None:
        self.proof = proof
        self._reply = reply
        self._rest = rest

    def read(self, timeout_s: float) -> bytes | None:
        """The next bytes, as `FileTail.read`."""
        if self._rest:
            rest, self._rest = self._rest, b""
            return rest
        return self._reply.read(timeout_s) if self._reply is not None else b""

    def close(self) -> None:
        """Close the connection."""
        if self._reply is not None:
            self._reply.close()


class _Beginning:
    """The beginning of a log, as far as it must be compared."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._until = sample.start + sample.length
        self._head = bytearray()
        self._block = bytearray()
        self.size = 0
        self.held = bytearray()
        """All bytes of a log that is shorter than the known bytes."""
        self.rest = b""
        """Bytes after the known bytes."""

    @property
    def is_short(self) -> bool:
        """True if it is shorter than the known bytes."""
        return self.size < self._until

    def add(self, data: bytes) -> None:
        """Add the next bytes. Raises AnswerTooLongError."""
        offset, self.size = self.size, self.size + len(data)
        head, start = self._sample.head, self._sample.start
        self._head += data[: max(0, head - offset)]
        self._block += data[max(0, start - offset) : max(0, self._until - offset)]
        if not self.is_short:
            self.rest += data[max(0, self._until - offset) :]
            self.held.clear()
        elif len(self.held) + len(data) > _MOST_BYTES:
            why = "Its known part did not arrive."
            raise AnswerTooLongError("The log is too long to be compared.", why, "The program tries again.")
        else:
            self.held += data

    @property
    def checksum(self) -> str:
        """Checksum of the sample, as far as it was read."""
        return cksum(bytes(self._head + self._block))


class PodLog:
    """The log of one container. A new pod of the same name has another log."""

    def __init__(self, kube: Kube, namespace: str, pod: str, container: str) -> None:
        self.path = f"{namespace}/{pod}"
        self._kube = kube
        self._container = container
        self._url = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(pod, safe='')}/log"

    def prove(self, sample: Sample, known: bytes) -> Proof | None:
        """Read the identity of the log, as `RemoteFile.prove`. Raises ApiError and the errors of `Kube.open`."""
        beginning = self._whole(sample)
        return None if beginning is None else self._proof(beginning, sample, known)[0]

    def tail(self, sample: Sample, offset: int, known: bytes) -> PodTail:
        """Start reading at an offset, as `RemoteFile.tail`. Raises the errors of `prove`."""
        reply = self._open(follow=True)
        if reply is None:
            return PodTail(None)
        try:
            beginning = _Beginning(sample)
            ends = time.monotonic() + WITHIN_S
            while beginning.size < offset and (piece := reply.read(QUIET_S)):
                beginning.add(piece)
                _require(ends)
            if not beginning.is_short:
                return PodTail(Proof(self.path, beginning.size, beginning.checksum), reply, beginning.rest)
        except BaseException:
            reply.close()
            raise
        reply.close()
        whole = self._whole(sample)
        if whole is None:
            return PodTail(None)
        proof, place = self._proof(whole, sample, known)
        if place is None:
            return PodTail(proof)
        return self._after(bytes(whole.held[:place]), proof)

    def _whole(self, sample: Sample) -> _Beginning | None:
        """Read the present log; None if there is none."""
        reply = self._open(follow=False)
        if reply is None:
            return None
        beginning = _Beginning(sample)
        ends = time.monotonic() + WITHIN_S
        with contextlib.closing(reply):
            while piece := reply.read(_require(ends)):
                beginning.add(piece)
                beginning.rest = b""
            if piece is None:
                raise _too_late(self.path)
        is_there = not beginning.is_short or (beginning.held and not beginning.held.startswith(_NO_LOG))
        return beginning if is_there else None

    def _proof(self, beginning: _Beginning, sample: Sample, known: bytes) -> tuple[Proof | None, int | None]:
        """Identity of a log and, if its beginning is gone, the offset at which the known bytes end."""
        if not beginning.is_short:
            return Proof(self.path, beginning.size, beginning.checksum), None
        place = end_of(known, bytes(beginning.held))
        if place is None:
            return Proof(self.path, beginning.size, beginning.checksum), None
        return Proof(self.path, sample.start + sample.length + beginning.size - place, "", is_rotated=True), place

    def _after(self, before: bytes, proof: Proof | None) -> PodTail:
        """Start a following read after the bytes `before`."""
        reply = self._open(follow=True)
        if reply is None:
            return PodTail(None)
        read = bytearray()
        try:
            ends = time.monotonic() + WITHIN_S
            while len(read) < len(before):
                piece = reply.read(min(QUIET_S, _require(ends)))
                if not piece:
                    raise _too_late(self.path)
                read += piece
            if not read.startswith(before):
                raise DisconnectedError(
                    f"The log {self.path} was rotated.", "This happened during reading.", "Try again."
                )
        except BaseException:
            reply.close()
            raise
        return PodTail(proof, reply, bytes(read[len(before) :]))

    def _open(self, *, follow: bool) -> Reply | None:
        """Open the log at its beginning; None if there is none."""
        query = {"container": self._container} | ({"follow": "true"} if follow else {})
        reply = self._kube.open(f"{self._url}?{urlencode(query)}")
        if reply.status == 200:
            return reply
        with contextlib.closing(reply):
            if reply.status in _NOT_THERE:
                return None
            body = b""
            ends = time.monotonic() + QUIET_S
            while len(body) < _LONGEST_REFUSAL and (piece := reply.read(ends - time.monotonic())):
                body += piece
            error = refusal("Kubernetes", f"read the log of {self.path}", Response(reply.status, reply.headers, body))
            if reply.status == 403:
                error.fix = "Ask for the permission to `get` `pods/log` in that namespace for the kubeconfig's user."
            elif 300 <= reply.status < 400:
                error.fix = (
                    "If the other address is yours, set it as `server` in the kubeconfig. No login was sent there."
                )
            raise error


class RunaiOutput:
    """A `JobOutput` and its only log: that of the present first pod, whose rank prints.

    Every start of a workload writes a new log in new pods. Without a kubeconfig, reading raises OutputUnreachableError.
    """

    one_for_all = True
    may_come_back = False  # Kubernetes reports reliably that a pod is gone

    def __init__(self, api: RunaiApi, name: str, workload_id: str) -> None:
        self.path = name
        self._api = api
        self._id = workload_id
        self._kube: Kube | None = None

    def starts(self) -> list[int]:
        """Return none: the starts have no separate logs."""
        return []

    def log(self, restart: int) -> RunaiOutput:  # noqa: ARG002 - there is one log for all
        """Return this object, the only log."""
        return self

    def other_output(self, most: int) -> bytes:  # noqa: ARG002 - part of `JobOutput`
        """Return nothing: there are no other files."""
        return b""

    def prove(self, sample: Sample, known: bytes) -> Proof | None:
        """Identity of the log; None if there is none. Raises the errors of `PodLog`, and OutputUnreachableError."""
        pod_log = self._pod_log()
        return pod_log.prove(sample, known) if pod_log else None

    def tail(self, sample: Sample, offset: int, known: bytes) -> PodTail:
        """Start reading at `offset`. Raises the errors of `prove`."""
        pod_log = self._pod_log()
        return pod_log.tail(sample, offset, known) if pod_log else PodTail(None)

    def _pod_log(self) -> PodLog | None:
        kube = self._kube = self._kube or self._open()
        workload = self._api.read_workloads([self._id]).get(self._id)
        pod = first_pod(self._api.pods(self._id))
        if workload is None or pod is None or not pod.container:
            return None
        return PodLog(kube, workload.namespace, pod.name, pod.container)

    def _open(self) -> Kube:
        profile = self._api.profile
        if profile.kubeconfig is None:
            raise OutputUnreachableError(
                f"The log of {clean_line(self.path)} cannot be read from here.",
                "Run:ai's API has no logs. The cluster's Kubernetes has them, but the profile has no kubeconfig.",
                f"Set `kubeconfig` in the profile, or look at the workload at https://{profile.place}/workloads.",
            )
        return Kube(profile.kubeconfig)


def end_of(known: bytes, log: bytes) -> int | None:
    """Offset at which the known bytes end in a log without its beginning; None if that is not certain."""
    position = log.find(known)
    if position >= 0:
        return position + len(known) if log.find(known, position + 1) < 0 else None
    if len(log) < _SHORTEST:
        return None
    places = []
    position = known.find(log[:_SHORTEST])
    while position >= 0:
        if log.startswith(known[position:]):
            places.append(len(known) - position)
        position = known.find(log[:_SHORTEST], position + 1)
    return places[0] if len(places) == 1 else None


def _require(ends: float) -> float:
    """Remaining seconds. Raises DeadlineError."""
    remaining_s = ends - time.monotonic()
    if remaining_s <= 0:
        raise _too_late("of the pod")
    return remaining_s


def _too_late(path: str) -> DeadlineError:
    return DeadlineError(
        f"The log {path} cannot be read.", "Kubernetes does not answer in time.", "The program tries again."
    )
