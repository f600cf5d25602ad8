"""`DemoRunai`: a Run:ai control plane and its cluster, inside this process, labelled as simulated."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.demo.runai import facts
from llmb_tui.demo.runai.api import Api
from llmb_tui.demo.runai.certificates import make
from llmb_tui.demo.runai.https import HOST, Handler, Listener
from llmb_tui.demo.runai.kubernetes import Kubernetes
from llmb_tui.demo.runai.tokens import Tokens
from llmb_tui.demo.runai.workloads import Workloads
from llmb_tui.demo.site import SPEED, DemoSite

TOKEN_S = 3600.0


class DemoRunai(DemoSite):
    """A simulated control plane. Its workloads are files below `root` and continue while it is stopped.

    `clock` returns the real time, and `handler` serves a connection: both are for tests.
    """

    def __init__(
        self,
        root: Path,
        *,
        speed: float = SPEED,
        token_s: float = TOKEN_S,
        clock: Callable[[], float] = time.time,
        handler: type[Handler] = Handler,
    ) -> None:
        super().__init__(root, speed)
        self.project, self.claims = facts.PROJECT, facts.CLAIMS
        self.ca_file, self.kubeconfig = self.root / "ca.pem", self.root / "kubeconfig"
        self.tokens = Tokens(token_s, clock)
        self.app_id, self.app_secret = self.tokens.app_id, self.tokens.app_secret
        self._clock = clock
        self._handler = handler
        self._listeners: list[Listener] = []

    def listen(self) -> None:
        """Load the workloads, and start the servers."""
        self.workloads = Workloads(self.root, self.speed, self._clock)
        self.kubernetes = Kubernetes(self.workloads)
        context = make(self.root)
        self._listeners = [
            Listener(context, respond, self._handler)
            for respond in (Api(self.tokens, self.workloads).respond, self.kubernetes.respond)
        ]
        for listener in self._listeners:
            listener.start()
        self._write_kubeconfig()

    def end(self) -> None:
        """End the servers and their connections."""
        self.kubernetes.stopping.set()
        for listener in self._listeners:
            listener.stop()

    @property
    def base_url(self) -> str:
        """URL of the control plane's API, as in a profile."""
        return f"https://{HOST}:{self._listeners[0].port}/api/v1"

    @property
    def profile(self) -> RunaiProfile:
        """Profile of the cluster, as a user saves it."""
        return RunaiProfile(
            name="demo-runai",
            base_url=self.base_url,
            app_id=self.app_id,
            project=self.project,
            mounts=(f"data:/data:{self.claims[0]}",),
            work_dir="/data/llmb",
            kubeconfig=str(self.kubeconfig),
            ca_file=str(self.ca_file),
            notice=self.notice,
        )

    def drop_connections(self) -> None:
        """Cut every connection without a message."""
        for listener in self._listeners:
            listener.drop_connections()

    def _write_kubeconfig(self) -> None:
        cluster = {"server": f"https://{HOST}:{self._listeners[1].port}", "certificate-authority": str(self.ca_file)}
        names = {"cluster": "simulated", "user": "reader", "namespace": facts.NAMESPACE}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "simulated", "cluster": cluster}],
            "users": [{"name": "reader", "user": {"token": self.kubernetes.token}}],
            "contexts": [{"name": "simulated", "context": names}],
            "current-context": "simulated",
        }
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(json.dumps(document, indent=2))  # JSON is YAML
