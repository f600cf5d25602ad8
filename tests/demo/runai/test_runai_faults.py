"""The faults that tests add to the line to the simulated site, as a client sees each of them."""

from __future__ import annotations

import http.client
import json
import threading
from pathlib import Path

import pytest

from tests.demo.runai.runai_client import Client, request
from tests.kit.runai import Fault, FaultySite

CREATE = ("POST", "/workloads/distributed")


def names(client: Client) -> list[str]:
    return [workload["name"] for workload in client.get("/workloads")["workloads"]]


def test_a_status_is_answered_and_nothing_done(site: FaultySite, client: Client) -> None:
    site.faults.append(Fault(*CREATE, status=429, headers={"Retry-After": "2"}))
    client._api.request(CREATE[0], f"/api/v1{CREATE[1]}", b"{}")  # the test needs the answer's headers
    answer = client._api.getresponse()
    assert (answer.status, answer.headers["Retry-After"]) == (429, "2")
    assert json.loads(answer.read()) == {"code": 429, "message": "simulated fault"}
    assert names(client) == []
    client.submit(request())
    assert site.request_count(*CREATE) == 2


@pytest.mark.parametrize(
    ("fault", "there"),
    [
        (Fault(*CREATE, refused=True), []),
        (Fault(*CREATE, lost=True), ["run-1"]),
        (Fault(*CREATE, cut_after=20), ["run-1"]),
        (Fault(*CREATE, cut_after=400), ["run-1"]),
    ],
)
def test_a_connection_that_is_cut(site: FaultySite, client: Client, fault: Fault, there: list[str]) -> None:
    site.faults.append(fault)
    with pytest.raises((http.client.HTTPException, OSError, ValueError)):  # a cut header may count as whole
        client.call(*CREATE, request())
    client.close()
    assert names(client) == there
    assert fault.met.is_set()


def test_a_body_that_is_none(site: FaultySite, client: Client) -> None:
    site.faults.append(Fault("GET", "/workloads$", body=b"<html>"))
    with pytest.raises(json.JSONDecodeError):
        client.call("GET", "/workloads")
    assert names(client) == []


def test_tokens_that_are_of_no_use_any_more(site: FaultySite, client: Client) -> None:
    site.faults.append(Fault("GET", "/workloads$", revoked=True))
    assert client.call("GET", "/workloads")[0] == 401
    assert client.login() == 200
    assert names(client) == []


def test_a_slow_answer_does_not_delay_another_client(site: FaultySite, client: Client) -> None:
    fault = Fault(*CREATE, until=threading.Event())
    site.faults.append(fault)
    answers: list[int] = []
    asking = threading.Thread(target=lambda: answers.append(client.call(*CREATE, request())[0]))
    asking.start()
    assert fault.met.wait(20)
    other = Client(site)
    assert other.login() == 200
    other.close()
    assert answers == []
    assert fault.until
    fault.until.set()
    asking.join()
    assert answers == [202]


def test_a_log_that_is_cut(site: FaultySite, client: Client) -> None:
    client.submit(request())
    site.skip(700)
    whole = client.log("run-1-master-0")
    site.faults.append(Fault("GET", "/log$", cut_after=3000))
    answer = client.start_log("run-1-master-0", "follow=true")
    with pytest.raises((http.client.HTTPException, OSError)):
        answer.read()
    client.close()
    assert client.log("run-1-master-0") == whole


def test_all_connections_cut(site: FaultySite, client: Client, tmp_path: Path) -> None:
    site.drop_connections()
    with pytest.raises((http.client.HTTPException, OSError)):
        client.call("GET", "/workloads")
    client.close()
    assert names(client) == []
    assert tmp_path.exists()
