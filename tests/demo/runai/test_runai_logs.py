"""Logs of a workload's pods from Kubernetes: the log of a training, complete, in parts, and while it grows."""

from __future__ import annotations

import http.client
import json
import threading

import pytest

from llmb_tui.demo.runai.container import Container, output
from llmb_tui.demo.site import SPEED
from llmb_tui.plan.document import document
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.store.settings import THRESHOLD
from llmb_tui.watch.parse import StepParser
from llmb_tui.watch.progress import fold
from llmb_tui.watch.state import Progress
from llmb_tui.watch.verdict import judge
from tests.demo.runai.runai_client import PLAN, Client, packed, request
from tests.kit.runai import FaultySite
from tests.kit.runs import CATALOG
from tests.kit.waiting import until

POD = "run-1-master-0"


def test_the_log_of_a_training_on_the_pod_of_rank_0(site: FaultySite, client: Client) -> None:
    client.submit(request())
    site.skip(60)
    early = client.log(POD)
    site.skip(600)
    whole = client.log(POD)
    assert whole.startswith(early)
    lines = whole.splitlines()
    assert lines[0] == "simulated: no training happens; the clock of this workload runs 1 times faster"
    assert "Starting with 256 processes" in whole
    steps = [line for line in lines if line.startswith("Training epoch 0")]
    assert len(steps) == 50
    assert " | train_step_timing in s: 4." in steps[30]
    assert "TFLOPS_per_GPU" in steps[30]
    assert lines[-1] == "`Trainer.fit` stopped: `max_steps=50` reached."
    assert client.log("run-1-worker-30").splitlines() == lines[:1]


@pytest.mark.parametrize(
    ("gpu", "dtype", "scale", "strong"),
    [("h100", "fp8", 256, False), ("h100", "bf16", 512, False), ("b200", "fp8", 128, True)],
)
def test_a_training_leads_to_a_verdict_within_two_minutes(gpu: str, dtype: str, scale: int, strong: bool) -> None:
    recipe = CATALOG.recipe("nemotron4-340b", "25.12")
    wanted = plan(CATALOG, Selection("nemotron4-340b", "25.12", "340b", gpu, dtype, scale, strong))
    files = packed(document(wanted) | {"steps": wanted.steps})
    for run in ("a", "b", "c"):
        variables = (("LLMB_FILES", files),)
        started = Container("torchrun", variables, "r-master-0", 32, scale, True, run, 0.0, SPEED, knobs=())
        made = output(started)
        text = "".join(f"{line}\n" for _, line in made.lines)
        steps = StepParser("nemo2").feed(text.encode())
        verdict, why = judge(wanted, recipe.rule, fold(Progress(), steps, wanted), finished=True, threshold=THRESHOLD)
        assert verdict is not None, why
        assert verdict.result in ("PASS", "WARN")
        assert made.seconds / SPEED < 100


def test_a_followed_log_ends_with_its_container(site: FaultySite, client: Client) -> None:
    client.submit(request())
    site.skip(100)
    answer = client.start_log(POD, "follow=true")
    begun = answer.read1(4096)
    assert begun
    site.skip(600)
    rest = answer.read()
    assert (begun + rest).decode() == client.log(POD)


def test_a_followed_log_ends_when_its_workload_is_suspended(site: FaultySite, client: Client) -> None:
    identity = client.submit(request())
    site.skip(150)
    answer = client.start_log(POD, "follow=true")
    site.workloads.suspend(identity)
    site.skip(20)
    assert b"max_steps=50` reached" not in answer.read()


def test_stopping_the_site_ends_followed_logs(site: FaultySite, client: Client) -> None:
    before = set(threading.enumerate())  # connections of other tests may remain
    client.submit(request())
    site.skip(100)
    answer = client.start_log(POD, "follow=true")
    answer.read1(4096)
    site.stop()
    with pytest.raises((http.client.HTTPException, OSError)):
        answer.read()
    # A thread that has closed its connection may still be running.
    until(lambda: not [one for one in {*threading.enumerate()} - before if "process_request" in one.name])


@pytest.mark.parametrize(
    ("asked", "status", "text"),
    [
        (("other-master-0",), 404, 'pods "other-master-0" not found'),
        ((POD, "", "default"), 403, 'pods "run-1-master-0" is forbidden'),
        ((POD, "container=main"), 400, "container main is not valid for pod"),
        ((POD, "sinceTime=yesterday"), 400, "does not offer sinceTime"),
    ],
)
def test_requests_that_kubernetes_refuses(
    site: FaultySite, client: Client, asked: tuple[str, ...], status: int, text: str
) -> None:
    client.submit(request())
    site.skip(100)
    answer = client.start_log(*asked)
    document = json.loads(answer.read())
    assert (answer.status, document["kind"], document["code"]) == (status, "Status", status)
    assert text in document["message"]


def test_a_workload_has_no_log_before_it_starts(site: FaultySite, client: Client) -> None:
    client.submit(request())
    answer = client.start_log(POD)
    assert (answer.status, b"not found" in answer.read()) == (404, True)
    site.skip(25)
    answer = client.start_log(POD)
    assert (answer.status, b"waiting to start: ContainerCreating" in answer.read()) == (400, True)


@pytest.mark.parametrize(
    ("files", "last"),
    [
        ("", "tar: Exiting with failure status"),
        ("bm8=", "tar: Exiting with failure status"),
        (packed(PLAN, **{"configs/launch.json": "{"}), "pretrain.py: Expecting property name"),
        (packed({**PLAN, "selection": {**PLAN["selection"], "scale": 128}}), "world_size (256) differs from the"),
    ],
    ids=["nothing", "no archive", "no JSON", "another plan"],
)
def test_a_container_with_missing_files_fails(site: FaultySite, client: Client, files: str, last: str) -> None:
    identity = client.submit(request(environmentVariables=[{"name": "LLMB_FILES", "value": files}]))
    site.skip(100)
    assert client.phase(identity) == "Failed"
    assert last in client.log(POD).splitlines()[-1]


def test_a_file_that_the_command_names_is_missing(site: FaultySite, client: Client) -> None:
    client.submit(request(args="'torchrun /nemo_run/code/start.sh'"))
    site.skip(100)
    last = client.log(POD).splitlines()[-1]
    assert last == "python: can't open file '/nemo_run/code/start.sh': No such file or directory"


def test_workers_without_a_master_time_out_at_the_rendezvous(site: FaultySite, client: Client) -> None:
    asking = "'torchrun --node-rank ${RANK:-0} /nemo_run/code/pretrain.py'"
    identity = client.submit(request(workers=32, args=asking) | {"masterSpecSameAsWorker": None})
    site.skip(940)
    assert client.phase(identity) == "Running"
    site.skip(60)
    assert client.phase(identity) == "Failed"
    assert "waiting for clients. 1/32 clients joined." in client.log("run-1-worker-0")


def test_a_time_limit_in_the_command(site: FaultySite, client: Client) -> None:
    identity = client.submit(request(args="'timeout --kill-after=60 200 torchrun /nemo_run/code/pretrain.py'"))
    site.skip(260)
    assert client.phase(identity) == "Failed"
    assert client.log(POD).splitlines()[-1].endswith("SignalException: Process 1 got signal: 15")
    assert client.get(f"/workloads/{identity}")["phaseMessage"] == "Container pytorch exited with code 124"


def test_faults_of_the_training(site: FaultySite, client: Client) -> None:
    site.knob("fail-at-step", "3")
    identity = client.submit(request())
    site.knob("fail-at-step", None)
    site.knob("hang-at-step", "3")
    text = client.submit(request("other"))
    site.skip(3000)
    assert [client.phase(one) for one in (identity, text)] == ["Failed", "Running"]
    assert "torch.OutOfMemoryError" in client.log(POD).splitlines()[-1]
    assert "iteration 2/49" in client.log("other-master-0").splitlines()[-1]
