"""`RunaiOutput`: what a workload's first pod writes; `PodLog`: that log as a file, copied byte by byte by `Follower`.

Kubernetes gives a log from its beginning only, so what is known is read again and compared at each beginning; a
following read then gives what comes. The node keeps the newest part of a long log (`containerLogMaxSize`, 10 MiB unless
the site has changed it): where the beginning is gone, what is known is looked for, and the log goes on after it. Where
it is not found, or more than once, the log counts as another one.
"""

from __future__ import annotations

import contextlib
import time
from urllib.parse import quote, urlencode

from llmb_tui.cluster.failures import AnswerTooLong, DeadlinePassed, Disconnected
from llmb_tui.cluster.remote_file import OutOfReach, Proof, Sample, cksum
from llmb_tui.cluster.runai.api import RunaiApi
from llmb_tui.cluster.runai.failures import refusal
from llmb_tui.cluster.runai.https import Reply, WholeReply
from llmb_tui.cluster.runai.kube import Kube
from llmb_tui.cluster.runai.values import first_pod
from llmb_tui.language.text import clean_line

_WITHIN_S = 60.0
QUIET_S = 3.0
"""A following read that has given less than is known, and nothing for so long, is not waited for."""
_MOST_HELD = 64 << 20
_LONGEST_REFUSAL = 1 << 16
_NOT_THERE = (400, 404)
"""Statuses for a container that has not started, and for a pod that is not there (any more)."""
_NO_LOG = b"unable to retrieve container logs for "
"""What a node writes in place of a log that it has removed."""
_SHORTEST = 32
"""Bytes that have to be the same where a log begins within what is known."""


class PodTail:
    """A `FileTail` of a pod's log."""

    fills_gap = False
    changed = False

    def __init__(self, proof: Proof | None, reply: Reply | None = None, rest: bytes = b"") -> None:
        self.proof = proof
        self._reply = reply
        self._rest = rest

    def read(self, timeout_s: float) -> bytes | None:
        """As `FileTail.read`."""
        if self._rest:
            rest, self._rest = self._rest, b""
            return rest
        return self._reply.read(timeout_s) if self._reply is not None else b""

    def close(self) -> None:
        """End the connection."""
        if self._reply is not None:
            self._reply.close()


class _Beginning:
    """What was read of a log from its beginning on, as far as it has to be compared."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._until = sample.start + sample.length
        self._head = bytearray()
        self._block = bytearray()
        self.size = 0
        self.held = bytearray()
        """All of it, while it is shorter than what is known."""
        self.rest = b""
        """What follows what is known."""

    @property
    def is_short(self) -> bool:
        """Less than is known."""
        return self.size < self._until

    def add(self, data: bytes) -> None:
        """The next bytes. Raises AnswerTooLong."""
        began, self.size = self.size, self.size + len(data)
        head, start = self._sample.head, self._sample.start
        self._head += data[: max(0, head - began)]
        self._block += data[max(0, start - began) : max(0, self._until - began)]
        if not self.is_short:
            self.rest += data[max(0, self._until - began) :]
            self.held.clear()
        elif len(self.held) + len(data) > _MOST_HELD:
            raise AnswerTooLong("The log is too long to be compared.", "It did not come whole.", "It is tried again.")
        else:
            self.held += data

    @property
    def checksum(self) -> str:
        """Of the sample, as far as it is there."""
        return cksum(bytes(self._head + self._block))


class PodLog:
    """The log of one container. A pod that takes the place of another one of its name has another log."""

    def __init__(self, kube: Kube, namespace: str, pod: str, container: str) -> None:
        self.path = f"{namespace}/{pod}"
        self._kube = kube
        self._container = container
        self._url = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(pod, safe='')}/log"

    def prove(self, sample: Sample, known: bytes) -> Proof | None:
        """As `RemoteFile.prove`. Raises what `Kube.open` raises, and ApiTrouble."""
        begun = self._whole(sample)
        return None if begun is None else self._proof(begun, sample, known)[0]

    def tail(self, sample: Sample, offset: int, known: bytes) -> PodTail:
        """As `RemoteFile.tail`. Raises as `prove` does."""
        reply = self._open(follow=True)
        if reply is None:
            return PodTail(None)
        try:
            begun = _Beginning(sample)
            ends = time.monotonic() + _WITHIN_S
            while begun.size < offset and (piece := reply.read(QUIET_S)):
                begun.add(piece)
                _require(ends)
            if not begun.is_short:
                return PodTail(Proof(self.path, begun.size, begun.checksum), reply, begun.rest)
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
        """The log as it is now; None where there is none."""
        reply = self._open(follow=False)
        if reply is None:
            return None
        begun = _Beginning(sample)
        ends = time.monotonic() + _WITHIN_S
        with contextlib.closing(reply):
            while piece := reply.read(_require(ends)):
                begun.add(piece)
                begun.rest = b""
            if piece is None:
                raise _too_late(self.path)
        is_there = not begun.is_short or (begun.held and not begun.held.startswith(_NO_LOG))
        return begun if is_there else None

    def _proof(self, begun: _Beginning, sample: Sample, known: bytes) -> tuple[Proof | None, int | None]:
        """What it is; and where what is known ends in it, where its beginning is gone."""
        if not begun.is_short:
            return Proof(self.path, begun.size, begun.checksum), None
        place = end_of(known, bytes(begun.held))
        if place is None:
            return Proof(self.path, begun.size, begun.checksum), None
        return Proof(self.path, sample.start + sample.length + begun.size - place, "", is_rotated=True), place

    def _after(self, before: bytes, proof: Proof | None) -> PodTail:
        """A following read of which `before` was taken off."""
        reply = self._open(follow=True)
        if reply is None:
            return PodTail(None)
        read = b""
        try:
            while len(read) < len(before):
                piece = reply.read(QUIET_S)
                if not piece:
                    raise _too_late(self.path)
                read += piece
            if not read.startswith(before):
                raise Disconnected(f"The log {self.path} was rotated.", "It happened while it was read.", "Try again.")
        except BaseException:
            reply.close()
            raise
        return PodTail(proof, reply, read[len(before) :])

    def _open(self, *, follow: bool) -> Reply | None:
        """The log from its beginning; None where there is none."""
        query = {"container": self._container} | ({"follow": "true"} if follow else {})
        reply = self._kube.open(f"{self._url}?{urlencode(query)}")
        if reply.status == 200:
            return reply
        with contextlib.closing(reply):
            if reply.status in _NOT_THERE:
                return None
            body = b""
            while len(body) < _LONGEST_REFUSAL and (piece := reply.read(QUIET_S)):
                body += piece
            trouble = refusal(
                "Kubernetes", f"read the log of {self.path}", WholeReply(reply.status, reply.headers, body)
            )
            if reply.status == 403:
                trouble.fix = "Its administrators have to let the kubeconfig's user `get` `pods/log` in that namespace."
            raise trouble


class RunaiOutput:
    """A `JobOutput`, and its one log: of whichever pod is the first one now, where the rank is that prints.

    Every start of a workload writes anew, in pods of its own. Where Kubernetes cannot be asked, that is said.
    """

    one_for_all = True
    may_come_back = False  # who says that a pod is gone knows

    def __init__(self, api: RunaiApi, name: str, workload_id: str) -> None:
        self.path = name
        self._api = api
        self._id = workload_id
        self._kube: Kube | None = None

    def starts(self) -> list[int]:
        """None that would be known apart."""
        return []

    def log(self, restart: int) -> RunaiOutput:  # noqa: ARG002 - there is one log for all
        """It."""
        return self

    def beside(self, most: int) -> bytes:  # noqa: ARG002 - a `JobOutput`'s
        """It writes nothing else."""
        return b""

    def prove(self, sample: Sample, known: bytes) -> Proof | None:
        """What the log is; None while there is none. Raises as `PodLog` does, and OutOfReach without a kubeconfig."""
        pod_log = self._pod_log()
        return pod_log.prove(sample, known) if pod_log else None

    def tail(self, sample: Sample, offset: int, known: bytes) -> PodTail:
        """The bytes from `offset` on. Raises as `prove` does."""
        pod_log = self._pod_log()
        return pod_log.tail(sample, offset, known) if pod_log else PodTail(None)

    def _pod_log(self) -> PodLog | None:
        kube = self._kube = self._kube or self._open()
        workload = self._api.look([self._id]).get(self._id)
        pod = first_pod(self._api.pods(self._id))
        if workload is None or pod is None or not pod.container:
            return None
        return PodLog(kube, workload.namespace, pod.name, pod.container)

    def _open(self) -> Kube:
        profile = self._api.profile
        if profile.kubeconfig is None:
            raise OutOfReach(
                f"The log of {clean_line(self.path)} cannot be read from here.",
                "Run:ai's API gives no logs; the cluster's Kubernetes does, and the profile names no kubeconfig.",
                f"Name one in the profile, or look at the workload at https://{profile.place}/workloads.",
            )
        return Kube(profile.kubeconfig)


def end_of(known: bytes, log: bytes) -> int | None:
    """Where what is known ends in a log whose beginning is gone; None where that is not certain."""
    at = log.find(known)
    if at >= 0:
        return at + len(known) if log.find(known, at + 1) < 0 else None
    if len(log) < _SHORTEST:
        return None
    places = []
    at = known.find(log[:_SHORTEST])
    while at >= 0:
        if log.startswith(known[at:]):
            places.append(len(known) - at)
        at = known.find(log[:_SHORTEST], at + 1)
    return places[0] if len(places) == 1 else None


def _require(ends: float) -> float:
    """Seconds that are left. Raises DeadlinePassed."""
    left = ends - time.monotonic()
    if left <= 0:
        raise _too_late("of the pod")
    return left


def _too_late(path: str) -> DeadlinePassed:
    return DeadlinePassed(
        f"The log {path} cannot be read.", "Kubernetes does not answer in time.", "It is tried again."
    )
