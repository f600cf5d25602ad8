"""Requests to be let in (RFC 4252) that paramiko's client does not send, or not without a round trip too many."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import paramiko
from paramiko.auth_handler import AuthHandler, AuthOnlyHandler
from paramiko.common import MSG_SERVICE_ACCEPT, cMSG_SERVICE_REQUEST

_LOOK_EVERY_S = 0.1


class Refused(paramiko.AuthenticationException):
    """The server did not take a key; `methods` are those that it would take, as it says."""

    def __init__(self, words: str, methods: list[str]) -> None:
        super().__init__(words)
        self.methods = methods


class KeyRequests(AuthOnlyHandler):
    """The requests of one connection to be let in by a key. The service is asked for once, which takes a round trip.

    What it overrides is not public in paramiko.
    """

    def __init__(self, transport: paramiko.Transport) -> None:
        super().__init__(transport)
        self._served = threading.Event()
        self._answered = threading.Event()
        self._is_welcome = False

    def ask_for_service(self) -> None:
        """What a login begins with. sshd answers a request that comes along with this one no sooner.

        Raises one of LINK_ERRORS.
        """
        self.transport.auth_handler = self
        message = paramiko.Message()
        message.add_byte(cMSG_SERVICE_REQUEST)
        message.add_string("ssh-userauth")
        with self.transport.lock:
            self.transport._send_message(message)  # type: ignore[attr-defined]
        gives_up = time.monotonic() + (self.transport.auth_timeout or 0.0)
        while not self._served.wait(_LOOK_EVERY_S):
            if not self.transport.is_active():
                raise self.transport.get_exception() or EOFError("The connection was closed.")
            if time.monotonic() > gives_up:
                raise paramiko.AuthenticationException("Authentication timeout.")

    def sign_in(self, user: str, key: paramiko.PKey) -> list[str]:
        """Prove to have a key; the methods that the server wants next, none when it is content.

        Raises Refused, or another one of LINK_ERRORS.
        """
        self._begin()
        return self.auth_publickey(user, key)

    def ask_about(self, user: str, public: bytes) -> None:
        """Return when the server would let the owner of this public key or certificate go on. It may count as a try.

        Asked before anybody has to unlock a key or to touch a token. The protocol has a request for that (RFC 4252,
        section 7) and paramiko's server answers it, but its client has no method to send it.
        Raises Refused, or another one of LINK_ERRORS.
        """
        self._begin()

        def finish(message: paramiko.Message) -> None:
            message.add_boolean(False)  # without a signature
            message.add_string(_algorithm(public))
            message.add_string(public)

        try:
            self.send_auth_request(user, "publickey", finish)
        except paramiko.AuthenticationException:
            if not self._is_welcome:
                raise

    def wait_for_response(self, _event: threading.Event) -> list[str]:
        """The base class makes its event when the request is out already, and the answer may come before it."""
        return super().wait_for_response(self._answered)

    def _begin(self) -> None:
        self.transport.auth_handler = self
        self._is_welcome = False
        self._answered.clear()

    @property
    def _client_handler_table(self) -> dict[int, Callable[[paramiko.Message], None]]:
        return {**super()._client_handler_table, MSG_SERVICE_ACCEPT: lambda _: self._served.set()}  # type: ignore[misc]

    def _parse_userauth_success(self, message: paramiko.Message) -> None:
        super()._parse_userauth_success(message)  # type: ignore[misc]
        self._answered.set()

    def _parse_userauth_failure(self, message: paramiko.Message) -> None:
        methods, continues = message.get_list(), message.get_boolean()
        if continues:
            self.transport.saved_exception = paramiko.ssh_exception.PartialAuthentication(methods)
        else:
            words = "Authentication failed" if "publickey" in methods else "the server asked for no key"
            self.transport.saved_exception = Refused(words, methods)
        self.authenticated = False
        self._answered.set()

    def _parse_userauth_info_request(self, _message: paramiko.Message) -> None:
        """SSH_MSG_USERAUTH_PK_OK, which has the number of a question."""
        self._is_welcome = True
        self._answered.set()


class QuestionsInAnyText(AuthHandler):
    """Keyboard-interactive, also where what a site has set as its prompt is no UTF-8, which paramiko takes for a fault.

    What it overrides is not public in paramiko.
    """

    def _parse_userauth_info_request(self, message: paramiko.Message) -> None:
        super()._parse_userauth_info_request(_AnyText(message.get_remainder()))  # type: ignore[misc]


class _AnyText(paramiko.Message):
    def get_text(self) -> str:
        return self.get_binary().decode(errors="replace")


def _algorithm(public: bytes) -> str:
    """RSA keys sign with SHA-2; all other types are named as their algorithm."""
    return paramiko.Message(public).get_text().replace("ssh-rsa", "rsa-sha2-512")
