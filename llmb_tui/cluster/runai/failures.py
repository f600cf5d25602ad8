"""Errors of Run:ai's API, each with a remedy."""

from __future__ import annotations

from typing import Any

from llmb_tui.cluster.cluster import SchedulerError
from llmb_tui.cluster.runai.https import Response
from llmb_tui.language.json_text import parse_json
from llmb_tui.language.redact import server_words
from llmb_tui.language.text import short_line

_LONGEST_WORDS = 400


class ApiError(SchedulerError):
    """The server refused a request, or its answer was malformed."""

    def __init__(self, status: int, what: str, why: str, fix: str) -> None:
        super().__init__(what, why, fix)
        self.status = status
        """HTTP status; 200 if the answer does not follow the contract."""
        self.may_be_done = False
        """Whether an earlier repetition of the request, whose answer was lost, may have been done."""


def refusal(server: str, action: str, answer: Response) -> ApiError:
    """Make the error for an answer with this status. `action`: text such as `create the workload`."""
    status = answer.status
    words = words_of(answer)
    what, fix = f"{server} refused to {action}.", "Fix what this message names, and try again." if words else ""
    if status in _SUMMARIES:
        what, fix = _SUMMARIES[status].format(server=server, action=action), _FIXES[status]
    elif 300 <= status < 400:
        what = f"Could not {action}: {server} redirects to another address."
        fix = "If the other address is yours, use it as the base URL. Nothing was sent there."
        words = short_line(server_words(answer.headers.get("location", ""))) or words
    elif status >= 500:
        what, fix = f"{server} failed to {action}.", "Try again later; if it fails again, ask its administrators."
    return ApiError(status, what, f"It answered: {words} (HTTP {status})" if words else f"HTTP {status}.", fix)


_SUMMARIES = {
    401: "Could not {action}: {server} does not accept the login.",
    404: "Could not {action}: it does not exist on {server}.",
    409: "Could not {action}: the name is already in use on {server}.",
    429: "Could not {action}: {server} received too many requests.",
}
_FIXES = {
    401: "Check the application id and its secret, and that the application is not disabled.",
    404: "Check the base URL, which ends in /api/v1, and that the object was not deleted.",
    409: "Look at the existing object in Run:ai.",
    429: "Wait a minute, then try again.",
}


def malformed(server: str, action: str, why: str) -> ApiError:
    """Make the error for an answer with status 200 that does not follow the contract."""
    fix = "Check that the base URL is that of Run:ai's API; a proxy or a login page may answer in its place."
    return ApiError(200, f"Could not {action}: {server} did not answer as Run:ai does.", f"{why}.", fix)


def is_own(answer: Response) -> bool:
    """True if an error has the form of Run:ai's contract: a proxy's error has another one."""
    return isinstance(_document(answer).get("code"), int)


def words_of(answer: Response) -> str:
    """Error message of the server, clean, without secrets and shortened; empty if it sent none."""
    document = _document(answer)
    issues = document.get("complianceIssues")
    details = [issue.get("details") for issue in issues if isinstance(issue, dict)] if isinstance(issues, list) else []
    parts = [document.get("message"), document.get("details"), *details]
    words = " · ".join(part for part in parts if isinstance(part, str) and part)
    return short_line(server_words(words), _LONGEST_WORDS)


def _document(answer: Response) -> dict[str, Any]:
    try:
        document = parse_json(answer.body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
