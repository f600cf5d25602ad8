"""`RunaiProfile`: how to reach a Run:ai control plane, and what to ask of it. It never holds the secret."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunaiProfile:
    """One saved cluster with Run:ai."""

    name: str
    base_url: str
    app_id: str
    project: str
    mounts: tuple[str, ...] = ()
    work_dir: str = ""
    node_pool: str | None = None
    kubeconfig: str | None = None
    ca_file: str | None = None
    hub_credential: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    read_only: bool = False
    notice: str | None = None

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
    def route(self) -> tuple[object, ...]:
        """All that decides where a connection goes and as whom: profiles with the same route share one."""
        return ("runai", self.base_url, self.app_id)
