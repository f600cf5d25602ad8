"""Authentication requests (RFC 4252) that paramiko's client lacks, or sends with an extra round trip."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import paramiko
from paramiko.auth_handler import AuthHandler, AuthOnlyHandler
from paramiko.common import MSG_SERVICE_ACCEPT, cMSG_SERVICE_REQUEST

_LOOK_EVERY_S = 0.1


class KeyRefusedError(paramiko.AuthenticationException):
    """The server refused a key; `methods` are the methods that it offers instead."""

    def __init__(self, words: str, methods: list[str]) -> None:
        super().__init__(words)
        self.methods = methods


class KeyRequests(AuthOnlyHandler):
    """Requests for public key authentication on one connection. The service request, a round trip, is sent only once.

    It overrides private methods of paramiko.
    """

    def __init__(self, transport: paramiko.Transport) -> None:
        super().__init__(transport)
        self._has_service = threading.Event()
        self._answered = threading.Event()
        self._is_acceptable = False

    def ask_for_service(self) -> None:
        """Send the service request that begins a login, and wait for its answer. Raises one of LINK_ERRORS.

        Sending the first authentication request along with it would not get a faster answer from sshd.
        """
        self.transport.auth_handler = self
        message = paramiko.Message()
        message.add_byte(cMSG_SERVICE_REQUEST)
        message.add_string("ssh-userauth")
        with self.transport.lock:
            self.transport._send_message(message)  # type: ignore[attr-defined]
        gives_up = time.monotonic() + (self.transport.auth_timeout or 0.0)
        while not self._has_service.wait(_LOOK_EVERY_S):
            if not self.transport.is_active():
                raise self.transport.get_exception() or EOFError("The connection was closed.")
            if time.monotonic() > gives_up:
                raise paramiko.AuthenticationException("Authentication timeout.")

    def sign_in(self, user: str, key: paramiko.PKey) -> list[str]:
        """Log in with a key, and return the methods that the server requires next; none if the login is complete.

        Raises KeyRefusedError, or another one of LINK_ERRORS.
        """
        self._begin()
        return self.auth_publickey(user, key)

    def ask_about(self, user: str, public: bytes) -> None:
        """Ask whether the server would accept this public key or certificate. It may count as a try.

        The question comes before the user has to unlock a key or touch a token. The protocol has this request
        (RFC 4252, section 7), but paramiko's client has no method for it.
        Raises KeyRefusedError, or another one of LINK_ERRORS.
        """
        self._begin()

        def finish(message: paramiko.Message) -> None:
            message.add_boolean(False)  # without a signature
            message.add_string(_algorithm(public))
            message.add_string(public)

        try:
            self.send_auth_request(user, "publickey", finish)
        except paramiko.AuthenticationException:
            if not self._is_acceptable:
                raise

    def wait_for_response(self, _event: threading.Event) -> list[str]:
        """Wait for the answer. The base class makes its event after sending, when the answer may have come already."""
        return super().wait_for_response(self._answered)

    def _begin(self) -> None:
        self.transport.auth_handler = self
        self._is_acceptable = False
        self._answered.clear()

    @property
    def _client_handler_table(self) -> dict[int, Callable[[paramiko.Message], None]]:
        return {**super()._client_handler_table, MSG_SERVICE_ACCEPT: lambda _: self._has_service.set()}  # type: ignore[misc]

    def _parse_userauth_success(self, message: paramiko.Message) -> None:
        super()._parse_userauth_success(message)  # type: ignore[misc]
        self._answered.set()

    def _parse_userauth_failure(self, message: paramiko.Message) -> None:
        methods, continues = message.get_list(), message.get_boolean()
        if continues:
            self.transport.saved_exception = paramiko.ssh_exception.PartialAuthentication(methods)
        else:
            words = "Authentication failed" if "publickey" in methods else "the server did not ask for a key"
            self.transport.saved_exception = KeyRefusedError(words, methods)
        self.authenticated = False
        self._answered.set()

    def _parse_userauth_info_request(self, _message: paramiko.Message) -> None:
        """Handle SSH_MSG_USERAUTH_PK_OK, which has the same number as an information request."""
        self._is_acceptable = True
        self._answered.set()


class QuestionsInAnyText(AuthHandler):
    """Keyboard-interactive authentication with prompts that are not UTF-8, which paramiko rejects.

    It overrides a private method of paramiko.
    """

    def _parse_userauth_info_request(self, message: paramiko.Message) -> None:
        super()._parse_userauth_info_request(_AnyText(message.get_remainder()))  # type: ignore[misc]


class _AnyText(paramiko.Message):
    def get_text(self) -> str:
        return self.get_binary().decode(errors="replace")


def _algorithm(public: bytes) -> str:
    """Signature algorithm of a public key: SHA-2 for RSA, otherwise the name of the key type."""
    return paramiko.Message(public).get_text().replace("ssh-rsa", "rsa-sha2-512")
