"""A small client of the simulated site, and the request of a workload."""

from __future__ import annotations

import base64
import http.client
import io
import json
import ssl
import tarfile
from typing import Any
from urllib.parse import quote, urlsplit

from llmb_tui.demo.runai import facts
from llmb_tui.demo.runai.site import DemoRunai

PLAN: dict[str, Any] = {
    "selection": {"release": "25.12", "workload": "nemotron4-340b", "size": "340b", "gpu": "h100", "scale": 256},
    "parallelism": {"gbs": 64},
    "steps": 50,
    "estimate": {"step_time_s": 4.3, "model_flops_per_sample": 8e15},
    "memory": None,
}


class Client:
    """One connection to the control plane, and one to Kubernetes."""

    def __init__(self, site: DemoRunai) -> None:
        context = ssl.create_default_context(cafile=str(site.ca_file))
        cluster = json.loads(site.kubeconfig.read_text())
        self._kube_token = cluster["users"][0]["user"]["token"]
        urls = (site.base_url, cluster["clusters"][0]["cluster"]["server"])
        self._api, self._kube = (
            http.client.HTTPSConnection(str(urlsplit(url).netloc), context=context, timeout=20) for url in urls
        )
        self._site = site
        self.token = ""

    def close(self) -> None:
        """Close both connections."""
        self._api.close()
        self._kube.close()

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send a request to the control plane; return status and document."""
        headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {self.token}"} if self.token else {}
        )
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        self._api.request(method, path if path.startswith("/v1/") else f"/api/v1{path}", data, headers)
        answer = self._api.getresponse()
        return answer.status, json.loads(answer.read())

    def login(self) -> int:
        """Request a token; return the status."""
        names = {"grantType": "client_credentials", "clientID": self._site.app_id}
        status, document = self.call("POST", "/token", {**names, "clientSecret": self._site.app_secret})
        self.token = document.get("accessToken", "")
        return status

    def get(self, path: str) -> Any:
        """Answer of the control plane to a successful GET."""
        status, document = self.call("GET", path)
        assert status == 200, document
        return document

    def submit(self, body: dict[str, Any], kind: str = "distributed") -> str:
        """Submit a workload and return its id."""
        status, document = self.call("POST", f"/workloads/{kind}", body)
        assert status == 202, document
        return str(document["workloadId"])

    def phase(self, identity: str) -> str:
        """Phase of a workload."""
        return str(self.get(f"/workloads/{identity}")["phase"])

    def start_log(self, pod: str, query: str = "", namespace: str = facts.NAMESPACE) -> http.client.HTTPResponse:
        """Request a log from Kubernetes."""
        path = f"/api/v1/namespaces/{namespace}/pods/{quote(pod)}/log{query and '?' + query}"
        self._kube.request("GET", path, headers={"Authorization": f"Bearer {self._kube_token}"})
        return self._kube.getresponse()

    def log(self, pod: str, query: str = "") -> str:
        """Text of an existing log."""
        answer = self.start_log(pod, query)
        text = answer.read().decode()
        assert answer.status == 200, text
        return text


def packed(plan: dict[str, Any] = PLAN, **others: str) -> str:
    """Files of a run, in the encoding that a workload carries."""
    files = {"configs/plan.json": json.dumps(plan), "configs/launch.json": "{}", "code/pretrain.py": "", **others}
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return base64.b64encode(target.getvalue()).decode()


def request(name: str = "run-1", workers: int = 31, **spec: Any) -> dict[str, Any]:
    """Request of a distributed workload of 256 GPUs; `spec` replaces parts of its specification."""
    return {
        "name": name,
        "projectId": facts.PROJECT_ID,
        "clusterId": facts.CLUSTER,
        "masterSpecSameAsWorker": True,
        "spec": {
            "image": "nvcr.io/nvidia/nemo:25.09.00",
            "command": "/bin/bash -c",
            "args": "'torchrun /nemo_run/code/pretrain.py /nemo_run/configs/launch.json'",
            "numWorkers": workers,
            "distributedFramework": "PyTorch",
            "compute": {"gpuDevicesRequest": 8, "largeShmRequest": True},
            "environmentVariables": [{"name": "LLMB_FILES", "value": packed()}],
            **spec,
        },
    }


def single(name: str = "run-1", **spec: Any) -> dict[str, Any]:
    """Request of a workload with one pod."""
    body = request(name, **spec)
    del body["masterSpecSameAsWorker"]
    for field in ("numWorkers", "distributedFramework"):
        del body["spec"][field]
    return body
