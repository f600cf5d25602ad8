"""`Prompter`: the user interface for the questions of a login."""

from __future__ import annotations

from typing import Protocol


class Prompter(Protocol):
    """Asks the user. It is called from the thread that connects, or from a thread of the connection.

    Prompts are clean of control characters, may have several lines, and name the host if it asks. Answers are used
    once and not kept. Only two results may stay in memory: a key that a passphrase unlocked, and an accepted host key
    that is not written to a file.
    """

    def accept_host_key(self, host: str, key_type: str, fingerprint: str, note: str = "") -> bool:
        """Ask whether `fingerprint` (`SHA256:…`) is the key of `host`. True stores it. `note`: a sentence to show."""
        ...

    def answer(self, prompt: str, echo: bool) -> str | None:
        """Ask for a password, passphrase or code; None cancels. `echo` False: do not show the answer."""
        ...


class NonInteractivePrompter:
    """Prompter without a user: it accepts no host key and answers no question."""

    def accept_host_key(self, *_: str) -> bool:
        """Reject the key, because no user has compared it."""
        return False

    def answer(self, prompt: str, echo: bool) -> str | None:  # noqa: ARG002 - part of the protocol
        """Cancel the question."""
        return None
