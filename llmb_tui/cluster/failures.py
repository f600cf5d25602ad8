"""What can go wrong between here and a login node, each as a `Trouble` of its own."""

from __future__ import annotations

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.errors import Trouble


class Unreachable(Trouble):
    """No SSH server answered: the name, the port, the network or the handshake failed."""


class BadSshConfig(Trouble):
    """The user's OpenSSH configuration could not be read, or leads nowhere."""


class HostKeyUnknown(Trouble):
    """The host's key was never seen before, and nobody accepted it."""


class HostKeyChanged(Trouble):
    """The host shows another key than the one that is known. Nothing was sent to it, and nobody was asked."""


class AuthenticationFailed(Trouble):
    """The server is the right one, but did not let the user in."""


class Disconnected(Trouble):
    """The connection broke.

    `may_have_run` is False when it is certain that the command was never handed to the server.
    """

    def __init__(self, what: str, why: str = "", fix: str = "", *, may_have_run: bool = True) -> None:
        super().__init__(what, why, fix)
        self.may_have_run = may_have_run


class GaveWay(Disconnected):
    """A stream was ended to make room for another command, on a server with too few sessions. The link is well."""


class LoginNeeded(Trouble):
    """The connection broke, and only a person can log in again. Nobody was asked."""


class Unanswered(Trouble):
    """A command was given up before its answer was whole. It may still be running on the cluster."""


class DeadlinePassed(Unanswered):
    """A command took longer than it was given."""


class AnswerTooLong(Unanswered):
    """A command said more than anything says that is asked here."""


class ObserverMode(Trouble):
    """Nothing on this cluster may be changed. Exit code 1."""

    def __init__(self, profile: ClusterProfile) -> None:
        why, fix = "`--read-only` was given.", "Start the program without it."
        if profile.read_only:
            why, fix = "Its profile says `read_only`.", "Take `read_only` out of the cluster's profile."
        super().__init__(
            f"{profile.name or profile.place} is only looked at: nothing is changed.", why, fix, exit_code=1
        )
