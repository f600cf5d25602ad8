"""`RunaiDelivery`: creates a workload; its name, which belongs to this run alone, shows whether it exists."""

from __future__ import annotations

import json
import time

from llmb_tui.cluster.failures import DisconnectedError, NoAnswerError
from llmb_tui.cluster.runai.cluster import RunaiCluster
from llmb_tui.cluster.runai.failures import ApiError
from llmb_tui.errors import LlmbError
from llmb_tui.launch.delivery import Jobs, OnStatus, Outcome
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import RunaiSpec

TAKEN_WITHIN_S = 300.0
"""No gateway holds a request for so long: a request without a workload by then will never make one."""
LOOK_EVERY_S = 1.0
ANSWERS_WITHIN_S = 30.0
"""Interval and duration of looking for the workload of an unanswered request, seconds."""
_REFUSED = range(400, 500)
_NO_LOGIN = (401, 429)
_UNKNOWN = "Run:ai knows no workload of this name yet. The connection broke during the request."
_NEVER = "Run:ai never created the workload: the connection broke, and no workload of this name appeared."


class RunaiDelivery:
    """A `Delivery` by one request, for a name that belongs to this run alone."""

    def __init__(self, cluster: RunaiCluster, run: Run) -> None:
        self._cluster = cluster
        self._spec = run.spec_as(RunaiSpec)
        self._sent_at = run.sent_at
        self._body: dict[str, object] = {}
        self._outcome: Outcome | None = None

    def was_sent(self) -> bool:
        """True if a workload of this name exists or existed."""
        return self._cluster.api.find(self._spec.workload) is not None

    def prepare(self, script: str) -> None:
        """Log in; the request is exactly the confirmed one."""
        self._body = json.loads(script)
        self._cluster.api.log_in()

    def begin(self) -> None:
        """Request the workload. A refusal is an outcome; a request that may have been lost is looked up later."""
        self._sent_at = time.time()
        try:
            workload_id = self._cluster.api.create(self._spec.kind, self._body)
        except ApiError as error:
            if error.status not in _REFUSED or error.status in _NO_LOGIN:
                raise
            self._outcome = Outcome("refused", f"{error.what} {error.why}".strip())
        else:
            self._outcome = Outcome("submitted", jobs=Jobs((workload_id,)))

    def answer(self, on_progress: OnStatus) -> Outcome:
        """The answer to the request; if it was lost, look for the workload."""
        until = time.monotonic() + ANSWERS_WITHIN_S
        while self._outcome is None:
            on_progress("the answer was lost: looking for the workload by its name")
            try:
                outcome = self.look_up(withdraw=False)
            except (DisconnectedError, NoAnswerError):
                outcome = Outcome("unknown", _UNKNOWN)
            if outcome.submission != "unknown" or time.monotonic() > until:
                return outcome
            time.sleep(LOOK_EVERY_S)
        return self._outcome

    def look_up(self, *, withdraw: bool) -> Outcome:
        """Look for the workload; it is given up once no request can still be in transit."""
        workload = self._cluster.api.find(self._spec.workload)
        if workload is not None:
            age_s = max(0.0, self._cluster.api.server_time - workload.created_at)
            return Outcome("submitted", jobs=Jobs((workload.id,)), age_s=age_s)
        if withdraw and (self._sent_at is None or time.time() - self._sent_at > TAKEN_WITHIN_S):
            return Outcome("withdrawn", _NEVER)
        return Outcome("unknown", _UNKNOWN)

    def refusal(self, run: Run) -> LlmbError:
        """The error with Run:ai's message."""
        return LlmbError("The workload was not created.", run.note, "Fix the cause, and submit again.", exit_code=1)
