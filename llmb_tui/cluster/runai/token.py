"""`Token`: what an application's secret buys, renewed before it expires."""

from __future__ import annotations

import base64
import binascii
import json
import threading
import time
from collections.abc import Callable
from typing import Any

from llmb_tui.cluster.failures import AuthenticationFailed, LoginNeeded, Unreachable
from llmb_tui.cluster.runai.failures import is_own, malformed, refusal, words_of
from llmb_tui.cluster.runai.https import WholeReply
from llmb_tui.errors import Trouble

_MARGIN_S = 60.0
_AGAIN_S = 10.0
"""How soon a renewal that failed is tried again while the old token is valid."""
_ASKED = "log in"

Grant = Callable[[dict[str, str], float], WholeReply]
"""Sends the body of a token request; the second is until when."""


class Token:
    """One thread asks for a token while others wait for it. The secret is asked for each time and not kept."""

    def __init__(self, server: str, app_id: str, secret: Callable[[], str | None], grant: Grant) -> None:
        self._server = server
        self._app_id = app_id
        self._secret = secret
        self._grant = grant
        self._lock = threading.Lock()
        self._value = ""
        self._renew_at = self._ends_at = 0.0
        self._refused: tuple[str, Trouble] | None = None
        """A secret that was refused, which is not sent again."""

    def give_another_try(self) -> None:
        """Send the secret even if it was refused before: a person has just given it."""
        self._refused = None

    def value(self, ends: float, refused: str = "") -> str:
        """A token that is valid as far as is known; not the one that the server has `refused`.

        Raises LoginNeeded where there is no secret, AuthenticationFailed where it is not the right one, and what the
        grant raises.
        """
        if not self._lock.acquire(timeout=max(0.0, ends - time.monotonic())):
            raise Unreachable(f"{self._server} gave no login in time.", "It is slow, or hangs.", "Try again.")
        try:
            now = time.monotonic()
            if not self._value or now >= self._renew_at or self._value == refused:
                try:
                    self._renew(ends)
                except Trouble:
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
            raise LoginNeeded(
                what,
                "It was not given, or is no longer known.",
                "Set APP_SECRET, or start this at a terminal, where it is asked for.",
            )
        if self._refused is not None and self._refused[0] == secret:
            raise self._refused[1]
        self._refused = None
        answer = self._grant({"grantType": "app_token", "appID": self._app_id, "appSecret": secret}, ends)
        if answer.status == 400:
            words = {"grantType": "client_credentials", "clientID": self._app_id, "clientSecret": secret}
            answer = self._grant(words, ends)
        # A proxy or an address filter says 400 and 403 as well, and of the secret that says nothing.
        if answer.status == 401 or (answer.status in (400, 403) and is_own(answer)):
            said = words_of(answer).replace(secret, "…")
            wrong = AuthenticationFailed(
                f"{self._server} does not accept {self._app_id} with this secret.",
                f"It says: {said} (HTTP {answer.status})" if said else f"HTTP {answer.status}.",
                "Check the application id, and copy its secret again; where it is lost, Run:ai makes a new one.",
            )
            self._refused = (secret, wrong)
            raise wrong
        if answer.status != 200:
            trouble = refusal(self._server, _ASKED, answer)
            if answer.status in (400, 403):
                trouble.fix = "Check the VPN, the proxy and the base URL: something in between may answer in its place."
            raise trouble
        self._value, lifetime_s = _granted(self._server, answer)
        asked_at = time.monotonic()
        self._ends_at = asked_at + lifetime_s
        self._renew_at = self._ends_at - min(_MARGIN_S, lifetime_s / 4)


def _granted(server: str, answer: WholeReply) -> tuple[str, float]:
    """The token and for how long it is valid; by its own times where nothing else says so, and not by this clock."""
    try:
        said: Any = json.loads(answer.body)
        token = said["accessToken"]
        if not (isinstance(token, str) and token.isascii() and token.isprintable() and token):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        # Nothing of the answer is quoted: it may hold the token.
        raise malformed(server, _ASKED, "The answer holds no token") from None
    if isinstance(lifetime := said.get("expiresIn"), int) and lifetime > 0:
        return token, lifetime
    try:
        body = token.split(".")[1]
        claims: Any = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return token, max(1.0, float(claims["exp"]) - float(claims["iat"]))
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error):
        return token, _MARGIN_S
