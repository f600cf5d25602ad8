"""`Token`: the access token of an application, renewed before it expires."""

from __future__ import annotations

import base64
import binascii
import threading
import time
from collections.abc import Callable
from typing import Any

from llmb_tui.cluster.failures import AuthenticationError, LoginNeededError, UnreachableError
from llmb_tui.cluster.runai.failures import is_own, malformed, refusal, words_of
from llmb_tui.cluster.runai.https import Response
from llmb_tui.errors import LlmbError
from llmb_tui.language.json_text import parse_json

_MARGIN_S = 60.0
_LONGEST_S = 86400.0
"""Longest use of a token; a server may send a number of hundreds of digits."""
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
        answer = self._grant({"grantType": "app_token", "appID": self._app_id, "appSecret": secret}, ends)
        if answer.status == 400:
            body = {"grantType": "client_credentials", "clientID": self._app_id, "clientSecret": secret}
            answer = self._grant(body, ends)
        # A proxy or an address filter also sends 400 and 403, which does not concern the secret.
        if answer.status == 401 or (answer.status in (400, 403) and is_own(answer)):
            words = words_of(answer).replace(secret, "…")
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
        asked_at = time.monotonic()
        self._ends_at = asked_at + lifetime_s
        self._renew_at = self._ends_at - min(_MARGIN_S, lifetime_s / 4)


def _granted(server: str, answer: Response) -> tuple[str, float]:
    """Parse the token and its lifetime, seconds; by its own times, not by this clock, if the answer has no lifetime."""
    try:
        document: Any = parse_json(answer.body)
        token = document["accessToken"]
        if not (isinstance(token, str) and token.isascii() and token.isprintable() and token):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        # The error does not quote the answer, which may contain the token.
        raise malformed(server, _ACTION, "The answer has no token") from None
    if isinstance(lifetime := document.get("expiresIn"), int) and lifetime > 0:
        return token, min(lifetime, _LONGEST_S)
    try:
        body = token.split(".")[1]
        claims: Any = parse_json(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return token, min(max(1.0, float(claims["exp"]) - float(claims["iat"])), _LONGEST_S)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, binascii.Error):
        return token, _MARGIN_S
