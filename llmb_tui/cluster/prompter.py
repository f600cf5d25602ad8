"""`Prompter`: who is asked while a connection is made."""

from __future__ import annotations

from typing import Protocol


class Prompter(Protocol):
    """Answers questions. It is called from the thread that connects or from one of the connection's own.

    Prompts are clean of control characters, may have several lines, and name the host where it asks. Answers are
    used once and kept nowhere; only a key that a passphrase unlocked may be held in memory, and an accepted host key
    that goes into no file.
    """

    def accept_host_key(self, host: str, key_type: str, fingerprint: str, note: str = "") -> bool:
        """Is `fingerprint` (`SHA256:…`) the key of `host`? True stores it. `note`: a sentence to know before."""
        ...

    def answer(self, prompt: str, echo: bool) -> str | None:
        """A password, passphrase or code; None gives up. `echo` False: the answer must not be shown."""
        ...


class Unattended:
    """Nobody is there: accepts no key, answers no question."""

    def accept_host_key(self, *_: str) -> bool:
        """False: a key that nobody has compared is not accepted."""
        return False

    def answer(self, prompt: str, echo: bool) -> str | None:  # noqa: ARG002 - the protocol's
        """None: there is nobody to ask."""
        return None
