"""`Site`: an install directory on the rig, with methods to install there."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.direct.install import direct_install
from llmb_tui.launch.install import Installer
from llmb_tui.launch.step_state import StepState
from llmb_tui.plan.plan import Plan
from llmb_tui.request import RunRequest
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from tests.kit.waiting import until
from tests.rig.cluster import Rig

IMAGE = "nvidia+nemo+25.02.01"
LAYERS = 66


class Site:
    """A new install directory; `close` ends all its processes."""

    def __init__(self, rig: Rig, recipe: Recipe, plan: Plan, places: Path) -> None:
        self.rig = rig
        self.recipe = recipe
        self.plan = plan
        self.install = rig.new_dir()
        self.image = self.install / "images" / f"{IMAGE}.sqsh"
        self.step = self.install / ".llmb-tui" / "steps" / f"image-{IMAGE}"
        self.profile = rig.profile(install_dir=str(self.install))
        self.places = UserPaths(places / "config", places / "state")
        self._sessions: list[SlurmCluster] = []

    def session(self, profile: SlurmProfile | None = None) -> SlurmCluster:
        """A new connection, as another process would open."""
        session = SlurmCluster(profile or self.profile)
        self._sessions.append(session)
        return session

    def installer(self, profile: SlurmProfile | None = None) -> Installer:
        """A new installer with a separate connection."""
        used = profile or self.profile
        return Installer(self.session(used), used, direct_install(RunRequest(self.recipe, self.plan, used)))

    def services(self) -> Services:
        """The program's services with separate settings and state, and this cluster saved as `rig`."""
        services = Services(self.places)
        services.clusters.save(self.profile)
        return services

    def run(self, profile: SlurmProfile | None = None) -> tuple[StepState, ...]:
        """Install to the end."""
        return self.installer(profile).run(lambda _: None, threading.Event())

    def cached(self) -> list[Path]:
        """Complete files in the cache of the import."""
        return [path for path in self.step.glob("cache/*") if "." not in path.name]

    def log(self) -> str:
        """The log of the last attempt."""
        path = self.step / "log"
        return path.read_text() if path.exists() else ""

    def attempts(self) -> int:
        """Number of starts of the import, from the logs that are kept: 0, 1, or 2 for two and more."""
        return sum((self.step / name).exists() for name in ("log", "log.before"))

    def images(self) -> list[str]:
        """Names of the files in the image directory."""
        folder = self.image.parent
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def end_operators_processes(self) -> None:
        """Kill all processes, as a reboot of the login node does. `kill -9 -1` reaches only this rig's namespace."""
        self.rig.as_operator("kill -9 -1")

    def close(self) -> None:
        """End all processes, and remove the operator's state."""
        self.rig.cancel_jobs()
        self.end_operators_processes()
        for session in self._sessions:
            session.close()
        self.rig.as_operator("cd && rm -rf .llmb-tui .config/enroot", check=True)


class BackgroundInstall:
    """`Installer.run` in a thread."""

    def __init__(self, installer: Installer) -> None:
        self.stop = threading.Event()
        self.changes: list[tuple[StepState, ...]] = []
        self._outcome: tuple[StepState, ...] | BaseException = ()
        self._thread = threading.Thread(target=self._run, args=(installer,), daemon=True)
        self._thread.start()

    def _run(self, installer: Installer) -> None:
        try:
            self._outcome = installer.run(self.changes.append, self.stop)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the test's own thread
            self._outcome = error

    def image(self) -> StepState | None:
        """State of the step that imports the image."""
        return self.changes[-1][1] if self.changes else None

    def detail(self) -> str:
        """Message of the step that imports the image."""
        return self.changes[-1][1].detail if self.changes else ""

    @property
    def over(self) -> bool:
        """True if the install has ended."""
        return not self._thread.is_alive()

    def until_running(self) -> None:
        """Wait until the image is being imported."""
        until(lambda: (state := self.image()) and state.status == "running", "the import runs")

    def join(self) -> tuple[StepState, ...]:
        """Wait for the end of the install."""
        self._thread.join(120)
        assert not self._thread.is_alive(), self.changes[-1:]
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome


@contextmanager
def enroot_on_nodes_only(rig: Rig) -> Iterator[None]:
    """Remove enroot from the login node only."""
    path = "/usr/local/bin/enroot"
    assert rig.slurm
    rig.as_root(["mount", "--bind", "/dev/null", path], check=True)
    try:
        for node in rig.slurm.nodes.values():
            subprocess.run(["nsenter", f"--target={node.pid}", "--mount", "--pid", "umount", path], check=True)
        yield
    finally:
        rig.as_root(["umount", path], check=True)


def age(path: Path, minutes: float) -> None:
    """Set the modification time of a file or directory to so many minutes ago."""
    moment = time.time() - 60 * minutes
    os.utime(path, (moment, moment))
