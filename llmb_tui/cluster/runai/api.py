"""`RunaiApi`: what Run:ai is asked, each question with one deadline, repeated only where that is safe."""

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
from llmb_tui.cluster.failures import Disconnected, Unanswered, Unreachable
from llmb_tui.cluster.job import TERMINAL_STATES
from llmb_tui.cluster.runai.failures import ApiTrouble, malformed, refusal
from llmb_tui.cluster.runai.https import HttpsServer, WholeReply, WrongServer, bundle_of, trusting
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.cluster.runai.token import Token
from llmb_tui.cluster.runai.values import (
    KEPT,
    KEPT_OF_POD,
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
    kept,
)
from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean_line

T = TypeVar("T", bound=BaseModel)

WITHIN_S = 30.0
"""Longest time for a question, with all its repetitions."""
LONGEST_ANSWER = 16 << 20

_PASSING = (429, 500, 502, 503, 504)
"""Statuses after which a question that changes nothing is asked again."""
_NOT_DONE = (429,)
"""Statuses that say for certain that nothing was done."""
_PERHAPS_DONE = (200, 408, *range(500, 600))
"""Statuses after which something may have been made all the same: a gateway that did not wait for the answer says them
too. 200: the answer was malformed."""
_TRIES = 4
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 10.0
_PAGE = 100
_MOST_PAGES = 20
_ALSO_DELETED: tuple[dict[str, str], ...] = ({}, {"deleted": "true"})
"""What is looked for among those that are there, then among those that were deleted."""
_JSON = {"Accept": "application/json", "Content-Type": "application/json"}


class RunaiApi(AnswerCache):
    """One control plane, as one application sees it, asked from any thread. Nothing is sent before the first question.

    Everything raises Unreachable, Disconnected, DeadlinePassed, AnswerTooLong, LoginNeeded, AuthenticationFailed and
    ApiTrouble. `secret` is asked for it at each login, and answers None where nobody knows it.
    """

    def __init__(self, profile: RunaiProfile, secret: Callable[[], str | None], *, within_s: float = WITHIN_S) -> None:
        """Raises Trouble where a file of certificates cannot be used."""
        self.profile = profile
        self._within_s = within_s
        self._server = HttpsServer(profile.base_url, trusting(bundle_of(), profile.ca_file))
        self._path = urlsplit(profile.base_url).path.rstrip("/")
        self._token = Token(self._server.name, profile.app_id, secret, self._grant)
        self._closed = threading.Event()
        self.skew_s: float | None = None
        """By how much the server's clock is ahead of this machine's; None before its first answer."""

    @property
    def server_time(self) -> float:
        """Unix time by the server's clock, as far as it is known."""
        return time.time() + (self.skew_s or 0.0)

    def close(self) -> None:
        """End waiting between repetitions, for good."""
        self._closed.set()

    def reach(self) -> None:
        """See that the server is there and trusted, without a login."""
        self._server.reach(time.monotonic() + self._within_s)

    def log_in(self, *, just_given: bool = False) -> None:
        """Ask for a token if there is none that is valid.

        A secret that was refused is not sent again, but for one that a person has `just_given`.
        """
        if just_given:
            self._token.give_another_try()
        self._token.value(time.monotonic() + self._within_s)

    def project(self) -> Project | None:
        """The profile's project; None if there is none of that name that the application sees."""
        query = {"filterBy": f"name=={self.profile.project}"}
        found = self._listed(Project, "look up the project", "/org-unit/projects", "projects", query)
        return next((project for project in found if project.name == self.profile.project), None)

    def cluster(self, cluster_id: str) -> ClusterFacts:
        """The facts of one cluster."""
        asked = "look up the cluster"
        return self._checked(ClusterFacts, self._get(asked, f"/clusters/{_word(cluster_id)}"), asked)

    def node_pools(self, cluster_id: str) -> list[NodePool]:
        """The node pools of a cluster; this part of the API does not lie below the base URL."""
        asked = "list the node pools"
        said = self._get(asked, f"/v1/k8s/clusters/{_word(cluster_id)}/node-pools", base="")
        if not isinstance(said, list):
            raise malformed(self._server.name, asked, "The answer is no list")
        return [self._checked(NodePool, pool, asked) for pool in said]

    def nodes(self, cluster_id: str) -> list[Node]:
        """The nodes of a cluster, with their GPUs."""
        return list(self._listed(Node, "list the nodes", f"/clusters/{_word(cluster_id)}/nodes", "nodes"))

    def claims(self, project_id: str) -> list[Claim]:
        """The volume claims that the project may mount, as far as Run:ai manages them."""
        query = {"projectId": project_id, "statusInfo": "true"}
        return self._first(Claim, "list the volume claims", "/asset/datasource/pvc", "entries", query)

    def credentials(self, project_id: str) -> list[Credential]:
        """The credentials that the project may use."""
        query = {"projectId": project_id}
        return self._first(Credential, "list the credentials", "/asset/credentials", "entries", query)

    def create(self, kind: WorkloadKind, body: Mapping[str, Any]) -> str:
        """Make a workload whose name is in the body and belongs to nothing else, and give its id. It is asked for once.

        Where the answer is lost the name is looked up, and nothing is sent again: that a second workload of its name
        would be refused, no contract says. Raises Disconnected where it is not known whether the workload exists; after
        all else it certainly does not.
        """
        asked, name = "create the workload", str(body["name"])
        self.log_in()  # what fails before anything is sent fails here
        try:
            return self._id_in(self._ask("POST", f"/workloads/{kind}", asked, body=body), asked)
        except Trouble as trouble:
            failed = trouble
        refused = failed.status if isinstance(failed, ApiTrouble) else None
        may_exist = isinstance(failed, (Disconnected, Unanswered)) or refused in _PERHAPS_DONE
        # A name that is taken is 409 or, as the published contract has it, 400.
        if not may_exist and refused not in (400, 409):
            raise failed
        try:
            found = self.find(name)
        except Trouble as trouble:
            raise self._unsettled(name, failed) from trouble
        if found is not None:
            return found.id
        raise self._unsettled(name, failed) if may_exist else failed

    def find(self, name: str) -> Workload | None:
        """The workload that has this name, the newest if several had; one that was deleted as well.

        Of any project: the profile may name another one by now than when the workload was asked for.
        """
        query = {"filterBy": f"name=={name}"}
        for deleted in _ALSO_DELETED:
            found = self._listed(Workload, "look up a workload", "/workloads", "workloads", query | deleted)
            named = [workload for workload in found if workload.name == name]
            if named:
                return max(named, key=lambda workload: workload.created_at)
        return None

    def look(self, ids: Collection[str]) -> dict[str, Workload]:
        """These workloads, by id, those that were deleted as well; one that nobody knows is absent.

        One call for all that exist in the profile's project, or for one; others are asked for one by one, and then
        among those that were deleted.
        """
        wanted = set(ids)
        found = self._in_project(wanted, {"sortBy": "createdAt"}) if len(wanted) > 1 else {}
        # One of a former project, which this login may not see, hides none of the others.
        absent = (404,) if len(wanted) == 1 else (403, 404)
        for workload_id in wanted - found.keys():
            asked = "look at workloads"
            try:
                found[workload_id] = self._checked(
                    Workload, self._get(asked, f"/workloads/{_word(workload_id)}"), asked
                )
            except ApiTrouble as trouble:
                if trouble.status not in absent:
                    raise
        return found | self._in_project(wanted - found.keys(), {"sortBy": "deletedAt", "deleted": "true"})

    def _in_project(self, wanted: Collection[str], query: Mapping[str, str]) -> dict[str, Workload]:
        """Those of these workloads that such a list of the project has, by id."""
        found: dict[str, Workload] = {}
        query = {**query, "sortOrder": "desc", "filterBy": f"projectName=={self.profile.project}"}
        for item in self._paged("look at workloads", "/workloads", "workloads", query) if wanted else ():
            if _id_of(item) in wanted:  # others are not checked: an odd one hides none of these
                workload = self._checked(Workload, item, "look at workloads")
                found[workload.id] = workload
                if found.keys() == wanted:
                    break
        return found

    def events(self, workload_id: str) -> list[Event]:
        """The newest events of a workload."""
        path, query = f"/workloads/{_word(workload_id)}/events", {"sortOrder": "desc", "limit": "50"}
        return self._first(Event, "look at a workload's events", path, "events", query)

    def pods(self, workload_id: str) -> list[Pod]:
        """The pods of a workload."""
        path = f"/workloads/{_word(workload_id)}/pods"
        return list(self._listed(Pod, "look at a workload's pods", path, "pods"))

    def kept(self, workload_id: str) -> dict[str, Any] | None:
        """What is kept of a workload that is over, with its pods; None while it is not."""
        asked, path = "look at a workload", f"/workloads/{_word(workload_id)}"
        said = self._get(asked, path)
        if self._checked(Workload, said, asked).state not in TERMINAL_STATES:
            return None
        for deleted in _ALSO_DELETED:
            if pods := [kept(pod, KEPT_OF_POD) for pod in self._paged(asked, f"{path}/pods", "pods", deleted)]:
                return {**kept(said, KEPT), "pods": pods}
        return kept(said, KEPT)

    def suspend(self, kind: WorkloadKind, workload_id: str) -> None:
        """Let it give its nodes back; it stays, and can be resumed."""
        self._ask("POST", f"/workloads/{kind}/{_word(workload_id)}/suspend", "suspend the workload")

    def resume(self, kind: WorkloadKind, workload_id: str) -> None:
        """Let a suspended workload begin again."""
        self._ask("POST", f"/workloads/{kind}/{_word(workload_id)}/resume", "resume the workload")

    def delete(self, kind: WorkloadKind, workload_id: str) -> bool:
        """Delete a workload; False where it is not there (any more), unless it was this that deleted it."""
        try:
            self._ask("DELETE", f"/workloads/{kind}/{_word(workload_id)}", "delete the workload", repeat=True)
        except ApiTrouble as trouble:
            if trouble.status != 404:
                raise
            return trouble.perhaps_done
        return True

    def _unsettled(self, name: str, lost: Trouble) -> Disconnected:
        return Disconnected(
            f"It is not known whether the workload {name} was created.",
            f"{lost.what} {lost.why}".rstrip(),
            "It is looked up by its name, and not sent again before that is known.",
        )

    def _id_in(self, answer: WholeReply, asked: str) -> str:
        said = self._said(answer, asked)
        workload_id = said.get("workloadId") if isinstance(said, dict) else None
        if isinstance(workload_id, str) and workload_id:
            return workload_id
        raise malformed(self._server.name, asked, "The answer holds no id")

    def _first(self, kind: type[T], asked: str, path: str, key: str, query: Mapping[str, str]) -> list[T]:
        """The items of a list that does not come in pages, or of its first page, each checked."""
        found, _ = self._page(asked, path, key, query)
        return [self._checked(kind, item, asked) for item in found]

    def _listed(
        self, kind: type[T], asked: str, path: str, key: str, query: Mapping[str, str] | None = None
    ) -> Iterator[T]:
        """All items of a list that comes in pages, each checked."""
        return (self._checked(kind, item, asked) for item in self._paged(asked, path, key, query or {}))

    def _paged(self, asked: str, path: str, key: str, query: Mapping[str, str]) -> Iterator[Any]:
        """All items of such a list, a page when it is wanted."""
        offset = 0
        for _ in range(_MOST_PAGES):
            items, following = self._page(asked, path, key, {**query, "offset": str(offset), "limit": str(_PAGE)})
            yield from items
            if following is None and len(items) == _PAGE:
                following = offset + _PAGE
            if not items or following is None or following <= offset:
                return
            offset = following

    def _page(self, asked: str, path: str, key: str, query: Mapping[str, str]) -> tuple[list[Any], int | None]:
        """The items, and where the next ones begin."""
        said = self._get(asked, f"{path}?{urlencode(query)}")
        if not isinstance(said, dict) or not isinstance(items := said.get(key), list):
            raise malformed(self._server.name, asked, f"The answer has no list of {key}")
        following = said.get("next")
        return [item for item in items if item is not None], following if isinstance(following, int) else None

    def _checked(self, kind: type[T], item: Any, asked: str) -> T:
        try:
            return kind.model_validate(given(item))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            why = clean_line(f"{kind.__name__}.{'.'.join(map(str, first['loc']))}: {first['msg']}")
            raise malformed(self._server.name, asked, why) from None

    def _get(self, asked: str, path: str, *, base: str | None = None) -> Any:
        return self.once((base, path), lambda: self._said(self._ask("GET", path, asked, base=base, repeat=True), asked))

    def _said(self, answer: WholeReply, asked: str) -> Any:
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise malformed(self._server.name, asked, "The answer is not JSON") from error

    def _ask(  # noqa: PLR0913 - each is a thing of its own
        self,
        method: str,
        path: str,
        asked: str,
        *,
        body: Mapping[str, Any] | None = None,
        base: str | None = None,
        repeat: bool = False,
    ) -> WholeReply:
        """A good answer; `repeat`: the question may be asked again where it is not known what it did."""
        ends = time.monotonic() + self._within_s
        path = (self._path if base is None else base) + path
        content = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        token, perhaps_done = self._token.value(ends), False

        def send() -> WholeReply:
            nonlocal perhaps_done
            try:
                answer = self._send(method, path, {**_JSON, "Authorization": f"Bearer {token}"}, content, ends)
            except Disconnected:
                perhaps_done = True
                raise
            perhaps_done |= answer.status in _PERHAPS_DONE
            return answer

        answer = self._repeatedly(send, asked, ends, repeat)
        if answer.status == 401:
            token = self._token.value(ends, refused=token)
            answer = self._repeatedly(send, asked, ends, repeat)
        if not 200 <= answer.status < 300:
            trouble = refusal(self._server.name, asked, answer)
            trouble.perhaps_done = perhaps_done
            raise trouble
        return answer

    def _grant(self, words: dict[str, str], ends: float) -> WholeReply:
        """A request for a token, which is as safe to repeat as a look."""
        body, path = json.dumps(words).encode(), f"{self._path}/token"
        try:
            return self._repeatedly(lambda: self._send("POST", path, _JSON, body, ends), "log in", ends, repeat=True)
        except (Disconnected, Unanswered) as trouble:  # of what a token was wanted for nothing was sent
            raise Unreachable(trouble.what, trouble.why, trouble.fix) from trouble

    def _repeatedly(self, send: Callable[[], WholeReply], asked: str, ends: float, repeat: bool) -> WholeReply:
        """The answer of the last try. Between tries it waits as long as the server says, but not past the deadline."""
        pause_s = _FIRST_PAUSE_S
        for left in reversed(range(_TRIES)):
            wait_s = pause_s
            failure: Trouble
            try:
                answer = send()
            except (Unreachable, Disconnected) as trouble:
                is_safe = repeat or isinstance(trouble, Unreachable)
                if isinstance(trouble, WrongServer) or not is_safe or not left:
                    raise
                failure = trouble
            else:
                if answer.status not in (_PASSING if repeat else _NOT_DONE) or not left:
                    return answer
                failure = refusal(self._server.name, asked, answer)
                wait_s = _retry_after(answer, self.server_time) or pause_s
            if time.monotonic() + wait_s >= ends or self._closed.wait(wait_s):
                raise failure
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        raise AssertionError

    def _send(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, ends: float) -> WholeReply:
        began = time.time()
        answer = self._server.ask(method, path, headers, body, ends=ends, most=LONGEST_ANSWER)
        if (date := _date(answer.headers.get("date", ""))) is not None:
            # The header holds whole seconds of a moment between question and answer.
            self.skew_s = date + 0.5 - (began + time.time()) / 2
        return answer


def _id_of(item: Any) -> str:
    """Of an item of a list that was not checked; empty where it says none."""
    said = item.get("id") if isinstance(item, dict) else None
    return clean_line(said) if isinstance(said, str) else ""


def _word(value: str) -> str:
    """As one part of a path."""
    return quote(value, safe="")


def _date(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError):
        return None


def _retry_after(answer: WholeReply, now: float) -> float | None:
    """Seconds that the server asks to wait; as a number or as a date by its own clock."""
    text = answer.headers.get("retry-after", "")
    if text.isdecimal() and len(text) < 10:
        return float(text)
    date = _date(text)
    return None if date is None else max(0.0, date - now)
