"""`Clusters`: the saved clusters, with one `Cluster` and one poller for each, made at their first use."""

# ruff: noqa: PLC0415 - modules that load paramiko or pydantic are imported by the methods that need them
from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.profile import LOCAL
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line
from llmb_tui.launch.policy import Policy
from llmb_tui.store.files import locked
from llmb_tui.toml.read import UNLISTED, toml_files

if TYPE_CHECKING:
    from llmb_tui.cluster.cluster import Cluster
    from llmb_tui.cluster.link import LinkHealth
    from llmb_tui.cluster.prompter import Prompter
    from llmb_tui.cluster.session import Session
    from llmb_tui.cluster.slurm.inventory import ClusterInventory
    from llmb_tui.watch.job_poller import JobPoller

_Key = tuple[tuple[object, ...], bool]


class Clusters:
    """Saved profiles and open connections. Profiles with the same route and mode share a connection. Thread-safe.

    A cluster is given as a profile, which need not be saved, or as the name of a saved one.
    """

    def __init__(
        self,
        folder: Path,
        look_every_s: float,
        *,
        policy: Policy | None = None,
        on_broken_file: Callable[[LlmbError], None] | None = None,
    ) -> None:
        self._folder = folder
        self._look_every_s = look_every_s
        self._policy = policy or Policy()
        self._on_broken_file = on_broken_file
        self._lock = threading.Lock()
        self._open: dict[_Key, Cluster] = {}
        self._pollers: dict[Cluster, JobPoller] = {}
        self._focused = True
        self._local: ClusterProfile | None = None

    def profiles(self) -> tuple[ClusterProfile, ...]:
        """Load the saved profiles. An invalid file is reported to `on_broken_file`, or raised as `ProfileError`."""
        from llmb_tui.cluster.profiles import load_profiles

        return load_profiles(self._folder, self._on_broken_file)

    def profile(self, name: str) -> ClusterProfile:
        """Load a saved profile by name. Unless a cluster has the name `local`, that is this machine as a login node.

        Raises `LlmbError` if the name is unknown, the file is invalid, or this machine is not a login node.
        """
        from llmb_tui.cluster.profiles import load_profile
        from llmb_tui.cluster.slurm.inventory import local_profile, unfilled_local_profile

        for path in toml_files([self._folder]):
            if path.stem == name or path.name == UNLISTED:
                return load_profile(path)
        if name == LOCAL:
            if self._local is None:
                self._local = local_profile(self.inventory(unfilled_local_profile()))
            return self._local
        raise LlmbError(
            f"No saved cluster is named {clean_line(name)}.",
            "",
            "Choose or add one in the Cluster step; `llmb-tui clusters` lists them.",
            exit_code=1,
        )

    def require_withdrawing(self, name: str) -> None:
        """Raise LlmbError (exit code 1) if this cluster or the whole program is read-only.

        A cluster that is no longer saved does not refuse: a run that was not submitted is withdrawn without it.
        """
        from llmb_tui.cluster.failures import ReadOnlyError

        try:
            profile = self.profile(name)
        except LlmbError:
            if self._policy.read_only:
                what = f"{clean_line(name)} is read-only: nothing was changed."
                raise LlmbError(
                    what, "`--read-only` was given.", "Start the program without it.", exit_code=1
                ) from None
        else:
            if self._policy.is_read_only(profile):
                raise ReadOnlyError(profile)

    def save(self, profile: ClusterProfile) -> None:
        """Write a profile's file. Connections whose route no profile has any more are closed."""
        from llmb_tui.cluster.profiles import save_profile

        before = {saved.route for saved in self.profiles()}
        save_profile(self._folder, profile)
        for route in before - {saved.route for saved in self.profiles()}:
            self.close(route)

    def add(self, profile: ClusterProfile) -> None:
        """Write the file of a new cluster. Raises LlmbError (exit code 1) if its name is in use."""
        with locked(self._folder):
            file = self._folder / f"{profile.name}.toml"
            if file in toml_files([self._folder]):
                raise LlmbError(
                    f"A cluster named {profile.name} already exists.",
                    fix=f"Choose another name, or edit {file}.",
                    exit_code=1,
                )
            self.save(profile)

    def change(self, read: ClusterProfile | None, profile: ClusterProfile) -> None:
        """Write the file of a cluster whose profile was `read` before; with None or a new name, of a new cluster.

        Raises LlmbError (exit code 1) if the file has changed since, so that another change is not lost.
        """
        if read is None or read.name != profile.name:
            self.add(profile)
            return
        from llmb_tui.cluster.profiles import profile_table

        with locked(self._folder):
            saved = [profile_table(other) for other in self.profiles() if other.name == profile.name]
            if any(table not in (profile_table(read), profile_table(profile)) for table in saved):
                raise LlmbError(
                    f"Cluster {profile.name} was not saved: its file has changed since it was read.",
                    f"Another program or user has written {self._folder / profile.name}.toml.",
                    "Start the program again to read the new file, or edit the file.",
                    exit_code=1,
                )
            self.save(profile)

    def inventory(self, profile: ClusterProfile, prompter: Prompter | None = None) -> ClusterInventory:
        """Read the partitions, accounts and other choices of a cluster. The profile needs only the route.

        `prompter` answers questions of the login; without one, a question is an error.
        """
        from llmb_tui.cluster.slurm.inventory import read_inventory

        session = self.login_node(profile)
        session.connect(prompter)
        return read_inventory(session)

    def login_node(self, ref: ClusterProfile | str) -> Session:
        """Return the session of a cluster with a login node. Raises LlmbError (exit code 1) for other clusters."""
        from llmb_tui.cluster.session import login_node

        return login_node(self.cluster(ref))

    def cluster(self, ref: ClusterProfile | str) -> Cluster:
        """Return the shared object of a cluster. Its first question connects, unless the login would ask the user."""
        from llmb_tui.cluster.kinds import KINDS

        profile = self.profile(ref) if isinstance(ref, str) else ref
        key = self._key(profile)
        with self._lock:
            if key not in self._open:
                self._open[key] = KINDS[profile.kind].open(profile)
                self._open[key].read_only = self._policy.is_read_only(profile)
            return self._open[key]

    def health(self, profile: ClusterProfile) -> LinkHealth | None:
        """Health of the connection to a cluster; None if the cluster was not opened. Never waits."""
        cluster = self._open.get(self._key(profile))
        return cluster.health if cluster is not None else None

    def poller(self, ref: ClusterProfile | str) -> JobPoller:
        """Return the poller that asks a cluster's scheduler for all its followed jobs."""
        from llmb_tui.watch.job_poller import JobPoller

        cluster = self.cluster(ref)
        with self._lock:
            if cluster not in self._pollers:
                self._pollers[cluster] = JobPoller(cluster, every_s=self._look_every_s)
                self._pollers[cluster].set_focused(self._focused)
            return self._pollers[cluster]

    def set_focused(self, focused: bool) -> None:
        """Set whether the terminal has the focus; without it, the clusters are polled less often."""
        with self._lock:
            self._focused = focused
            pollers = list(self._pollers.values())
        for poller in pollers:
            poller.set_focused(focused)

    def close(self, route: tuple[object, ...] | None = None) -> None:
        """Close the connections of a route, or all."""
        with self._lock:
            keys = [key for key in self._open if route in (None, key[0])]
            ended = [self._open.pop(key) for key in keys]
            pollers = [self._pollers.pop(cluster, None) for cluster in ended]
        for cluster, poller in zip(ended, pollers, strict=True):
            cluster.close()
            if poller is not None:
                poller.close()

    def _key(self, profile: ClusterProfile) -> _Key:
        return profile.route, self._policy.is_read_only(profile)
