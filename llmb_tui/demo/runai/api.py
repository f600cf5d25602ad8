"""`Api`: the control plane's endpoints, as far as the program uses them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from llmb_tui.demo.runai import documents, facts
from llmb_tui.demo.runai.creation import REQUESTS, is_uuid, problems
from llmb_tui.demo.runai.documents import Document
from llmb_tui.demo.runai.https import Request, Response, json_response
from llmb_tui.demo.runai.tokens import Tokens
from llmb_tui.demo.runai.workload import Workload
from llmb_tui.demo.runai.workloads import NameTakenError, Workloads

_KIND = f"(?P<kind>{'|'.join(REQUESTS)})"
_LIMIT, _MOST = 50, 500
"""Number of items in an answer: default and maximum."""
_PAGE, _FILTERED = {"offset", "limit"}, {"offset", "limit", "filterBy"}
_FILTER = re.compile(r"(\w+)==(.+)")


class _RefusedError(Exception):
    """The request is answered by an error of the API."""

    def __init__(self, status: int, message: str, **more: object) -> None:
        super().__init__(message)
        self.response = json_response(status, {"code": status, "message": message, **more})


class Api:
    """All endpoints, for clients with a token."""

    def __init__(self, tokens: Tokens, workloads: Workloads) -> None:
        self._tokens, self._workloads = tokens, workloads
        ours, item = rf"/clusters/{facts.CLUSTER}", r"/api/v1/workloads/(?P<id>[^/]+)"
        asset = "/api/v1/asset"
        of_kind = rf"/api/v1/workloads/{_KIND}/(?P<id>[^/]+)"
        routes: tuple[tuple[str, str, Callable[..., Response], set[str]], ...] = (
            ("GET", "/api/v1/org-unit/projects", self._projects, _FILTERED),
            ("GET", f"/api/v1{ours}", lambda _: json_response(200, documents.cluster()), set()),
            ("GET", f"/api/v1{ours}/nodes", lambda r: _page(r, "nodes", documents.nodes(), following=False), _PAGE),
            ("GET", f"/v1/k8s{ours}/node-pools", lambda _: json_response(200, documents.node_pools()), set()),
            (
                "GET",
                f"{asset}/datasource/pvc",
                lambda r: _assets(r, documents.claims()),
                {"projectId", "statusInfo"},
            ),
            ("GET", f"{asset}/credentials", lambda r: _assets(r, documents.credentials()), {"projectId"}),
            ("GET", "/api/v1/workloads", self._list, {*_FILTERED, "deleted", "sortBy", "sortOrder"}),
            ("POST", f"/api/v1/workloads/{_KIND}", self._create, set()),
            ("DELETE", of_kind, self._delete, set()),
            ("POST", f"{of_kind}/(?P<verb>suspend|resume)", self._switch, set()),
            ("GET", item, self._workload, set()),
            ("GET", f"{item}/events", self._events, {"limit", "sortOrder"}),
            ("GET", f"{item}/pods", self._pods, {*_PAGE, "deleted"}),
        )
        self._routes = [(method, re.compile(path), answer, known) for method, path, answer, known in routes]

    def respond(self, request: Request) -> Response:
        """Answer a request."""
        try:
            if (request.method, request.path) == ("POST", "/api/v1/token"):
                return self._token(request)
            if not self._tokens.is_valid(request.bearer):
                raise _RefusedError(401, "Issuer is not familiar.")
            for method, path, answer, known in self._routes:
                match = path.fullmatch(request.path)
                if match and method == request.method:
                    if unknown := sorted(request.query.keys() - known):
                        raise _RefusedError(400, f"{', '.join(unknown)} of {request.path} is not simulated")
                    return answer(request, **match.groupdict())
            raise _RefusedError(404, f"{request.method} {request.path} is not found")
        except _RefusedError as refused:
            return refused.response

    def _token(self, request: Request) -> Response:
        body = _body(request)
        try:
            granted = self._tokens.grant(body)
        except ValueError as problem:
            raise _RefusedError(400, str(problem)) from None
        if granted is None:
            raise _RefusedError(401, "The application id or its secret is wrong.")
        return json_response(200, granted)

    def _projects(self, request: Request) -> Response:
        project = documents.project(self._workloads.allocated(), self._workloads.limits)
        return _page(request, "projects", [project])

    def _list(self, request: Request) -> Response:
        now = self._workloads.clock()
        workloads = self._workloads.all(deleted=request.query.get("deleted") == "true")
        named = re.search(r"(?:^|,)name==([^,]+)", request.query.get("filterBy", ""))
        if named:  # the usual request; filtering first saves the documents of hundreds of workloads
            workloads = [workload for workload in workloads if workload.name == named[1]]
        return _page(request, "workloads", [documents.workload(workload, workload.now(now)) for workload in workloads])

    def _create(self, request: Request, kind: str) -> Response:
        body = _body(request)
        wrong = sorted(problems(kind, body))
        if wrong:
            issues = [{"field": name, "details": text} for name, text in wrong]
            text = "; ".join(f"{name}: {why}" for name, why in wrong)
            raise _RefusedError(400, f"Bad submission request: {text}", complianceIssues=issues)
        if body["projectId"] != facts.PROJECT_ID:
            raise _RefusedError(403, "You do not have sufficient permissions.")
        if body["clusterId"] != facts.CLUSTER:
            raise _RefusedError(400, f"cluster {body['clusterId']} is not the project's cluster")
        try:
            workload = self._workloads.create(kind, body)
        except NameTakenError:
            raise _RefusedError(409, "Resource with this name already exists") from None
        return json_response(202, documents.submitted(workload))

    def _delete(self, _: Request, kind: str, id: str) -> Response:  # noqa: A002 - the contract's word
        self._workloads.delete(self._find_active(id, kind).id)
        return _accepted()

    def _switch(self, _: Request, kind: str, id: str, verb: str) -> Response:  # noqa: A002
        change = self._workloads.suspend if verb == "suspend" else self._workloads.resume
        change(self._find_active(id, kind).id)
        return _accepted()

    def _workload(self, _: Request, id: str) -> Response:  # noqa: A002
        workload = self._find(id)
        return json_response(200, documents.workload(workload, workload.now(self._workloads.clock())))

    def _events(self, request: Request, id: str) -> Response:  # noqa: A002
        if request.query.get("sortOrder", "desc") != "desc":
            raise _RefusedError(400, "events in another order than desc are not simulated")
        workload = self._find(id)
        events = workload.events(workload.now(self._workloads.clock()))
        return _page(request, "events", [documents.event(event, workload) for event in events])

    def _pods(self, request: Request, id: str) -> Response:  # noqa: A002
        workload = self._find(id)
        now = workload.now(self._workloads.clock())
        has_wanted_pods = workload.has_pods(now) is not (request.query.get("deleted") == "true")
        return _page(request, "pods", documents.pods(workload, now) if has_wanted_pods else [])

    def _find(self, identity: str) -> Workload:
        if not is_uuid(identity):
            raise _RefusedError(400, f"{identity} is not a UUID")
        workload = self._workloads.find(identity)
        if workload is None:
            raise _RefusedError(404, "Resource id not found.")
        return workload

    def _find_active(self, identity: str, kind: str) -> Workload:
        workload = self._find(identity)
        if workload.kind != kind or workload.now(self._workloads.clock()) >= workload.deleted:
            raise _RefusedError(404, "Resource id not found.")
        return workload


def _accepted() -> Response:
    return json_response(202, {"code": 202, "message": "Request has been accepted."})


def _body(request: Request) -> Document:
    try:
        body = json.loads(request.body)
    except ValueError as problem:
        raise _RefusedError(400, f"The body is not JSON: {problem}") from None
    if not isinstance(body, dict):
        raise _RefusedError(400, "The body is not an object")
    return body


def _assets(request: Request, items: list[Document]) -> Response:
    """Assets of a project, with their status only if requested."""
    project, hidden = request.query.get("projectId"), {"status"} if request.query.get("statusInfo") != "true" else set()
    mine = [document for document in items if str(document["meta"]["projectId"]) == project]
    return json_response(
        200, {"entries": [{name: document[name] for name in document.keys() - hidden} for document in mine]}
    )


def _page(request: Request, name: str, items: list[Document], *, following: bool = True) -> Response:
    """Requested part of a list; `following` adds the start of the next part."""
    for text in filter(None, request.query.get("filterBy", "").split(",")):
        match = _FILTER.fullmatch(text)
        if match is None or (items and match[1] not in items[0]):
            raise _RefusedError(400, f"filterBy: {text!r} is not FIELD==VALUE")
        items = [document for document in items if str(document[match[1]]) == match[2]]
    offset, limit = (_number(request, key, usual) for key, usual in (("offset", 0), ("limit", _LIMIT)))
    if not 1 <= limit <= _MOST:
        raise _RefusedError(400, f"limit must be 1 to {_MOST}")
    more = {"next": offset + limit} if following and offset + limit < len(items) else {}
    return json_response(200, {name: items[offset : offset + limit], **more})


def _number(request: Request, key: str, usual: int) -> int:
    text = request.query.get(key, str(usual))
    if not text.isdecimal():
        raise _RefusedError(400, f"{key} must be a number")
    return int(text)
