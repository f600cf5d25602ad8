from __future__ import annotations

from typing import Any

import pytest

from llmb_tui.cluster.runai.values import Event, Pod, Workload, first_pod, job_from_workload, reason_of

AT = "2026-01-01T00:00:00Z"
UNIX = 1767225600.0


def workload(phase: str = "Pending", **changes: Any) -> Workload:
    data = {
        "id": "w",
        "name": "n",
        "type": "Training",
        "phase": phase,
        "createdAt": AT,
        "phaseUpdatedAt": AT,
        **changes,
    }
    return Workload.model_validate(data)


def warning(reason: str, message: str, at: str = AT) -> Event:
    return Event.model_validate({"createdAt": at, "type": "Warning", "reason": reason, "message": message})


@pytest.mark.parametrize(
    ("phases", "state"),
    [
        ("Creating Initializing Pending Resuming", "PENDING"),
        ("Running Updating Degraded", "RUNNING"),
        ("Stopped", "SUSPENDED"),
        ("Stopping Deleting Terminating", "COMPLETING"),
        ("Failed", "FAILED"),
        ("Completed", "COMPLETED"),
        ("Unknown SomethingNew", "UNKNOWN"),
    ],
)
def test_each_phase_maps_to_a_job_state(phases: str, state: str) -> None:
    assert {workload(phase).state for phase in phases.split()} == {state}


def test_a_deleted_workload_was_cancelled_unless_it_had_ended() -> None:
    states = [workload(phase, deletedAt=AT).state for phase in ("Running", "Deleting", "Completed", "Failed")]
    assert states == ["CANCELLED", "CANCELLED", "COMPLETED", "FAILED"]


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        ("Distributed", "distributed"),
        ("DistributedWorkload", "distributed"),
        ("Training", "trainings"),
        ("TrainingWorkload", "trainings"),
    ],
)
def test_the_kind_by_which_it_is_suspended_and_deleted(type_: str, kind: str) -> None:
    assert workload(type=type_).kind == kind


def test_a_workload_is_a_job() -> None:
    running = workload("Running", requestedPods={"number": 16})
    job = job_from_workload(running, now=UNIX + 90)
    assert (job.id, job.name, job.state, job.nodes, job.elapsed_s, job.reason) == ("w", "n", "RUNNING", 16, 90.0, "")
    assert job_from_workload(workload("Running", totalRunningTimeSeconds=7), now=UNIX + 90).elapsed_s == 7
    assert job_from_workload(workload(), now=UNIX + 90).elapsed_s is None
    assert (job_from_workload(workload(), now=0).waiting, job_from_workload(workload("Failed"), now=0).finished) == (
        True,
        True,
    )


@pytest.mark.parametrize(
    "time",
    ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000000Z", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00"],
)
def test_times_as_servers_write_them(time: str) -> None:
    assert workload(createdAt=time).created_at == UNIX


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (("FailedScheduling", "0/16 nodes: Insufficient nvidia.com/gpu"), "No nodes are free for it"),
        (("Unschedulable", "Not enough resources"), "No nodes are free for it"),
        (("Failed", 'Failed to pull image "nvcr.io/nvidia/nemo:1": 401'), "The image cannot be pulled"),
        (("BackOff", "Back-off pulling image"), "The image cannot be pulled"),
        (("BackOff", "Back-off restarting failed container"), "Its container ends repeatedly"),
        (("ImagePullBackOff", ""), "The image cannot be pulled"),
        (("NonPreemptibleOverQuota", "Workload requested 16 GPUs"), "The project's quota is used up"),
        (("Preempted", "reclaimed by project b"), "Preempted for another workload"),
        (("FailedMount", "timed out"), "A volume cannot be mounted"),
    ],
)
def test_events_explain_why_a_workload_waits(event: tuple[str, str], words: str) -> None:
    assert reason_of(workload(), [warning(*event)]) == f"{words}: {event[1] or event[0]}"


def test_the_reason_of_the_workload_takes_precedence_over_the_newest_event() -> None:
    events = [warning("Preempted", "by b", "2026-01-01T00:00:01Z"), warning("FailedScheduling", "none")]
    assert reason_of(workload(), events) == "Preempted for another workload: by b"
    waiting = workload(phaseReason="OverLimit", phaseMessage="limit of 8 GPUs")
    assert reason_of(waiting, events) == "The project's quota is used up: OverLimit · limit of 8 GPUs"
    assert reason_of(workload(), [warning("Odd", "something \x1b]0;x\x07else")]) == "something else"
    failing = workload("Failed", conditions=[{"type": "Failed", "status": "True", "message": "exit code 1"}])
    assert reason_of(failing) == "exit code 1"


def test_a_running_or_completed_workload_has_no_reason() -> None:
    events = [warning("FailedScheduling", "none")]
    assert [reason_of(workload(phase), events) for phase in ("Running", "Completed", "Stopping")] == ["", "", ""]
    assert reason_of(workload("Degraded"), events)


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("Container pytorch exited with code 124", "TIMEOUT"),
        ("Pod: runai-bench.x-master-0 exited with code 124", "TIMEOUT"),
        ("failed with exit code: 124", "TIMEOUT"),
        ("Error (exitCode=124)", "TIMEOUT"),
        ("Container pytorch exited with code 1", "FAILED"),
        ("Container pytorch exited with code 1240", "FAILED"),
        ("0/124 nodes are available, exit code unknown", "FAILED"),
    ],
)
def test_a_workload_that_timeout_has_ended_ran_into_its_limit(words: str, state: str) -> None:
    normal = Event.model_validate({"createdAt": AT, "type": "Normal", "reason": "ExitedWithCode", "message": words})
    failed = workload("Failed", phaseMessage=words)
    by_condition = workload("Failed", conditions=[{"type": "Failed", "status": "True", "message": words}])
    assert {job_from_workload(one, now=UNIX).state for one in (failed, by_condition)} == {state}
    assert job_from_workload(workload("Failed"), [normal], now=UNIX).state == state
    assert job_from_workload(workload("Completed"), [normal], now=UNIX).state == "COMPLETED"
    assert job_from_workload(workload("Pending"), [normal], now=UNIX).state == "PENDING"


def test_the_masters_pod_has_rank_0() -> None:
    def pod(name: str, **changes: Any) -> Pod:
        return Pod.model_validate({"name": name, **changes})

    old = pod("x-master-0", deletedAt=AT)
    started = {"containers": [{"name": "pytorch", "startedAt": AT}]}
    new = pod("x-master-0", **started)
    assert first_pod([pod("x-worker-0", **started), old, new]) is new
    assert first_pod([pod("x-0-0")]) == pod("x-0-0")
    assert first_pod([]) is None
