"""`Session`: one cluster that is always there: a live link, made again when it is dead."""

# ruff: noqa: PLC0415 - many take a session who never open one, and paramiko takes a while to import
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from llmb_tui.cluster.call_rate import CallRate
from llmb_tui.cluster.cluster import AsksOnce, Cluster
from llmb_tui.cluster.failures import Disconnected
from llmb_tui.cluster.link import Commands, Completed, Link, LinkHealth, Pulse, Stream, note
from llmb_tui.cluster.local import LocalConnection
from llmb_tui.cluster.login_profile import LoginProfile
from llmb_tui.cluster.prompter import Prompter, Unattended
from llmb_tui.cluster.reconnector import Reconnector
from llmb_tui.errors import Trouble
from llmb_tui.language.states import LinkState

if TYPE_CHECKING:
    from llmb_tui.cluster.ssh.connection import Connection
    from llmb_tui.cluster.ssh.host_keys import AcceptedKeys
    from llmb_tui.cluster.ssh.keys import UnlockedKeys

T = TypeVar("T")


class Session(AsksOnce, Commands, Cluster):
    """Runs commands on a cluster from any thread. Nothing is connected before the first command.

    A command whose outcome is unknown is never run again: it raises Disconnected or DeadlinePassed. One that only looks
    is, once, where the connection breaks; `patiently` does so twice.
    Only `connect` asks a person anything, and only the one that it is given; commands and links made again ask nobody.
    """

    profile: LoginProfile

    def __init__(self, profile: LoginProfile) -> None:
        from llmb_tui.cluster.ssh.connection import Bulk

        self.profile = profile
        self.read_only = profile.read_only
        """Observer mode: whatever would change the cluster is refused."""
        self._dialer = Reconnector(self._dial, profile.name or profile.host)
        self._unlocked: UnlockedKeys = {}
        self._accepted: AcceptedKeys = set()
        self.bulk = Bulk(lambda: self._over_ssh(Unattended()))
        """The second connection, for long streams."""
        self._calls = CallRate()

    @property
    def state(self) -> LinkState:
        """`connecting` before the first try and during each; `lost` when it broke or the last try failed.

        `needs-login` when it broke and logging in again would ask somebody: `connect` with a prompter does.
        """
        return self._dialer.state

    @property
    def banner(self) -> str:
        """What the login node greets with, clean of control characters; empty before the first connection."""
        link = self._dialer.link
        return link.banner if link is not None else ""

    @property
    def health(self) -> LinkHealth:
        """What is known of the link at this moment. Never waits."""
        state = self._dialer.state
        link = self._dialer.link
        pulse = link.pulse if link is not None and state == "live" else Pulse()
        words = note(state, pulse, trying_again=link is not None, next_try_s=self._dialer.next_try_s)
        return LinkHealth(state, pulse.round_trip_s, words)

    @property
    def calls_last_minute(self) -> int:
        """Commands sent in the last 60 seconds. Heartbeats are none."""
        return self._calls.last_minute

    def connect(self, prompter: Prompter | None = None) -> None:
        """Connect unless that is done.

        `prompter`: who answers the questions of this attempt, also when an earlier connection broke; None: nobody.
        One thread connects while others wait for its outcome; who has a prompter tries again where the one that was
        waited for had none. Between failed tries passes a pause that grows from 0.5 to some 10 seconds.
        Raises LoginNeeded, and what `cluster.ssh.connect.connect` raises.
        """
        self._dialer.live(prompter)

    def ping(self) -> None:
        """Run a command that does nothing. Raises what `run` raises."""
        self.run(("true",), only_looks=True)

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", deadline_s: float = 20.0, only_looks: bool = False
    ) -> Completed:
        """`Link.run` on a live link."""

        def run(link: Link) -> Completed:
            with self.bulk.making_way():
                return link.run(argv, stdin=stdin, deadline_s=deadline_s, only_looks=only_looks)

        return self.once((tuple(argv), stdin), lambda: self._on_live(run, only_looks))

    def stream(self, argv: Sequence[str], *, bulk: bool = False) -> Stream:
        """`Link.stream` on a live link; `bulk`: on a connection of its own where logging in again asks nobody."""

        def start(link: Link) -> Stream:
            may_have_two = self.profile.transport == "ssh" and link.asks_nobody
            own = self.bulk.stream(argv) if bulk and may_have_two else None
            return own or link.stream(argv)

        return self._on_live(start)

    def write_file(self, path: str, data: bytes) -> None:
        """`Link.write_file` on a live link. Raises `ObserverMode` where the cluster is only looked at."""
        self.require_changes()
        self._on_live(lambda link: link.write_file(path, data))

    def close(self) -> None:
        """Close the connections for good; later commands raise Disconnected."""
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
        except Disconnected as broken:
            if (broken.may_have_run and not only_looks) or self.state == "closed":
                raise
        # The link was dead before the command went out, which only shows when it is used.
        return self._use(use)

    def _use(self, use: Callable[[Link], T]) -> T:
        link = self._dialer.live()
        self._calls.count()
        return use(link)


def login_node(cluster: Cluster) -> Session:
    """The session on the cluster's login node. Raises Trouble (exit code 1) where it has none."""
    if isinstance(cluster, Session):
        return cluster
    raise Trouble(
        f"{cluster.profile.name} has no login node.",
        "Keys, images and scripts lie on one; this cluster is asked over HTTPS.",
        "Choose a cluster with Slurm.",
        exit_code=1,
    )
