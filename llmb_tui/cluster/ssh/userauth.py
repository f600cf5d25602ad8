"""Requests to be let in (RFC 4252) that paramiko's client does not send, or not without a round trip too many."""

from __future__ import annotations

import threading

import paramiko
from paramiko.auth_handler import AuthOnlyHandler


class _Attempt(AuthOnlyHandler):
    """One request to be let in, without asking for the service again, which takes a round trip.

    What it overrides is not public in paramiko.
    """

    def __init__(self, transport: paramiko.Transport) -> None:
        super().__init__(transport)
        self._answered = threading.Event()

    def wait_for_response(self, _event: threading.Event) -> list[str]:
        """The base class makes its event when the request is out already, and the answer may come before it."""
        return super().wait_for_response(self._answered)

    def _parse_userauth_success(self, message: paramiko.Message) -> None:
        super()._parse_userauth_success(message)  # type: ignore[misc]
        self._answered.set()

    def _parse_userauth_failure(self, message: paramiko.Message) -> None:
        super()._parse_userauth_failure(message)  # type: ignore[misc]
        self._answered.set()


class _Query(_Attempt):
    """Whether a key would do."""

    is_welcome = False

    def _parse_userauth_info_request(self, _message: paramiko.Message) -> None:
        """SSH_MSG_USERAUTH_PK_OK, which has the number of a question."""
        self.is_welcome = True
        self._answered.set()

    def _parse_userauth_failure(self, message: paramiko.Message) -> None:
        message.get_list()
        self._answered.set()


def sign_in(transport: paramiko.Transport, user: str, key: paramiko.PKey) -> list[str]:
    """Prove to have a key; the methods that the server wants next, none when it is content.

    Needs a transport on which an authentication was tried already. Raises one of LINK_ERRORS.
    """
    attempt = _Attempt(transport)
    transport.auth_handler = attempt
    return attempt.auth_publickey(user, key)


def would_take(transport: paramiko.Transport, user: str, public: bytes) -> bool:
    """True when the server would let the owner of this public key or certificate go on. It may count as a try.

    Asked before anybody has to unlock a key or to touch a token. The protocol has a request for that (RFC 4252,
    section 7) and paramiko's server answers it, but its client has no method to send it. Needs a transport on
    which an authentication was tried already. Raises one of LINK_ERRORS when the link breaks.
    """
    query = _Query(transport)
    transport.auth_handler = query

    def finish(message: paramiko.Message) -> None:
        message.add_boolean(False)  # without a signature
        message.add_string(_algorithm(public))
        message.add_string(public)

    try:
        query.send_auth_request(user, "publickey", finish)
    except paramiko.AuthenticationException:
        if not transport.is_active():
            raise
    return query.is_welcome


def _algorithm(public: bytes) -> str:
    """RSA keys sign with SHA-2; all other types are named as their algorithm."""
    return paramiko.Message(public).get_text().replace("ssh-rsa", "rsa-sha2-512")
