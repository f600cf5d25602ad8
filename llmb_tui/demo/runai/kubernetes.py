"""`Kubernetes`: the cluster's Kubernetes API, as far as `kubectl logs` needs it."""

from __future__ import annotations

import hmac
import re
import secrets
import threading
from collections.abc import Iterator
from http import HTTPStatus
from itertools import chain

from llmb_tui.demo.runai import facts
from llmb_tui.demo.runai.https import Request, Response, json_response
from llmb_tui.demo.runai.workload import Workload
from llmb_tui.demo.runai.workloads import Workloads

_LOG = re.compile(r"/api/v1/namespaces/(?P<namespace>[^/]+)/pods/(?P<pod>[^/]+)/log")
LOOK_S = 0.05
"""Interval between looks at a followed log, real seconds."""
USER = "system:serviceaccount:llmb:reader"


class Kubernetes:
    """Logs of the pods, for clients with the token."""

    def __init__(self, workloads: Workloads) -> None:
        self.token = secrets.token_urlsafe(24)
        self.stopping = threading.Event()
        self._workloads = workloads

    def respond(self, request: Request) -> Response:
        """Answer a request."""
        if not hmac.compare_digest(request.bearer.encode(), self.token.encode()):
            return _status(401, "Unauthorized")
        match = _LOG.fullmatch(request.path)
        if match is None or request.method != "GET":
            return _status(404, "the server could not find the requested resource")
        namespace, pod = match["namespace"], match["pod"]
        if namespace != facts.NAMESPACE:
            what = f'cannot get resource "pods/log" in API group "" in the namespace "{namespace}"'
            return _status(403, f'pods "{pod}" is forbidden: User "{USER}" {what}')
        owners = [
            workload
            for workload in self._workloads.all()
            if pod in workload.pods and workload.has_pods(self._now(workload))
        ]
        if not owners:
            return _status(404, f'pods "{pod}" not found')
        return self._log(request, owners[0], pod)

    def _log(self, request: Request, workload: Workload, pod: str) -> Response:
        if unknown := request.query.keys() - {"container", "follow"}:
            return _status(400, f"the simulated Kubernetes does not offer {', '.join(sorted(unknown))}")
        name = request.query.get("container", workload.container)
        if name != workload.container:
            return _status(400, f"container {name} is not valid for pod {pod}")
        if self._now(workload) < workload.running_from:
            waits = {"BackOff": "trying and failing to pull image"}.get(
                (workload.container_error or ("",))[0], "waiting to start: ContainerCreating"
            )
            return _status(400, f'container "{name}" in pod "{pod}" is {waits}')
        printed = self._printed(workload, pod)
        if request.query.get("follow") == "true":
            pieces = self._follow(workload, pod, len(printed))
            return Response(200, map(_text, chain([printed], pieces)), "text/plain")
        return Response(200, _text(printed), "text/plain")

    def _follow(self, workload: Workload, pod: str, known: int) -> Iterator[list[str]]:
        """New lines behind the known ones, until the container ends."""
        attempt = workload.attempts
        while not self.stopping.wait(LOOK_S):
            now = self._now(workload)
            if workload.attempts != attempt:
                return
            lines = self._printed(workload, pod)
            yield lines[known:]
            known = len(lines)
            if not workload.holds(now) or not workload.has_pods(now):
                return
        raise ConnectionAbortedError  # a stopping server does not mark the end of the log

    def _printed(self, workload: Workload, pod: str) -> list[str]:
        """Lines that a pod's container has printed so far: only the first one has rank 0, which prints the steps."""
        lines = workload.log(self._now(workload))
        return lines if pod == workload.pods[0] else lines[:1]

    def _now(self, workload: Workload) -> float:
        return workload.now(self._workloads.clock())


def _status(code: int, message: str) -> Response:
    reason = HTTPStatus(code).phrase.replace(" ", "")
    document = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    return json_response(code, {**document, "reason": reason, "code": code})


def _text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
