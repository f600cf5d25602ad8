"""`RunaiOutput`: what a workload's first pod writes, by way of the cluster's Kubernetes."""

from __future__ import annotations

from llmb_tui.cluster.remote_file import OutOfReach, Proof, Sample
from llmb_tui.cluster.runai.api import RunaiApi
from llmb_tui.cluster.runai.kube import Kube
from llmb_tui.cluster.runai.pod_log import PodLog, PodTail
from llmb_tui.cluster.runai.values import first_pod
from llmb_tui.text import clean_line


class RunaiOutput:
    """A `JobOutput`, and its one log: of whichever pod is the first one now, where the rank is that prints.

    Every start of a workload writes anew, in pods of its own. Where Kubernetes cannot be asked, that is said.
    """

    one_for_all = True

    def __init__(self, api: RunaiApi, name: str, workload_id: str) -> None:
        self.path = name
        self._api = api
        self._id = workload_id
        self._kube: Kube | None = None

    def starts(self) -> list[int]:
        """None that would be known apart."""
        return []

    def log(self, restart: int) -> RunaiOutput:  # noqa: ARG002 - there is one log for all
        """It."""
        return self

    def beside(self, most: int) -> bytes:  # noqa: ARG002 - a `JobOutput`'s
        """It writes nothing else."""
        return b""

    def prove(self, sample: Sample, known: bytes) -> Proof | None:
        """What the log is; None while there is none. Raises as `PodLog` does, and OutOfReach without a kubeconfig."""
        pod_log = self._pod_log()
        return pod_log.prove(sample, known) if pod_log else None

    def tail(self, sample: Sample, offset: int, known: bytes) -> PodTail:
        """The bytes from `offset` on. Raises as `prove` does."""
        pod_log = self._pod_log()
        return pod_log.tail(sample, offset, known) if pod_log else PodTail(None)

    def _pod_log(self) -> PodLog | None:
        kube = self._kube = self._kube or self._open()
        workload = self._api.look([self._id]).get(self._id)
        pod = first_pod(self._api.pods(self._id))
        if workload is None or pod is None or not pod.container:
            return None
        return PodLog(kube, workload.namespace, pod.name, pod.container)

    def _open(self) -> Kube:
        profile = self._api.profile
        if profile.kubeconfig is None:
            raise OutOfReach(
                f"The log of {clean_line(self.path)} cannot be read from here.",
                "Run:ai's API gives no logs; the cluster's Kubernetes does, and the profile names no kubeconfig.",
                f"Name one in the profile, or look at the workload at https://{profile.place}/workloads.",
            )
        return Kube(profile.kubeconfig)
