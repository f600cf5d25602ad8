"""An install whose checks show a step and then do not, without a cluster and without waiting."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from llmb_tui.cluster.session import Session
from llmb_tui.errors import LlmbError
from llmb_tui.launch.install import Installer
from llmb_tui.launch.install_step import InstallStep, StepJob
from tests.launch.launch_cases import PROFILE

STEP = InstallStep("setup", "Set up", ("/made",), "true", ())


class Looks:
    """Session whose checks return these states in turn, with a fixed number of seconds between them."""

    state = "live"

    def __init__(self, *states: str, every_s: float) -> None:
        self.states = list(states)
        self.every_s = every_s
        self.now = 1000.0

    def require_changes(self) -> None: ...

    def run(self, *_: object, **__: object) -> SimpleNamespace:
        self.now += self.every_s
        return SimpleNamespace(exit_code=0, stdout=f"= {self.states.pop(0)} 0 0 0 0 -\n", stderr="")

    def run_script(self, *_: object, **__: object) -> SimpleNamespace:
        return SimpleNamespace(exit_code=0, stdout="", stderr="")

    def write_file(self, *_: object) -> None: ...


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("llmb_tui.launch.install.LOOK_EVERY_S", 0.0)

    def run(looks: Looks, step: InstallStep) -> list[str]:
        monkeypatch.setattr("llmb_tui.launch.install.time", SimpleNamespace(monotonic=lambda: looks.now))
        seen: list[str] = []
        installer = Installer(cast("Session", looks), PROFILE, (step,))
        installer.run(lambda states: seen.append(states[0].status), threading.Event())
        return seen

    return run


def test_a_step_that_has_ended_is_waited_for_until_its_result_is_seen(install: Any) -> None:
    looks = Looks("missing", *["running"] * 5, "missing", "missing", "done", every_s=10)
    assert install(looks, STEP) == ["missing", "running", "missing", "done"]


def test_files_of_a_job_may_appear_a_minute_later(install: Any) -> None:
    """A network file system caches that a file is missing."""
    looks = Looks("missing", "waiting", "running", *["missing"] * 6, "done", every_s=10)
    assert install(looks, InstallStep("setup", "Set up", ("/made",), "true", (), in_job=StepJob("", ())))[-1] == "done"


def test_a_step_without_any_trace_did_not_start(install: Any) -> None:
    with pytest.raises(LlmbError, match="did not start on the cluster") as caught:
        install(Looks(*["missing"] * 9, every_s=10), STEP)
    assert caught.value.why == "The cluster has shown no trace of it for 30 s."
