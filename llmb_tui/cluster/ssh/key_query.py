"""Asking a server whether it would take a key, before anybody is asked to unlock it or to touch a token.

The protocol has a request for that (RFC 4252, section 7) and paramiko's server answers it, but its client has no
method to send it. What is overridden here is not public in paramiko.
"""

from __future__ import annotations

import threading

import paramiko
from paramiko.auth_handler import AuthOnlyHandler

_CERTIFICATE = "-cert-v01@openssh.com"


def would_take(transport: paramiko.Transport, user: str, public: bytes) -> bool:
    """True when the server would let the owner of this public key or certificate go on. It may count as a try.

    Needs a transport on which an authentication was tried already. Raises one of LINK_ERRORS when the link breaks.
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


class _Query(AuthOnlyHandler):
    def __init__(self, transport: paramiko.Transport) -> None:
        super().__init__(transport)
        self.is_welcome = False
        self._answered = threading.Event()

    def wait_for_response(self, _event: threading.Event) -> list[str]:
        """The base class makes its event when the request is out already, and the answer may come before it."""
        return super().wait_for_response(self._answered)

    def _parse_userauth_info_request(self, _message: paramiko.Message) -> None:
        """SSH_MSG_USERAUTH_PK_OK, which has the number of a question."""
        self.is_welcome = True
        self._answered.set()

    def _parse_userauth_failure(self, message: paramiko.Message) -> None:
        message.get_list()
        self._answered.set()


def _algorithm(public: bytes) -> str:
    """RSA keys sign with SHA-2; all other types are named as their algorithm."""
    kind = paramiko.Message(public).get_text()
    return {"ssh-rsa": "rsa-sha2-512", f"ssh-rsa{_CERTIFICATE}": f"rsa-sha2-512{_CERTIFICATE}"}.get(kind, kind)
