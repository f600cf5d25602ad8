"""`Token`: the access token of an application, renewed before it expires."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable
from typing import Any

from llmb_tui.cluster.failures import AuthenticationError, LoginNeededError, UnreachableError
from llmb_tui.cluster.runai.failures import is_own, malformed, refusal, words_of
from llmb_tui.cluster.runai.https import Response
from llmb_tui.errors import LlmbError
from llmb_tui.language.json_text import parse_json
from llmb_tui.language.redact import remember_secret

_MARGIN_S = 60.0
_LONGEST_S = 86400.0
"""A token is renewed at least once a day, whatever lifetime the server states."""
_AGAIN_S = 10.0
"""Seconds until a failed renewal is tried again while the old token is valid."""
_ACTION = "log in"

Grant = Callable[[dict[str, str], float], Response]
"""Sends the body of a token request; the second argument is the deadline."""


class Token:
    """One thread requests a token while others wait for it. `secret` is called each time, and its result not kept."""

    def __init__(self, server: str, app_id: str, secret: Callable[[], str | None], grant: Grant) -> None:
        self._server = server
        self._app_id = app_id
        self._secret = secret
        self._grant = grant
        self._lock = threading.Lock()
        self._value = ""
        self._renew_at = self._ends_at = 0.0
        self._refused: tuple[str, LlmbError] | None = None
        """Refused secret, which is not sent again, and its error."""

    def forget_refusal(self) -> None:
        """Allow a refused secret to be sent again, because the user has just entered it."""
        self._refused = None

    def value(self, ends: float, refused: str = "") -> str:
        """Return a token that should be valid, and is not the one that the server has `refused`.

        Raises LoginNeededError without a secret, AuthenticationError for a wrong one, and the errors of the grant.
        """
        if not self._lock.acquire(timeout=max(0.0, ends - time.monotonic())):
            raise UnreachableError(
                f"{self._server} gave no login in time.", "The server is slow or hangs.", "Try again later."
            )
        try:
            now = time.monotonic()
            if not self._value or now >= self._renew_at or self._value == refused:
                try:
                    self._renew(ends)
                except LlmbError:
                    if isinstance(self._refused, tuple) or now >= self._ends_at or self._value == refused:
                        raise
                    self._renew_at = now + _AGAIN_S
            return self._value
        finally:
            self._lock.release()

    def _renew(self, ends: float) -> None:
        secret = self._secret()
        if not secret:
            what = f"The secret of {self._app_id} is needed for {self._server}."
            raise LoginNeededError(
                what,
                "It was not entered, and it is not in the environment or the keyring.",
                "Set APP_SECRET, or start this at a terminal, where the program asks for it.",
            )
        if self._refused is not None and self._refused[0] == secret:
            raise self._refused[1]
        self._refused = None
        remember_secret(secret)
        answer = self._grant({"grantType": "app_token", "appID": self._app_id, "appSecret": secret}, ends)
        if answer.status == 400:
            body = {"grantType": "client_credentials", "clientID": self._app_id, "clientSecret": secret}
            answer = self._grant(body, ends)
        # A proxy or an address filter also sends 400 and 403, which does not concern the secret.
        if answer.status == 401 or (answer.status in (400, 403) and is_own(answer)):
            words = words_of(answer)
            wrong = AuthenticationError(
                f"{self._server} does not accept {self._app_id} with this secret.",
                f"It answered: {words} (HTTP {answer.status})" if words else f"HTTP {answer.status}.",
                "Check the application id, and copy its secret again; if it is lost, create a new one in Run:ai.",
            )
            self._refused = (secret, wrong)
            raise wrong
        if answer.status != 200:
            error = refusal(self._server, _ACTION, answer)
            if answer.status in (400, 403):
                error.fix = "Check the VPN, the proxy and the base URL: another server may answer in its place."
            raise error
        self._value, lifetime_s = _granted(self._server, answer)
        remember_secret(self._value)
        asked_at = time.monotonic()
        self._ends_at = asked_at + lifetime_s
        self._renew_at = self._ends_at - min(_MARGIN_S, lifetime_s / 4)


def _granted(server: str, answer: Response) -> tuple[str, float]:
    """Parse the token and its lifetime, seconds; by its own times, not by this clock, if the answer has no lifetime."""
    document = _object(answer.body)
    token = document.get("accessToken")
    if not (isinstance(token, str) and token.isascii() and token.isprintable() and token):
        # The error does not quote the answer, which may contain the token.
        raise malformed(server, _ACTION, "The answer has no token")
    return token, _seconds(document.get("expiresIn")) or _seconds(_stated_lifetime(token)) or _MARGIN_S


def _stated_lifetime(token: str) -> object:
    """Lifetime by the times in a JSON web token; None without them."""
    parts = token.split(".")
    try:
        claims = _object(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return max(1.0, claims["exp"] - claims["iat"])
    except (IndexError, KeyError, TypeError, ValueError, ArithmeticError):
        return None


def _object(text: bytes) -> dict[str, Any]:
    """Parse a JSON object; empty if the text is none."""
    try:
        document = parse_json(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _seconds(value: object) -> float:
    """A number of seconds, at most `_LONGEST_S`; 0.0 if the value is not a positive number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        return 0.0
    return float(min(value, _LONGEST_S))
