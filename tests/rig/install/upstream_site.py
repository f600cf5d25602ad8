"""`UpstreamSite`: installs for NVIDIA's scripts into a new directory of the rig."""

from __future__ import annotations

import threading
from pathlib import Path

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.install import Installer
from llmb_tui.launch.install_step import InstallStep
from llmb_tui.launch.step_state import StepState
from llmb_tui.launch.upstream.install import upstream_install
from llmb_tui.launch.upstream.paths import UpstreamPaths, upstream_paths
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import Selection
from llmb_tui.request import RunRequest
from tests.rig.cluster import Rig

ROWS: dict[str, tuple[str, str, str, str, str, int]] = {
    "nemotron4-25.04": ("nemotron4", "25.04", "15b", "h100", "fp8", 16),
    "llama3.1-25.04": ("llama3.1", "25.04", "8b", "h100", "bf16", 16),
    "llama3.1-24.11": ("llama3.1", "24.11", "405b", "h100", "fp8", 576),
    "grok1-25.02": ("grok1", "25.02", "314b", "h100", "bf16", 64),
    "nemotron4-340b-25.12": ("nemotron4-340b", "25.12", "340b", "h100", "fp8", 256),
}


class UpstreamSite:
    """A new install directory; `close` ends all its processes."""

    def __init__(self, rig: Rig, catalog: Catalog, name: str) -> None:
        workload, release, size, gpu, dtype, scale = ROWS[name]
        self.rig, self.name = rig, name
        self.recipe: Recipe = catalog.recipe(workload, release)
        self.plan: Plan = plan(catalog, Selection(workload, release, size, gpu, dtype, scale))
        self.install = rig.new_dir()
        self.profile: SlurmProfile = rig.profile(install_dir=str(self.install))
        self._sessions: list[SlurmCluster] = []

    @property
    def paths(self) -> UpstreamPaths:
        """Paths of the launch method."""
        return upstream_paths(RunRequest(self.recipe, self.plan, self.profile))

    def steps(self) -> dict[str, InstallStep]:
        """Install steps by the first word of their ids."""
        install = upstream_install(RunRequest(self.recipe, self.plan, self.profile))
        return {step.id.split("-")[0]: step for step in install}

    def session(self) -> SlurmCluster:
        """A new connection, as another process would open."""
        self._sessions.append(SlurmCluster(self.profile))
        return self._sessions[-1]

    def installer(self, last: str = "") -> Installer:
        """A new installer with a separate connection, for the steps up to `last`, or for all."""
        steps = self.steps()
        names = list(steps)
        selected = names[: names.index(last) + 1] if last else names
        return Installer(self.session(), self.profile, tuple(steps[name] for name in selected))

    def run(self, last: str = "") -> dict[str, StepState]:
        """Install up to the step `last`, the end or a failure; returns states by the first word of the steps' ids."""
        return self.by_kind(self.installer(last).run(lambda _: None, threading.Event()))

    def look(self) -> dict[str, StepState]:
        """States of the install, by the first word of the steps' ids."""
        return self.by_kind(self.installer().probe())

    def by_kind(self, states: tuple[StepState, ...]) -> dict[str, StepState]:
        """States by the first word of the steps' ids."""
        return dict(zip(self.steps(), states, strict=False))

    def folder(self, kind: str) -> Path:
        """Folder of a step."""
        return self.install / ".llmb-tui/steps" / self.steps()[kind].id

    def log(self, kind: str) -> str:
        """Log of a step's last attempt."""
        path = self.folder(kind) / "log"
        return path.read_text() if path.exists() else ""

    def attempts(self, kind: str) -> int:
        """Number of starts of a step, from the logs that are kept: 0, 1, or 2 for two and more."""
        return sum((self.folder(kind) / name).exists() for name in ("log", "log.before"))

    def kill(self, kind: str) -> None:
        """End the process group of a step on the login node."""
        owner = (self.folder(kind) / "lock" / "owner").read_text().strip()
        self.rig.as_operator(["kill", "-9", "--", f"-{owner.split('.')[-2]}"], check=True)

    def close(self) -> None:
        """End all processes, and remove the operator's state."""
        self.rig.cancel_jobs()
        self.rig.as_operator("kill -9 -1")
        for session in self._sessions:
            session.close()
        self.rig.as_operator("cd && rm -rf .llmb-tui .config/enroot", check=True)
