"""`RunaiProfile`: how to reach a Run:ai control plane, and what to ask of it. It never holds the secret."""

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
    """Its users may suspend jobs."""
    no_login_node: ClassVar[str] = "Run:ai is reached over HTTPS: there is no login node."
    """Why nothing can be run on a login node; empty where there is one."""

    name: str
    base_url: str
    """`https://HOST/api/v1`."""
    app_id: str
    """The application, also called service account, that logs in."""
    project: str
    mounts: tuple[str, ...] = ()
    """Volumes of the pods, `NAME:PATH:CLAIM` each, as in the recipes' `RUN_CONF_MOUNTS`."""
    work_dir: str = ""
    """Absolute path in the pods, below one of the mounts; empty: there is none."""
    node_pool: str | None = None
    """None: the project's default."""
    kubeconfig: str | None = None
    """File that says how the cluster's Kubernetes is reached, for the pods' logs; None: they are not read."""
    ca_file: str | None = None
    """Certificates that are trusted beside the system's own."""
    image_pull_secret: str | None = None
    """Kubernetes secret that the image is pulled with; None: what the project has."""
    hub_credential: str | None = None
    """Name of the credential in Run:ai that holds the Hugging Face token; None: there is none."""
    env: tuple[tuple[str, str], ...] = ()
    """Further environment variables of the training, (name, value); no secrets."""
    read_only: bool = False
    """Observer mode: nothing is submitted, cancelled or otherwise changed there."""
    notice: str | None = None
    """Shown wherever the cluster is named, such as `simulated, clock x30`."""

    @property
    def place(self) -> str:
        """Where it is reached."""
        return self.base_url.partition("://")[2].partition("/")[0]

    @property
    def share(self) -> str:
        """Which part of it runs, and on whose quota."""
        return f"project {self.project}" + (f", node pool {self.node_pool}" if self.node_pool else "")

    @property
    def directory(self) -> str:
        """Where it keeps what lasts."""
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
        """All that decides what is asked, where and as whom: profiles with the same route share one object."""
        return ("runai", self.base_url, self.app_id, self.ca_file, self.project, self.kubeconfig)


def from_environment(variables: Mapping[str, str]) -> RunaiProfile:
    """What the recipe's variables say, unchecked; the secret among them, `APP_SECRET`, is not looked at."""
    return RunaiProfile(
        name="",
        base_url=variables.get("BASE_URL", "").rstrip("/"),
        app_id=variables.get("APP_ID", ""),
        project=variables.get("PROJECT_NAME", ""),
        mounts=tuple(filter(None, map(str.strip, variables.get("RUN_CONF_MOUNTS", "").split(",")))),
        work_dir=variables.get("PVC_DIR", ""),
    )
