"""A new kind of cluster needs a folder and a line in each registry, as in docs/architecture.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.kinds import KINDS
from llmb_tui.cluster.profile_check import InvalidFieldError
from llmb_tui.launch.runs import Runs
from llmb_tui.preflight.kinds import PREFLIGHTS
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.forms.forms import FORMS
from tests.cluster.toy.kind import PREFLIGHT, TOY
from tests.cluster.toy.profile import ToyProfile
from tests.kit import verbs
from tests.kit.runs import make_run
from tests.watch.conftest import NEMO_LINE

RUN = "k3f9a2"
LOG = "".join(NEMO_LINE.format(i=i, last=49, seconds=1.98, samples=(i + 1) * 256) for i in range(20))


class Lab:
    """A user with a cluster of the toy scheduler, and its queue."""

    def __init__(self, home: Path) -> None:
        self._variables = verbs.environment(home)
        self.queue = home / "queue"
        self.queue.mkdir()
        self.places = UserPaths(home / "config", home / "state")

    def verb(self, *words: str, exit_code: int = 0) -> str:
        """Output of a verb."""
        result = verbs.run(words, self._variables)
        assert result.returncode == exit_code, result.stderr
        return result.stdout + result.stderr * (exit_code != 0)

    def add(self, *flags: str) -> None:
        self.verb("clusters", "add", "lab", "--kind", "toy", "--queue", str(self.queue), *flags)

    def start(self) -> None:
        """A run whose job is in the queue and writes its log."""
        (self.queue / "7.job").write_text("RUNNING")
        (self.queue / "7.log").write_text(LOG)
        log = JobLog(f"{self.queue}/%j.log")
        Runs(self.places).save(make_run(RUN, cluster="lab", job_ids=("7",), job_state="PENDING", log=log))

    def watched(self, exit_code: int = 0) -> Any:
        return json.loads(self.verb("watch", RUN, "--once", "--json", exit_code=exit_code))


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setitem(KINDS, "toy", TOY)
    monkeypatch.setitem(PREFLIGHTS, "toy", PREFLIGHT)
    return Lab(tmp_path)


def test_every_kind_of_cluster_has_checks_and_a_form() -> None:
    assert set(KINDS) == set(PREFLIGHTS) == set(FORMS)
    assert {name: kind.profile.kind for name, kind in KINDS.items()} == {name: name for name in KINDS}


def test_a_cluster_is_saved_by_its_flags_and_read_back(lab: Lab) -> None:
    lab.add("--env", "NCCL_DEBUG=INFO")
    assert 'kind = "toy"' in (lab.places.clusters / "lab.toml").read_text()
    (saved,) = json.loads(lab.verb("clusters", "--json"))
    assert (saved["kind"], saved["name"], saved["env"]) == ("toy", "lab", {"NCCL_DEBUG": "INFO"})
    services = Services(lab.places)
    assert services.clusters.profile("lab") == ToyProfile("lab", str(lab.queue), env=(("NCCL_DEBUG", "INFO"),))


def test_a_wrong_field_is_refused_by_the_kind_when_saved_and_when_read(lab: Lab) -> None:
    refused = lab.verb("clusters", "add", "lab", "--kind", "toy", "--queue", "here", exit_code=1)
    assert "The cluster's queue cannot be 'here'. Give an absolute path." in " ".join(refused.split())
    with pytest.raises(InvalidFieldError, match="queue"):
        Services(lab.places).clusters.save(ToyProfile("lab", "here"))
    lab.add()
    file = lab.places.clusters / "lab.toml"
    file.write_text(file.read_text().replace(str(lab.queue), "here"))
    assert "queue" in lab.verb("config", "validate", exit_code=1)


def test_an_unreachable_cluster_is_reported(lab: Lab) -> None:
    lab.add()
    lab.queue.rmdir()
    assert f"There is no queue at {lab.queue}." in lab.verb("doctor", "lab", exit_code=2)


def test_doctor_runs_the_checks_of_the_scheduler(lab: Lab) -> None:
    lab.add()
    checks = json.loads(lab.verb("doctor", "lab", "--json"))["checks"]
    assert [(check["id"], check["status"], check["found"]) for check in checks] == [("queue", "ok", "0 tasks")]


def test_a_run_is_watched_to_its_cancel(lab: Lab) -> None:
    lab.add()
    lab.start()
    state = lab.watched()
    assert (state["state"], state["steps_done"], state["median_step_time_s"]) == ("measuring", 20, 1.98)
    assert lab.verb("logs", RUN).count("global_step") == 20
    lab.verb("cancel", RUN, "--yes")
    assert (lab.queue / "7.job").read_text() == "CANCELLED"
    assert lab.watched(exit_code=4)["state"] == "cancelled"
    path = Runs(lab.places).folder(RUN)
    assert (path / "log").read_text() == LOG
    assert (path / "accounting.txt").read_text() == "7 CANCELLED\n"


def test_nothing_is_cancelled_on_a_read_only_cluster(lab: Lab) -> None:
    lab.add("--read-only")
    lab.start()
    assert "lab is read-only" in lab.verb("cancel", RUN, "--yes", exit_code=1)
    assert (lab.queue / "7.job").read_text() == "RUNNING"
