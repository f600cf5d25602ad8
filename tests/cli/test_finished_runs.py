"""A finished and copied run no longer needs its cluster, which may be unreachable or removed here."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from llmb_tui.cli import main
from llmb_tui.cluster.login_profile import NO_SSH_CONFIG
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.run import Cancel, Run
from llmb_tui.launch.runs import ACCOUNTING
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.suites.suite import make_suite
from llmb_tui.watch.monitor import Monitor
from llmb_tui.watch.runs_feed import RunsFeed
from llmb_tui.watch.state import RunState
from tests.kit.runs import NEMOTRON, make_run

# Nothing listens on its port.
EOS = SlurmProfile("eos", "127.0.0.1", "acct", "batch", "/lustre", port=9, user="me", ssh_config=NO_SSH_CONFIG)
STEP = "Training epoch 0, iteration {0}/49 | global_step: {0} | train_step_timing in s: {1}\n"
SUITE = "s251123080000aaaa"


@pytest.fixture(params=["out of reach", "not saved"])
def services(request: pytest.FixtureRequest, user_places: UserPaths, monkeypatch: pytest.MonkeyPatch) -> Services:
    """Services on a machine from which the cluster cannot be reached."""

    def wait(*_: object) -> None:
        raise AssertionError("it waits for a cluster that does not come back")

    monkeypatch.setattr(Monitor, "watch", wait)
    services = Services(user_places)
    if request.param == "out of reach":
        services.clusters.save(EOS)
    return services


def over(run_id: str = "over", job_state: str = "COMPLETED") -> Run:
    return make_run(run_id, job_state=job_state, log_read=True)


def remember(services: Services, run: Run, steps: int = 50, seconds: float = 1.98) -> None:
    services.runs.save(run)
    text = "".join(STEP.format(step, seconds) for step in range(steps))
    (services.runs.folder(run.id) / "log").write_text(text)


@pytest.mark.parametrize(
    ("job_state", "steps", "seconds", "word", "code"),
    [
        ("COMPLETED", 50, 1.98, "done", 0),
        ("COMPLETED", 50, 9.9, "done", 3),
        ("FAILED", 10, 1.98, "failed", 4),
        ("FAILED", 0, 1.98, "failed", 4),
        ("CANCELLED", 10, 1.98, "cancelled", 4),
    ],
)
@pytest.mark.parametrize("accounting", [True, False])
def test_watch_prints_the_end_of_a_finished_run(
    services: Services,
    capsys: pytest.CaptureFixture[str],
    *,
    job_state: str,
    steps: int,
    seconds: float,
    word: str,
    code: int,
    accounting: bool,
) -> None:
    remember(services, over(job_state=job_state), steps, seconds)
    if accounting:
        (services.runs.folder("over") / ACCOUNTING).write_text("48123\n")
    for once in ((), ("--once",)):
        assert main(["watch", "over", *once, "--json"]) == code
        printed = capsys.readouterr()
        assert (json.loads(printed.out)["state"], printed.err) == (word, "")
        assert main(["watch", "over", *once]) == code
        assert word in capsys.readouterr().out


def test_a_run_without_a_job_needs_no_cluster(services: Services, capsys: pytest.CaptureFixture[str]) -> None:
    services.runs.save(make_run("none", submission="refused", job_ids=(), job_state=None, note="Slurm refused it."))
    for words in (["watch", "none"], ["watch", "none", "--once"]):
        assert main([*words, "--json"]) == 4
        assert json.loads(capsys.readouterr().out)["state"] == "refused"
    for words in (["logs", "none"], ["logs", "none", "-f"], ["cancel", "none", "--yes"]):
        assert main(words) == 0
        assert "Slurm refused it." in capsys.readouterr().err


@pytest.mark.parametrize("follow", [(), ("-f",)])
def test_logs_prints_the_local_copy(
    services: Services, follow: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    remember(services, over())
    assert main(["logs", "over", *follow]) == 0
    printed = capsys.readouterr()
    assert (len(printed.out.splitlines()), printed.err) == (50, "")
    remember(services, over("empty", "FAILED"), 0)
    assert main(["logs", "empty", *follow]) == 0
    assert "has no line of its log" in capsys.readouterr().err


def test_an_incomplete_copy_is_reported_by_logs_and_enough_for_watch(
    services: Services, capsys: pytest.CaptureFixture[str]
) -> None:
    """The copy has the last step, but not the lines after it."""
    remember(services, replace(over(), log_read=False))
    assert main(["logs", "over"]) in (1, 2)
    assert capsys.readouterr().err
    assert main(["watch", "over", "--once"]) == main(["watch", "over"]) == 0


@pytest.mark.parametrize("read_only", [(), ("--read-only",)])
def test_a_finished_run_is_not_cancelled(
    services: Services, read_only: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    remember(services, replace(over(), cancel=Cancel("48123", 0.0, "not carried out")))
    for yes in ((), ("--yes",)):
        assert main(["cancel", "over", *yes, "--json", *read_only]) == 0
        printed = capsys.readouterr()
        assert json.loads(printed.out) == {"id": "over", "cancelled": []}
        assert "it ended as COMPLETED" in printed.err
    assert main(["cancel", "over"]) == 0
    assert "Job 48123 was over already: nothing was cancelled." in capsys.readouterr().err


def test_an_active_run_needs_its_cluster(services: Services, capsys: pytest.CaptureFixture[str]) -> None:
    remember(services, make_run("going"), 10)
    remember(services, make_run("unread", job_state="COMPLETED", log_read=False), 10)
    for words in (["cancel", "going", "--yes"], ["watch", "going", "--once"], ["watch", "unread", "--once"]):
        assert main(words) in (1, 2)
        assert capsys.readouterr().err
    assert main(["logs", "unread"]) in (1, 2)


def test_a_finished_suite_needs_no_cluster(services: Services, capsys: pytest.CaptureFixture[str]) -> None:
    suite = make_suite("mine", "eos", [(NEMOTRON, "direct")] * 2)
    rows = tuple(replace(row, run_id=f"row{index}") for index, row in enumerate(suite.rows))
    services.suites.save(replace(suite, id=SUITE, rows=rows))
    remember(services, over("row0"))
    remember(services, over("row1", "FAILED"), 10)
    for once in ((), ("--once",)):
        assert main(["suite", "watch", SUITE, *once, "--json"]) == 4
        printed = capsys.readouterr()
        assert (json.loads(printed.out)["id"], printed.err) == (SUITE, "")
    assert main(["suite", "cancel", SUITE, "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cancelled"] == []
    services.runs.save(replace(over("row1", "FAILED"), log_read=False))
    assert main(["suite", "watch", SUITE, "--once"]) in (1, 2), "the rest of its log is on the cluster"


def test_missing_data_of_a_finished_run_is_read_once(
    user_places: UserPaths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    services = Services(user_places)
    remember(services, over())
    file = services.runs.folder("over") / ACCOUNTING
    requests: list[object] = []

    class ActionRequested:
        def once(self, prompter: object = None) -> RunState:
            requests.append(prompter)
            file.write_text("48123\n")
            return RunState("over", link="lost")

    monkeypatch.setattr(RunsFeed, "monitor", lambda *_: ActionRequested())
    for _ in range(2):
        assert main(["watch", "over", "--once", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["state"] == "done"
    assert requests == [None], "the end of a run is shown without a question"
