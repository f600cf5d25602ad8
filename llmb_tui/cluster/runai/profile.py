"""`RunaiProfile`: the saved settings of a cluster with Run:ai. A profile never holds the secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from llmb_tui.cluster.profile import PrivateNames


@dataclass(frozen=True, slots=True)
class RunaiProfile:
    """One saved cluster with Run:ai."""

    kind: ClassVar[str] = "runai"
    can_suspend: ClassVar[bool] = True
    """Whether its users may suspend jobs."""
    no_login_node: ClassVar[str] = "Run:ai is reached over HTTPS: there is no login node."
    """Reason why commands cannot run on a login node."""

    name: str
    base_url: str
    """Base URL of the API, `https://HOST/api/v1`."""
    app_id: str
    """Id of the application, also called service account, for the login."""
    project: str
    mounts: tuple[str, ...] = ()
    """Volumes of the pods, each `NAME:PATH:CLAIM`, as in the recipes' `RUN_CONF_MOUNTS`."""
    work_dir: str = ""
    """Absolute path in the pods, below one of the mounts; empty: there is none."""
    node_pool: str | None = None
    """Node pool; None: the project's default."""
    kubeconfig: str | None = None
    """Kubeconfig of the cluster's Kubernetes, for the pods' logs; None: logs are not read."""
    ca_file: str | None = None
    """File of certificates to trust in addition to the system's own."""
    image_pull_secret: str | None = None
    """Kubernetes secret to pull the image with; None: the project's."""
    hub_credential: str | None = None
    """Name of the credential in Run:ai that holds the Hugging Face token; None: there is none."""
    env: tuple[tuple[str, str], ...] = ()
    """Additional environment variables of the training, (name, value); no secrets."""
    read_only: bool = False
    """Read-only: nothing is submitted, cancelled or otherwise changed there."""
    notice: str | None = None
    """Text to show next to the cluster's name, such as `simulated, clock x30`."""

    @property
    def place(self) -> str:
        """Host of the connection."""
        return self.base_url.partition("://")[2].partition("/")[0]

    @property
    def share(self) -> str:
        """Project and node pool of its jobs."""
        return f"project {self.project}" + (f", node pool {self.node_pool}" if self.node_pool else "")

    @property
    def directory(self) -> str:
        """Work directory, which persists between jobs."""
        return self.work_dir

    @property
    def partitions(self) -> tuple[str, ...]:
        """Empty: Run:ai has none."""
        return ()

    @property
    def names(self) -> PrivateNames:
        """Host of the control plane, and the application."""
        return PrivateNames(self.place.partition(":")[0], self.app_id)

    @property
    def route(self) -> tuple[object, ...]:
        """All values that decide requests, host and user. Profiles with the same route share one object."""
        return ("runai", self.base_url, self.app_id, self.ca_file, self.project, self.kubeconfig)


def from_environment(variables: Mapping[str, str]) -> RunaiProfile:
    """Make a profile from the recipe's variables, unchecked; the secret `APP_SECRET` is not read."""
    return RunaiProfile(
        name="",
        base_url=variables.get("BASE_URL", "").rstrip("/"),
        app_id=variables.get("APP_ID", ""),
        project=variables.get("PROJECT_NAME", ""),
        mounts=tuple(filter(None, map(str.strip, variables.get("RUN_CONF_MOUNTS", "").split(",")))),
        work_dir=variables.get("PVC_DIR", ""),
    )
