"""A started demo cluster with a fast clock, a client of it, and runs to submit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.demo.cluster import DemoCluster
from tests.demo.demo_client import BATCH_SCRIPT, NEMO2, PLAN, SPEED, Client, Task
from tests.kit.demo import end_jobs


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DemoCluster]:
    with DemoCluster(tmp_path / "demo", speed=SPEED) as started:
        yield started
        end_jobs(started)


@pytest.fixture
def client(cluster: DemoCluster) -> Iterator[Client]:
    connected = Client(cluster.profile)
    yield connected
    connected.ssh.close()


@pytest.fixture
def make_task(cluster: DemoCluster) -> Callable[..., Task]:
    def make(command: str = NEMO2, **changes: Any) -> Task:
        install = Path(cluster.profile.install_dir)
        task = install / "task"
        for folder in (task / "code", task / "configs", install / "images"):
            folder.mkdir(parents=True, exist_ok=True)
        image = install / "images" / "nvidia+nemo+25.02.01.sqsh"
        image.write_bytes(b"hsqs simulated")
        (task / "code" / "pretrain.py").write_text("")
        (task / "configs" / "llama3.1_405b.yaml").write_text("")
        (task / "configs" / "launch.json").write_text("{}")
        (task / "configs" / "plan.json").write_text(json.dumps({**PLAN, **changes}))
        name = "pretrain_nemotron4_15b_fp8_64_r1"
        script = BATCH_SCRIPT.format(name=name, task=task, image=image, command=command)
        return Task(task, name, script)

    return make
