"""`RunaiDelivery`: a workload is created, and its name, which is the run's alone, says whether it was."""

from __future__ import annotations

import json
import time

from llmb_tui.cluster.failures import Disconnected, Unanswered
from llmb_tui.cluster.runai.cluster import RunaiCluster
from llmb_tui.cluster.runai.failures import ApiTrouble
from llmb_tui.errors import Trouble
from llmb_tui.launch.delivery import Jobs, Outcome, Tell
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import RunaiSpec

_TAKEN_WITHIN_S = 300.0
"""No gateway holds a request for so long: one that has made nothing by then never will."""
_LOOK_EVERY_S = 1.0
_ANSWERS_WITHIN_S = 30.0
_REFUSED = range(400, 500)
_NO_LOGIN = (401, 429)
_UNKNOWN = "Run:ai knows no workload of its name yet. The connection broke while the request was on its way."
_NEVER = "Run:ai never made the workload: the connection broke, and nothing of its name came to be."


class RunaiDelivery:
    """A `Delivery` by one request, for a name that is this run's alone."""

    def __init__(self, cluster: RunaiCluster, run: Run) -> None:
        self._cluster = cluster
        self._spec = run.spec_as(RunaiSpec)
        self._sent_at = run.sent_at
        self._body: dict[str, object] = {}
        self._outcome: Outcome | None = None

    def sent_before(self) -> bool:
        """Whether there is a workload of its name, or was."""
        return self._cluster.api.find(self._spec.workload) is not None

    def prepare(self, script: str) -> None:
        """Log in; the request is what a person has agreed to, to the letter."""
        self._body = json.loads(script)
        self._cluster.api.log_in()

    def begin(self) -> None:
        """Ask for the workload. What is refused is an outcome; what may not have been heard is looked up."""
        self._sent_at = time.time()
        try:
            workload_id = self._cluster.api.create(self._spec.kind, self._body)
        except ApiTrouble as trouble:
            if trouble.status not in _REFUSED or trouble.status in _NO_LOGIN:
                raise
            self._outcome = Outcome("refused", f"{trouble.what} {trouble.why}".strip())
        else:
            self._outcome = Outcome("submitted", jobs=Jobs((workload_id,)))

    def answer(self, tell: Tell) -> Outcome:
        """What the request was answered; where that was lost, whether the workload is there."""
        until = time.monotonic() + _ANSWERS_WITHIN_S
        while self._outcome is None:
            tell("the answer was lost: the workload is looked up by its name")
            try:
                outcome = self.look(withdraw=False)
            except (Disconnected, Unanswered):
                outcome = Outcome("unknown", _UNKNOWN)
            if outcome.submission != "unknown" or time.monotonic() > until:
                return outcome
            time.sleep(_LOOK_EVERY_S)
        return self._outcome

    def look(self, *, withdraw: bool) -> Outcome:
        """Whether the workload is there; it is given up when no request can still be on its way."""
        workload = self._cluster.api.find(self._spec.workload)
        if workload is not None:
            age_s = max(0.0, self._cluster.api.server_time - workload.created_at)
            return Outcome("submitted", jobs=Jobs((workload.id,)), age_s=age_s)
        if withdraw and (self._sent_at is None or time.time() - self._sent_at > _TAKEN_WITHIN_S):
            return Outcome("withdrawn", _NEVER)
        return Outcome("unknown", _UNKNOWN)

    def refusal(self, run: Run) -> Trouble:
        """What Run:ai said."""
        return Trouble("The workload was not created.", run.note, "Mend what it says, and submit again.", exit_code=1)
