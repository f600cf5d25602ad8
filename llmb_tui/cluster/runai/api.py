"""`RunaiApi`: requests to Run:ai. Each has one deadline, and is repeated only if that is safe."""

from __future__ import annotations

import email.utils
import json
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from pydantic import BaseModel, ValidationError

from llmb_tui.cluster.cluster import AnswerCache
from llmb_tui.cluster.failures import DisconnectedError, NoAnswerError, UnreachableError
from llmb_tui.cluster.job import TERMINAL_STATES
from llmb_tui.cluster.runai.failures import ApiError, malformed, refusal
from llmb_tui.cluster.runai.https import HttpsServer, Response, WrongServerError, bundle_of, trusting
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.cluster.runai.token import Token
from llmb_tui.cluster.runai.values import (
    POD_FIELDS,
    WORKLOAD_FIELDS,
    Claim,
    ClusterFacts,
    Credential,
    Event,
    Node,
    NodePool,
    Pod,
    Project,
    Workload,
    WorkloadKind,
    given,
    selected,
)
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line

T = TypeVar("T", bound=BaseModel)

WITHIN_S = 30.0
"""Longest time for a request with all its repetitions, seconds."""
LONGEST_ANSWER = 16 << 20

_PASSING = (429, 500, 502, 503, 504)
"""Statuses after which a read-only request is repeated."""
_NOT_DONE = (429,)
"""Statuses after which certainly nothing was done."""
_MAY_BE_DONE = (200, 408, *range(500, 600))
"""Statuses after which the request may have been done: a gateway that did not wait for the answer also sends them.
200: the answer was malformed."""
_TRIES = 4
FIRST_PAUSE_S = 0.5
"""Pause before the first repetition, seconds; each further pause is twice as long."""
_LONGEST_PAUSE_S = 10.0
_PAGE = 100
_MOST_PAGES = 20
_ALSO_DELETED: tuple[dict[str, str], ...] = ({}, {"deleted": "true"})
"""Queries for existing workloads, then for deleted ones."""
_JSON = {"Accept": "application/json", "Content-Type": "application/json"}


class RunaiApi(AnswerCache):
    """One control plane, with the permissions of one application. For use by any thread. Connects at the first request.

    All methods raise UnreachableError, DisconnectedError, DeadlineError, AnswerTooLongError, LoginNeededError,
    AuthenticationError and ApiError. `secret` is called at each login; it returns None if the application's secret is
    unknown.
    """

    def __init__(self, profile: RunaiProfile, secret: Callable[[], str | None], *, within_s: float = WITHIN_S) -> None:
        """Raises LlmbError if a file of certificates cannot be used."""
        self.profile = profile
        self.within_s = within_s
        """Deadline of a request with its repetitions, seconds."""
        self._server = HttpsServer(profile.base_url, trusting(bundle_of(), profile.ca_file))
        self._path = urlsplit(profile.base_url).path.rstrip("/")
        self._token = Token(self._server.name, profile.app_id, secret, self._grant)
        self.closed = threading.Event()
        """Set by `close`; waiting between repetitions ends with it."""
        self.skew_s: float | None = None
        """Seconds by which the server's clock is ahead of this machine's; None before the first answer."""

    @property
    def server_time(self) -> float:
        """Unix time by the server's clock; by this machine's before the first answer."""
        return time.time() + (self.skew_s or 0.0)

    def close(self) -> None:
        """Stop all waiting between repetitions permanently."""
        self.closed.set()

    def reach(self) -> None:
        """Check without a login that the server answers and has a trusted certificate."""
        self._server.reach(time.monotonic() + self.within_s)

    def log_in(self, *, is_new_secret: bool = False) -> None:
        """Request a token unless there is a valid one.

        A refused secret is not sent again, unless the user has entered it now (`is_new_secret`).
        """
        if is_new_secret:
            self._token.forget_refusal()
        self._token.value(time.monotonic() + self.within_s)

    def project(self) -> Project | None:
        """Find the profile's project; None if the application sees no project of that name."""
        query = {"filterBy": f"name=={self.profile.project}"}
        matches = self._listed(Project, "look up the project", "/org-unit/projects", "projects", query)
        return next((project for project in matches if project.name == self.profile.project), None)

    def cluster(self, cluster_id: str) -> ClusterFacts:
        """Read name and state of one cluster."""
        action = "look up the cluster"
        return self._checked(ClusterFacts, self._get(action, f"/clusters/{_word(cluster_id)}"), action)

    def node_pools(self, cluster_id: str) -> list[NodePool]:
        """List the node pools of a cluster. This part of the API is outside of the base URL."""
        action = "list the node pools"
        document = self._get(action, f"/v1/k8s/clusters/{_word(cluster_id)}/node-pools", base="")
        if not isinstance(document, list):
            raise malformed(self._server.name, action, "The answer is not a list")
        return [self._checked(NodePool, pool, action) for pool in document]

    def nodes(self, cluster_id: str) -> list[Node]:
        """List the nodes of a cluster, with their GPUs."""
        return list(self._listed(Node, "list the nodes", f"/clusters/{_word(cluster_id)}/nodes", "nodes"))

    def claims(self, project_id: str) -> list[Claim]:
        """List the volume claims of Run:ai that the project may mount."""
        query = {"projectId": project_id, "statusInfo": "true"}
        return self._first(Claim, "list the volume claims", "/asset/datasource/pvc", "entries", query)

    def credentials(self, project_id: str) -> list[Credential]:
        """List the credentials that the project may use."""
        query = {"projectId": project_id}
        return self._first(Credential, "list the credentials", "/asset/credentials", "entries", query)

    def create(self, kind: WorkloadKind, body: Mapping[str, Any]) -> str:
        """Create a workload by one request, and return its id. The body has its name, which must be unique.

        If the answer is lost, the name is looked up. The request is not sent again, because no contract says that
        Run:ai would refuse a second workload of the same name. Raises DisconnectedError if it is unknown whether the
        workload exists; after any other error it certainly does not exist.
        """
        action, name = "create the workload", str(body["name"])
        self.log_in()  # an error here comes before the request is sent
        try:
            return self._id_in(self._ask("POST", f"/workloads/{kind}", action, body=body), action)
        except LlmbError as error:
            failed = error
        refused = failed.status if isinstance(failed, ApiError) else None
        may_exist = isinstance(failed, (DisconnectedError, NoAnswerError)) or refused in _MAY_BE_DONE
        # A name in use is status 409, or 400 in the published contract.
        if not may_exist and refused not in (400, 409):
            raise failed
        try:
            workload = self.find(name)
        except LlmbError as error:
            raise self._unknown_outcome(name, failed) from error
        if workload is not None:
            return workload.id
        raise self._unknown_outcome(name, failed) if may_exist else failed

    def find(self, name: str) -> Workload | None:
        """Find the newest workload of this name, including deleted ones.

        It searches all projects, because the profile may name another project since the workload was created.
        """
        query = {"filterBy": f"name=={name}"}
        for deleted in _ALSO_DELETED:
            matches = self._listed(Workload, "look up a workload", "/workloads", "workloads", query | deleted)
            named = [workload for workload in matches if workload.name == name]
            if named:
                return max(named, key=lambda workload: workload.created_at)
        return None

    def read_workloads(self, ids: Collection[str]) -> dict[str, Workload]:
        """Read these workloads, by id, including deleted ones; an unknown workload is absent.

        Several workloads are read by one call for the profile's project. The others, and a single workload, are read
        one by one, and then searched for among the deleted ones.
        """
        wanted = set(ids)
        workloads = self._in_project(wanted, {"sortBy": "createdAt"}) if len(wanted) > 1 else {}
        # A workload of a former project, which this login may not see, must not hide the others.
        absent = (404,) if len(wanted) == 1 else (403, 404)
        for workload_id in wanted - workloads.keys():
            action = "look at workloads"
            try:
                workloads[workload_id] = self._checked(
                    Workload, self._get(action, f"/workloads/{_word(workload_id)}"), action
                )
            except ApiError as error:
                if error.status not in absent:
                    raise
        return workloads | self._in_project(wanted - workloads.keys(), {"sortBy": "deletedAt", "deleted": "true"})

    def _in_project(self, wanted: Collection[str], query: Mapping[str, str]) -> dict[str, Workload]:
        """Read these workloads from a list of the project, by id."""
        workloads: dict[str, Workload] = {}
        query = {**query, "sortOrder": "desc", "filterBy": f"projectName=={self.profile.project}"}
        for item in self._paged("look at workloads", "/workloads", "workloads", query) if wanted else ():
            if _id_of(item) in wanted:  # others are not validated: a malformed one must not hide these
                workload = self._checked(Workload, item, "look at workloads")
                workloads[workload.id] = workload
                if workloads.keys() == wanted:
                    break
        return workloads

    def events(self, workload_id: str) -> list[Event]:
        """List the newest events of a workload."""
        path, query = f"/workloads/{_word(workload_id)}/events", {"sortOrder": "desc", "limit": "50"}
        return self._first(Event, "look at a workload's events", path, "events", query)

    def pods(self, workload_id: str) -> list[Pod]:
        path = f"/workloads/{_word(workload_id)}/pods"
        return list(self._listed(Pod, "look at a workload's pods", path, "pods"))

    def record(self, workload_id: str) -> dict[str, Any] | None:
        """Record of an ended workload with its pods, to store; None until it has ended."""
        action, path = "look at a workload", f"/workloads/{_word(workload_id)}"
        document = self._get(action, path)
        if self._checked(Workload, document, action).state not in TERMINAL_STATES:
            return None
        for deleted in _ALSO_DELETED:
            if pods := [selected(pod, POD_FIELDS) for pod in self._paged(action, f"{path}/pods", "pods", deleted)]:
                return {**selected(document, WORKLOAD_FIELDS), "pods": pods}
        return selected(document, WORKLOAD_FIELDS)

    def suspend(self, kind: WorkloadKind, workload_id: str) -> None:
        """Suspend a workload: its nodes are released, and it can be resumed."""
        self._ask("POST", f"/workloads/{kind}/{_word(workload_id)}/suspend", "suspend the workload")

    def resume(self, kind: WorkloadKind, workload_id: str) -> None:
        """Resume a suspended workload."""
        self._ask("POST", f"/workloads/{kind}/{_word(workload_id)}/resume", "resume the workload")

    def delete(self, kind: WorkloadKind, workload_id: str) -> bool:
        """Delete a workload; False if it does not exist, unless a repetition of this request deleted it."""
        try:
            self._ask("DELETE", f"/workloads/{kind}/{_word(workload_id)}", "delete the workload", repeat=True)
        except ApiError as error:
            if error.status != 404:
                raise
            return error.may_be_done
        return True

    def _unknown_outcome(self, name: str, lost: LlmbError) -> DisconnectedError:
        return DisconnectedError(
            f"It is unknown whether the workload {name} was created.",
            f"{lost.what} {lost.why}".rstrip(),
            "The program looks it up by its name, and does not send it again before the outcome is known.",
        )

    def _id_in(self, answer: Response, action: str) -> str:
        document = self._document(answer, action)
        workload_id = document.get("workloadId") if isinstance(document, dict) else None
        if isinstance(workload_id, str) and workload_id:
            return workload_id
        raise malformed(self._server.name, action, "The answer has no id")

    def _first(self, kind: type[T], action: str, path: str, key: str, query: Mapping[str, str]) -> list[T]:
        """Read the items of a list without pages, or of the first page, and validate them."""
        matches, _ = self._page(action, path, key, query)
        return [self._checked(kind, item, action) for item in matches]

    def _listed(
        self, kind: type[T], action: str, path: str, key: str, query: Mapping[str, str] | None = None
    ) -> Iterator[T]:
        """Read all items of a list with pages, and validate them."""
        return (self._checked(kind, item, action) for item in self._paged(action, path, key, query or {}))

    def _paged(self, action: str, path: str, key: str, query: Mapping[str, str]) -> Iterator[Any]:
        """Yield all items of a list; each page is read when it is needed."""
        offset = 0
        for _ in range(_MOST_PAGES):
            items, following = self._page(action, path, key, {**query, "offset": str(offset), "limit": str(_PAGE)})
            yield from items
            if following is None and len(items) == _PAGE:
                following = offset + _PAGE
            if not items or following is None or following <= offset:
                return
            offset = following

    def _page(self, action: str, path: str, key: str, query: Mapping[str, str]) -> tuple[list[Any], int | None]:
        """Read one page: its items, and the offset of the next page."""
        document = self._get(action, f"{path}?{urlencode(query)}")
        if not isinstance(document, dict) or not isinstance(items := document.get(key), list):
            raise malformed(self._server.name, action, f"The answer has no list of {key}")
        following = document.get("next")
        return [item for item in items if item is not None], following if isinstance(following, int) else None

    def _checked(self, kind: type[T], item: Any, action: str) -> T:
        try:
            return kind.model_validate(given(item))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            why = clean_line(f"{kind.__name__}.{'.'.join(map(str, first['loc']))}: {first['msg']}")
            raise malformed(self._server.name, action, why) from None

    def _get(self, action: str, path: str, *, base: str | None = None) -> Any:
        return self.once(
            (base, path), lambda: self._document(self._ask("GET", path, action, base=base, repeat=True), action)
        )

    def _document(self, answer: Response, action: str) -> Any:
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise malformed(self._server.name, action, "The answer is not JSON") from error

    def _ask(  # noqa: PLR0913 - the parameters are independent
        self,
        method: str,
        path: str,
        action: str,
        *,
        body: Mapping[str, Any] | None = None,
        base: str | None = None,
        repeat: bool = False,
    ) -> Response:
        """Send a request and return its successful answer. `repeat`: it may be repeated after an unknown outcome."""
        ends = time.monotonic() + self.within_s
        path = (self._path if base is None else base) + path
        content = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        token, may_be_done = self._token.value(ends), False

        def send() -> Response:
            nonlocal may_be_done
            try:
                answer = self._send(method, path, {**_JSON, "Authorization": f"Bearer {token}"}, content, ends)
            except DisconnectedError:
                may_be_done = True
                raise
            may_be_done |= answer.status in _MAY_BE_DONE
            return answer

        answer = self._repeatedly(send, action, ends, repeat)
        if answer.status == 401:
            token = self._token.value(ends, refused=token)
            answer = self._repeatedly(send, action, ends, repeat)
        if not 200 <= answer.status < 300:
            error = refusal(self._server.name, action, answer)
            error.may_be_done = may_be_done
            raise error
        return answer

    def _grant(self, words: dict[str, str], ends: float) -> Response:
        """Request a token, which is safe to repeat."""
        body, path = json.dumps(words).encode(), f"{self._path}/token"
        try:
            return self._repeatedly(lambda: self._send("POST", path, _JSON, body, ends), "log in", ends, repeat=True)
        except (DisconnectedError, NoAnswerError) as error:  # the request that needs the token was not sent
            raise UnreachableError(error.what, error.why, error.fix) from error

    def _repeatedly(self, send: Callable[[], Response], action: str, ends: float, repeat: bool) -> Response:
        """Return the answer of the last try. The pauses are those that the server requests, up to the deadline."""
        pause_s = FIRST_PAUSE_S
        for remaining in reversed(range(_TRIES)):
            wait_s = pause_s
            failure: LlmbError
            try:
                answer = send()
            except (UnreachableError, DisconnectedError) as error:
                is_safe = repeat or isinstance(error, UnreachableError)
                if isinstance(error, WrongServerError) or not is_safe or not remaining:
                    raise
                failure = error
            else:
                if answer.status not in (_PASSING if repeat else _NOT_DONE) or not remaining:
                    return answer
                failure = refusal(self._server.name, action, answer)
                wait_s = _retry_after(answer, self.server_time) or pause_s
            if time.monotonic() + wait_s >= ends or self.closed.wait(wait_s):
                raise failure
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        raise AssertionError

    def _send(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, ends: float) -> Response:
        began = time.time()
        answer = self._server.ask(method, path, headers, body, ends=ends, most=LONGEST_ANSWER)
        if (date := _date(answer.headers.get("date", ""))) is not None:
            # The header has whole seconds, of a time between request and answer.
            self.skew_s = date + 0.5 - (began + time.time()) / 2
        return answer


def _id_of(item: Any) -> str:
    """Id in an item that was not validated; empty if there is none."""
    document = item.get("id") if isinstance(item, dict) else None
    return clean_line(document) if isinstance(document, str) else ""


def _word(value: str) -> str:
    """Quote a value as one part of a path."""
    return quote(value, safe="")


def _date(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError):
        return None


def _retry_after(answer: Response, now: float) -> float | None:
    """Seconds to wait that the server requests, as a number or as a date by its own clock."""
    text = answer.headers.get("retry-after", "")
    if text.isdecimal() and len(text) < 10:
        return float(text)
    date = _date(text)
    return None if date is None else max(0.0, date - now)
