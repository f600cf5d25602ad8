"""At most one workload for each intent, and none is lost, at any break.

`make campaign` tries many more than `make test`.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.cluster.cluster import CancelUnconfirmedError
from llmb_tui.cluster.runai.https import HttpsServer
from llmb_tui.errors import LlmbError
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.submit import NotSubmittedError, withdraw
from tests.kit.runai import Fault, runai_site
from tests.kit.waiting import until
from tests.launch.runai.submit_site import SubmitSite, Tally, hurry, suppressed
from tests.rig.campaign import TIMES, seed
from tests.rig.line import Line

SUBMISSIONS = 100 * TIMES
CREATE = ("POST", "/workloads/distributed")


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SubmitSite]:
    hurry(monkeypatch)
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with runai_site(tmp_path / "runai", speed=1.0) as site:
        port = int(site.base_url.rpartition(":")[2].partition("/")[0])
        with Line(port) as line:
            yield SubmitSite(tmp_path, site, line)


class KilledError(BaseException):
    """The program ended without warning."""


class Killer:
    """Ends the program at a chosen write to its disk or request."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: dict[int, int] = {}
        save, ask = Runs.save, HttpsServer.ask

        def saving(runs: Runs, run: Run) -> None:
            self._step()
            save(runs, run)
            self._step()

        def asking(server: HttpsServer, *words: Any, **named: Any) -> Any:
            self._step()
            answer = ask(server, *words, **named)
            self._step()
            return answer

        monkeypatch.setattr(Runs, "save", saving)
        monkeypatch.setattr(HttpsServer, "ask", asking)

    def after(self, steps: int) -> None:
        self.left[threading.get_ident()] = steps

    def _step(self) -> None:
        me = threading.get_ident()
        if me in self.left:
            self.left[me] -= 1
            if self.left[me] < 0:
                del self.left[me]
                raise KilledError


def any_fault(dice: random.Random) -> Fault:
    ways: list[dict[str, Any]] = [
        {"refused": True},
        {"lost": True},
        {"cut_after": dice.randrange(900)},
        {"status": dice.choice([401, 408, 429, 500, 502, 503, 504, 524])},
        {"gateway": dice.choice([408, 500, 502, 503, 504, 520, 524])},
        {"body": dice.choice([b"<html>", b"{}", b"[]", b'{"workloadId": 7}'])},
        {"revoked": True},
        {"revoked": True, "refused": True},
    ]
    where = dice.choice([("", ""), CREATE, CREATE, ("GET", "/workloads"), ("POST", "/token")])
    return Fault(*where, **dice.choice(ways))


def test_each_run_has_at_most_one_workload_and_a_known_state(
    at: SubmitSite, monkeypatch: pytest.MonkeyPatch, print_at_end: Callable[[str], None]
) -> None:
    monkeypatch.setattr("llmb_tui.launch.runai.delivery.TAKEN_WITHIN_S", 2.0)
    # No contract promises that Run:ai refuses a second workload of the same name: here it accepts one.
    monkeypatch.setattr(at.site.workloads, "is_taken", lambda _: False)
    dice, tally, killer = random.Random(seed(print_at_end)), Tally(), Killer(monkeypatch)

    def program(run: Run, steps: int | None) -> None:
        if steps is not None:
            killer.after(steps)
        try:
            with at.cluster() as cluster, suppressed():
                at.submit(run, cluster)
        except KilledError:
            tally.troubles += 1
        killer.left.pop(threading.get_ident(), None)

    for _ in range(SUBMISSIONS):
        run, kind = at.new(), dice.randrange(5)
        at.site.faults[:] = faults = [any_fault(dice) for _ in range(dice.randint(1, 4))] if kind < 3 else []
        cuts = at.line.cuts
        if kind > 1:
            at.line.cut_after(**{dice.choice(["bytes_up", "bytes_down"]): dice.randrange(1, 9_000)})
        steps = dice.randrange(20) if dice.random() < 0.3 else None
        programs = [threading.Thread(target=program, args=(run, steps)) for _ in range(1 + (dice.random() < 0.2))]
        for thread in programs:
            thread.start()
        for thread in programs:
            thread.join()
        if dice.random() < 0.5 or steps is not None:  # an immediate second attempt by an impatient user
            program(run, None)
        at.line.cut_after()
        tally.troubles += at.line.cuts - cuts + sum(fault.met.is_set() for fault in faults)
    at.settle(tally, until)
    print_at_end(f"at most once: {tally}")
    assert tally.twice == []
    assert tally.lost == []
    assert sum(tally.ended.values()) == SUBMISSIONS
    assert tally.ended["submitted"] > SUBMISSIONS / 3
    assert set(tally.ended) <= {"intended", "submitted", "withdrawn"}


def states(at: SubmitSite, run: Run) -> list[str]:
    return [record["event"] for record in at.journal.read() if record["run"] == run.id]


def test_a_run_is_submitted_by_one_request_and_saved(at: SubmitSite) -> None:
    run = at.new()
    with at.cluster() as cluster:
        done = at.submit(run, cluster)
        assert at.submit(run, cluster) == done, "a second call finds it"
    assert (done.submission, list(done.job_ids)) == ("submitted", at.there()[run.job_name])
    assert at.remembered(run) == done
    assert at.site.request_count(*CREATE) == 1
    assert states(at, run) == ["intent", "unknown", "submitted"]
    assert json.loads(at.runs.script(run.id))["name"] == run.job_name
    assert run.id in run.job_name


def test_the_intent_is_saved_before_the_first_request(at: SubmitSite) -> None:
    run = at.new()
    at.line.refuse()
    with at.cluster() as cluster, pytest.raises(NotSubmittedError) as caught:
        at.submit(run, cluster)
    assert "before anything was sent" not in caught.value.why, "no connection was made"
    assert run.id in caught.value.fix
    assert at.remembered(run).submission == "intended"
    assert states(at, run) == ["intent"]
    assert at.there() == {}
    at.line.accept()
    with at.cluster() as cluster:
        assert at.submit(run, cluster).submission == "submitted"


@pytest.mark.parametrize("status", [400, 403, 404, 409, 422])
def test_a_refusal_by_runai_is_reported_with_its_message_and_a_fix(at: SubmitSite, status: int) -> None:
    run = at.new()
    at.site.faults.append(Fault(*CREATE, status=status))
    with at.cluster() as cluster:
        with pytest.raises(LlmbError) as caught:
            at.submit(run, cluster)
        assert caught.value.exit_code == 1
        assert f"simulated fault (HTTP {status})" in caught.value.why
        assert caught.value.fix
        with pytest.raises(LlmbError, match="was not created"):
            at.submit(run, cluster)
    assert at.remembered(run).submission == "refused"
    assert at.there() == {}
    assert at.site.request_count(*CREATE) == 1


@pytest.mark.parametrize("fault", [Fault(*CREATE, 9, status=429), Fault("POST", "/token", 99, status=503)])
def test_a_request_that_certainly_failed_keeps_the_intent(at: SubmitSite, fault: Fault) -> None:
    run = at.new()
    at.site.faults.append(replace(fault))
    with at.cluster() as cluster, pytest.raises(NotSubmittedError) as caught:
        at.submit(run, cluster)
    assert f"submit --resume {run.id}" in caught.value.fix
    assert at.remembered(run).submission == "intended"
    assert at.there() == {}
    at.site.faults.clear()
    with at.cluster() as cluster:
        assert at.submit(run, cluster).submission == "submitted"
    assert len(at.there()) == 1


def test_a_login_that_ends_in_the_middle_is_renewed(at: SubmitSite) -> None:
    run = at.new()
    with at.cluster() as cluster:
        cluster.project()
        at.site.faults.append(Fault(*CREATE, revoked=True))
        assert at.submit(run, cluster).submission == "submitted"
    assert len(at.there()) == 1


@pytest.mark.parametrize("status", [408, 500, 504, 524])
def test_a_gateway_that_did_not_wait_does_not_hide_a_workload(at: SubmitSite, status: int) -> None:
    run = at.new()
    at.site.faults.append(Fault(*CREATE, gateway=status))
    with at.cluster() as cluster:
        done = at.submit(run, cluster)
    assert (done.submission, list(done.job_ids)) == ("submitted", at.there()[run.job_name])
    assert at.site.request_count(*CREATE) == 1


def test_a_missing_answer_is_looked_up_until_it_arrives(at: SubmitSite, monkeypatch: pytest.MonkeyPatch) -> None:
    run, held = at.new(), threading.Event()
    with at.cluster() as cluster:
        cluster.project()
        at.site.faults += [Fault(*CREATE, 9, until=held), Fault("GET", "/workloads$", 99, refused=True)]
        with monkeypatch.context() as impatient:
            impatient.setattr(cluster.api, "within_s", 0.5)
            assert at.submit(run, cluster).submission == "unknown"
        held.set()
        at.site.faults.clear()
        assert at.reconcile(run, cluster).submission == "submitted"
    assert list(at.remembered(run).job_ids) == at.there()[run.job_name]


def test_it_is_given_up_when_no_request_can_be_on_its_way_any_more(
    at: SubmitSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = at.new()
    at.site.faults.append(Fault(*CREATE, 99, refused=True))
    with at.cluster() as cluster:
        assert at.submit(run, cluster).submission == "unknown"
        at.site.faults.clear()
        assert at.reconcile(run, cluster).submission == "unknown"
        assert at.submit(run, cluster).submission == "unknown", "the workload is searched for, and not submitted again"
        later = time.time() + 301
        monkeypatch.setattr("llmb_tui.launch.runai.delivery.time.time", lambda: later)
        assert at.submit(run, cluster).submission == "unknown", "a submission never gives up"
        assert at.reconcile(run, cluster).submission == "withdrawn"
        with pytest.raises(LlmbError):
            at.submit(run, cluster)
    assert at.there() == {}


def test_a_cancel_is_kept_on_a_read_only_cluster(at: SubmitSite, monkeypatch: pytest.MonkeyPatch) -> None:
    run = at.new()
    at.site.faults.append(Fault(*CREATE, 99, refused=True))
    with at.cluster() as cluster:
        at.submit(run, cluster)
        at.site.faults.clear()
        later = time.time() + 301
        monkeypatch.setattr("llmb_tui.launch.runai.delivery.time.time", lambda: later)
        cluster.read_only = True
        assert at.reconcile(run, cluster).submission == "unknown"


@pytest.mark.parametrize("steps", [3, 5, 7, 8])
def test_a_submission_killed_at_any_step_can_be_continued(
    at: SubmitSite, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    run, killer = at.new(), Killer(monkeypatch)
    killer.after(steps)
    with at.cluster() as cluster, pytest.raises(KilledError):
        at.submit(run, cluster)
    with at.cluster() as cluster:
        again = at.submit(run, cluster)
    there = at.there()
    assert len(there) <= 1
    assert list(again.job_ids) == there.get(run.job_name, [])
    assert again.submission == ("submitted" if there else "unknown")


def test_two_programs_at_once_create_one_workload(at: SubmitSite) -> None:
    run, held = at.new(), threading.Event()
    at.site.faults.append(first := Fault(*CREATE, until=held))
    ended: list[Run] = []

    def program() -> None:
        with at.cluster() as cluster:
            ended.append(at.submit(run, cluster))

    threads = [threading.Thread(target=program) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert first.met.wait(30)
    with at.cluster() as cluster:
        assert at.reconcile(run, cluster).submission == "unknown", "the submitting program is not disturbed"
        with pytest.raises(LlmbError, match="being submitted"):
            withdraw(*at.program(), run)
    held.set()
    for thread in threads:
        thread.join()
    assert {thread.job_ids for thread in ended} == {tuple(at.there()[run.job_name])}
    assert at.site.request_count(*CREATE) == 1


def test_an_intent_whose_name_is_there_already_is_not_sent(at: SubmitSite) -> None:
    run = at.new()
    at.runs.save(run)
    with at.cluster() as cluster:
        text = cluster.api.create("distributed", json.loads(at.script(run)))
        assert at.submit(run, cluster).job_ids == (text,)
    assert at.site.request_count(*CREATE) == 1


def test_a_workload_that_was_deleted_meanwhile_is_still_found(at: SubmitSite) -> None:
    run = at.new()
    at.site.faults += [Fault(*CREATE, lost=True), Fault("GET", "/workloads$", 99, status=503)]
    with at.cluster() as cluster:
        assert at.submit(run, cluster).submission == "unknown"
        at.site.faults.clear()
        (identity,) = at.there()[run.job_name]
        assert cluster.cancel(identity)
        at.site.skip(3600)
        assert at.reconcile(run, cluster).job_ids == (identity,)
        assert cluster.query_jobs([identity])[identity].state == "CANCELLED"


def test_a_cancel_whose_answer_is_lost_is_open(at: SubmitSite) -> None:
    run = at.new()
    with at.cluster() as cluster:
        (identity,) = at.submit(run, cluster).job_ids
        at.site.faults.append(Fault("DELETE", "", 99, lost=True))
        with pytest.raises(CancelUnconfirmedError, match="is unknown"):
            cluster.cancel(identity)
        assert not at.site.workloads.all() or cluster.query_jobs([identity])[identity].state in (
            "COMPLETING",
            "CANCELLED",
        )
        at.site.faults.clear()
        at.site.skip(60)
        assert cluster.query_jobs([identity])[identity].state == "CANCELLED"
        assert not cluster.cancel(identity), "the workload has already ended"
