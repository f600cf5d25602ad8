"""What Run:ai can answer that is no answer, each as a `Trouble` that says what to do."""

from __future__ import annotations

import json
from typing import Any

from llmb_tui.cluster.cluster import SchedulerTrouble
from llmb_tui.cluster.runai.https import WholeReply
from llmb_tui.language.text import short_line

_LONGEST_WORDS = 400


class ApiTrouble(SchedulerTrouble):
    """The server answered, and not with what was asked for."""

    def __init__(self, status: int, what: str, why: str, fix: str) -> None:
        super().__init__(what, why, fix)
        self.status = status
        """Of HTTP; 200 where what came with it is not of the contract."""
        self.perhaps_done = False
        """The same was asked before, and may have been done then, though nobody answered that."""


def refusal(server: str, asked: str, answer: WholeReply) -> ApiTrouble:
    """What it means that a question was answered with this status. `asked` says what for, as in `create a workload`."""
    status = answer.status
    words = words_of(answer)
    what, fix = f"{server} refused to {asked}.", "Mend what it says, and try again."
    if status in _WITHOUT_HELP:
        what, fix = _WITHOUT_HELP[status].format(server=server, asked=asked), _FIXES[status]
    elif 300 <= status < 400:
        what = f"{server} sends to another address, to {asked}."
        fix = "Give the URL that it sends to as the base URL, if it is yours. Nothing was sent there."
        words = short_line(answer.headers.get("location", "")) or words
    elif status >= 500:
        what, fix = f"{server} failed to {asked}.", "Try again later; if it goes on, ask its administrators."
    return ApiTrouble(status, what, f"It says: {words} (HTTP {status})" if words else f"HTTP {status}.", fix)


_WITHOUT_HELP = {
    401: "{server} does not accept the login, to {asked}.",
    404: "{server} does not have what is asked for, to {asked}.",
    409: "{server} has something of that name already, to {asked}.",
    429: "{server} is asked too often, to {asked}.",
}
_FIXES = {
    401: "Check the application id and its secret, and that the application is not disabled.",
    404: "Check the base URL, which ends in /api/v1, and that what is asked for was not deleted.",
    409: "Look at what is there.",
    429: "Wait a minute, then try again.",
}


def malformed(server: str, asked: str, why: str) -> ApiTrouble:
    """What came with status 200 is not of the contract."""
    fix = "Check that the base URL is that of Run:ai's API; a proxy or a login page may answer in its place."
    return ApiTrouble(200, f"{server} did not answer as Run:ai does, to {asked}.", f"{why}.", fix)


def is_own(answer: WholeReply) -> bool:
    """It is an error as Run:ai's contract has them, and not one of something in between."""
    return isinstance(_said(answer).get("code"), int)


def words_of(answer: WholeReply) -> str:
    """The server's own words, clean and not long; empty where it has none that a person reads."""
    said = _said(answer)
    issues = said.get("complianceIssues")
    details = [issue.get("details") for issue in issues if isinstance(issue, dict)] if isinstance(issues, list) else []
    parts = [said.get("message"), said.get("details"), *details]
    return short_line(" · ".join(part for part in parts if isinstance(part, str) and part), _LONGEST_WORDS)


def _said(answer: WholeReply) -> dict[str, Any]:
    try:
        said = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
