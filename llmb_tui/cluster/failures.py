"""Errors of the connection to a login node."""

from __future__ import annotations

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.errors import LlmbError


class UnreachableError(LlmbError):
    """No SSH server answered: the name, the port, the network or the handshake failed."""


class SshConfigError(LlmbError):
    """The user's OpenSSH configuration cannot be read, or names a route that cannot be used."""


class HostKeyUnknownError(LlmbError):
    """The host's key is unknown, and the user did not accept it."""


class HostKeyChangedError(LlmbError):
    """The host's key differs from the known one. Nothing was sent to the host, and the user was not asked."""


class AuthenticationError(LlmbError):
    """The server has the expected host key, but rejected the login."""


class DisconnectedError(LlmbError):
    """The connection broke.

    `may_have_run` is False if the command was certainly not given to the server.
    """

    def __init__(self, what: str, why: str = "", fix: str = "", *, may_have_run: bool = True) -> None:
        super().__init__(what, why, fix)
        self.may_have_run = may_have_run


class StreamPreemptedError(DisconnectedError):
    """A stream was ended because a server with few sessions needed its session for another command.

    The connection itself works.
    """


class LoginNeededError(LlmbError):
    """The connection broke, and logging in again would ask the user a question. It was not asked."""


class NoAnswerError(LlmbError):
    """The complete answer of a command did not arrive. The command may still be running on the cluster."""


class DeadlineError(NoAnswerError):
    """A command did not answer before its deadline."""


class AnswerTooLongError(NoAnswerError):
    """A command's output is longer than any expected answer."""


class ReadOnlyError(LlmbError):
    """A change of a read-only cluster was refused. Exit code 1."""

    def __init__(self, profile: ClusterProfile) -> None:
        why, fix = "`--read-only` was given.", "Start the program without it."
        if profile.read_only:
            why, fix = "Its profile has `read_only`.", "Remove `read_only` from the cluster's profile."
        super().__init__(f"{profile.name or profile.place} is read-only: nothing was changed.", why, fix, exit_code=1)
