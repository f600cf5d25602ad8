"""`Tokens`: login of an application, by its secret, with a token, which is a JWT and expires."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from typing import Any


class Tokens:
    """One application and its tokens. `clock` returns the real time."""

    def __init__(self, lifetime_s: float, clock: Callable[[], float]) -> None:
        self.app_id = "llmb-tui-demo"
        self.app_secret = secrets.token_urlsafe(24)
        self.lifetime_s = lifetime_s
        self._clock = clock
        self._key = secrets.token_bytes(32)

    def grant(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """Answer to a token request, or None for a wrong secret. Raises ValueError with the missing field."""
        given = {name.lower(): value for name, value in body.items()}  # as Go reads JSON
        kind = given.get("granttype")
        names = {"app_token": ("appid", "appsecret"), "client_credentials": ("clientid", "clientsecret")}.get(str(kind))
        if names is None:
            raise ValueError("grantType must be one of app_token, client_credentials")
        identity, secret = (given.get(name) for name in names)
        if not isinstance(identity, str) or not isinstance(secret, str):
            raise ValueError("Required parameter is missing")
        known = hmac.compare_digest(secret.encode(), self.app_secret.encode()) and identity == self.app_id
        return {"accessToken": self._token(), "expiresIn": int(self.lifetime_s)} if known else None

    def is_valid(self, token: str) -> bool:
        """True if a token was granted here and has not expired."""
        signed, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature, self._signature(signed)):
            return False
        payload = signed.partition(".")[2]
        return bool(json.loads(base64.urlsafe_b64decode(payload + "=="))["exp"] > self._clock())

    def revoke(self) -> None:
        """Invalidate all tokens that were granted so far."""
        self._key = secrets.token_bytes(32)

    def _token(self) -> str:
        now = self._clock()
        payload = {"iss": "simulated", "sub": self.app_id, "iat": int(now), "exp": int(now + self.lifetime_s)}
        signed = ".".join(_encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, payload))
        return f"{signed}.{self._signature(signed)}"

    def _signature(self, signed: str) -> str:
        return _encoded(hmac.new(self._key, signed.encode(), hashlib.sha256).digest())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
