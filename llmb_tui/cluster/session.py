"""`Session`: a cluster with a login node, whose broken link is made again."""

# ruff: noqa: PLC0415 - most importers open no session, and paramiko is slow to import
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from llmb_tui.cluster.call_rate import CallRate
from llmb_tui.cluster.cluster import AnswerCache, Cluster
from llmb_tui.cluster.failures import DisconnectedError
from llmb_tui.cluster.link import Commands, Completed, Link, LinkHealth, Pulse, Stream, note
from llmb_tui.cluster.local import LocalConnection
from llmb_tui.cluster.login_profile import LoginProfile
from llmb_tui.cluster.prompter import NonInteractivePrompter, Prompter
from llmb_tui.cluster.reconnector import Reconnector
from llmb_tui.errors import LlmbError
from llmb_tui.language.states import LinkState

if TYPE_CHECKING:
    from llmb_tui.cluster.ssh.connection import Connection
    from llmb_tui.cluster.ssh.host_keys import AcceptedKeys
    from llmb_tui.cluster.ssh.keys import UnlockedKeys

T = TypeVar("T")


class Session(AnswerCache, Commands, Cluster):
    """Runs commands on a cluster from any thread. The first command connects.

    A command with an unknown outcome is not run again: it raises DisconnectedError or DeadlineError. A read-only
    command is run again once if the connection breaks; `retry_after_disconnect` runs it again twice. Only `connect`
    asks questions, through its prompter; commands and automatic retries ask none.
    """

    profile: LoginProfile

    def __init__(self, profile: LoginProfile) -> None:
        from llmb_tui.cluster.ssh.connection import Bulk

        self.profile = profile
        self.read_only = profile.read_only
        """Read-only: everything that would change the cluster is refused."""
        self._dialer = Reconnector(self._dial, profile.name or profile.host)
        self._unlocked: UnlockedKeys = {}
        self._accepted: AcceptedKeys = set()
        self.bulk = Bulk(lambda: self._over_ssh(NonInteractivePrompter()))
        """The second connection, for long streams."""
        self._calls = CallRate()

    @property
    def state(self) -> LinkState:
        """`connecting` before the first try and during every try; `lost` if the link broke or the last try failed.

        `needs-login` if the link broke and a new login would ask a question: call `connect` with a prompter.
        """
        return self._dialer.state

    @property
    def banner(self) -> str:
        """Greeting of the login node, clean of control characters; empty before the first connection."""
        link = self._dialer.link
        return link.banner if link is not None else ""

    @property
    def health(self) -> LinkHealth:
        """Present health of the link. Never waits."""
        state = self._dialer.state
        link = self._dialer.link
        pulse = link.pulse if link is not None and state == "live" else Pulse()
        words = note(state, pulse, trying_again=link is not None, next_try_s=self._dialer.next_try_s)
        return LinkHealth(state, pulse.round_trip_s, words)

    @property
    def calls_last_minute(self) -> int:
        """Number of commands in the last 60 seconds, without heartbeats."""
        return self._calls.last_minute

    def connect(self, prompter: Prompter | None = None) -> None:
        """Connect unless connected.

        `prompter`: answers the questions of this attempt, also after an earlier connection broke.
        One thread connects while others wait for its outcome. A caller with a prompter tries again if the failed try
        of another thread had none. The pause after a failed try grows from 0.5 to about 10 seconds.
        Raises LoginNeededError, and the errors of `cluster.ssh.connect.connect`.
        """
        self._dialer.live(prompter)

    def ping(self) -> None:
        """Run a command that does nothing. Raises the errors of `run`."""
        self.run(("true",), only_looks=True)

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", deadline_s: float = 20.0, only_looks: bool = False
    ) -> Completed:
        """Run a command on a live link, as `Link.run`."""

        def run(link: Link) -> Completed:
            with self.bulk.pausing():
                return link.run(argv, stdin=stdin, deadline_s=deadline_s, only_looks=only_looks)

        return self.once((tuple(argv), stdin), lambda: self._on_live(run, only_looks))

    def stream(self, argv: Sequence[str], *, bulk: bool = False) -> Stream:
        """Start a stream on a live link. `bulk`: use a second connection if its login asks no question."""

        def start(link: Link) -> Stream:
            can_open_second = self.profile.transport == "ssh" and link.asks_nobody
            bulk_stream = self.bulk.stream(argv) if bulk and can_open_second else None
            return bulk_stream or link.stream(argv)

        return self._on_live(start)

    def write_file(self, path: str, data: bytes) -> None:
        """Replace a file, as `Link.write_file`. Raises `ReadOnlyError` if the cluster is read-only."""
        self.require_changes()
        self._on_live(lambda link: link.write_file(path, data))

    def close(self) -> None:
        """Close the connections permanently; later commands raise DisconnectedError."""
        self._dialer.close()
        self.bulk.close()

    def _dial(self, prompter: Prompter) -> Link:
        if self.profile.transport == "local":
            return LocalConnection(self.profile.host)
        return self._over_ssh(prompter)

    def _over_ssh(self, prompter: Prompter) -> Connection:
        from llmb_tui.cluster.ssh.connect import connect

        return connect(self.profile, prompter, unlocked=self._unlocked, accepted=self._accepted)

    def _on_live(self, use: Callable[[Link], T], only_looks: bool = False) -> T:
        try:
            return self._use(use)
        except DisconnectedError as broken:
            if (broken.may_have_run and not only_looks) or self.state == "closed":
                raise
        # The link was already dead before the command was sent, which only its use shows.
        return self._use(use)

    def _use(self, use: Callable[[Link], T]) -> T:
        link = self._dialer.live()
        self._calls.count()
        return use(link)


def login_node(cluster: Cluster) -> Session:
    """Return the session of a cluster with a login node. Raises LlmbError (exit code 1) for other clusters."""
    if isinstance(cluster, Session):
        return cluster
    raise LlmbError(
        f"{cluster.profile.name} has no login node.",
        "This command needs files on a login node, but this cluster is reached over HTTPS.",
        "Choose a cluster with Slurm.",
        exit_code=1,
    )
