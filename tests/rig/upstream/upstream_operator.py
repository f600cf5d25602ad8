"""`Operator`: a user with a laptop who uses only the verbs, and an empty install directory on the rig."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.cli import main
from llmb_tui.launch.readiness import ClusterEvidence
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import UpstreamSpec
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.timing import Timing
from tests.kit.waiting import until
from tests.recipes.outside import Outside
from tests.rig.jobs.watched import WatchedRun

CLUSTER = "rig"
RECIPE = ("--procedure", "upstream")
ReadOutput = Callable[[], "tuple[str, str]"]
"""Reader of the stdout and stderr that were written since the last call."""


class Operator:
    """The user's verbs, run in this process because only this process has presets with the stand-ins' commits."""

    def __init__(self, outside: Outside, places: UserPaths, read_output: ReadOutput, **profile: Any) -> None:
        self.outside = outside
        self.rig = outside.rig
        self.install = self.rig.new_dir()
        self.places = places
        self._read_output = read_output
        self.watching: list[WatchedRun] = []
        services = Services(places)
        services.clusters.save(self.rig.profile(name=CLUSTER, install_dir=str(self.install), **profile))

    def verb(self, *words: str, code: int = 0) -> str:
        """Run a verb and check its exit code; returns its output."""
        exit_code = main(words)
        answer, errors = self._read_output()
        assert exit_code == code, f"{answer}\n{errors}"
        return answer

    def document(self, *words: str, code: int = 0) -> Any:
        """Run a verb; returns its JSON document, or the document in its last line."""
        return json.loads(self.verb(*words, "--json", code=code).splitlines()[-1])

    def give_token(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put the Hugging Face token on the cluster."""
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{self.outside.hub_token}\n"))
        self.verb("secrets", CLUSTER, "--give", "hugging-face")

    def preflight(self, selection: tuple[str, ...]) -> None:
        """Assert that everything that the launch method needs is there."""
        report = self.document("doctor", CLUSTER, *selection, *RECIPE)
        assert report["passed"], report

    def installed(self, selection: tuple[str, ...]) -> None:
        """Install by the recipe's own setup script, twice; the second install finds nothing to do."""
        logs = []
        for _ in range(2):
            steps = self.document("install", CLUSTER, *selection, *RECIPE)
            assert {step["status"] for step in steps} == {"done"}
            logs.append({path: path.read_text() for path in self.install.glob(".llmb-tui/steps/*/log*")})
        assert logs[0] == logs[1]
        assert {path.name for path in logs[0]} == {"log"}, "a step was started twice"
        assert not any(self.outside.hub_token in log for log in logs[0].values())

    def set_pace(self, selection: tuple[str, ...], speed: str = "2000") -> None:
        """Set the training stand-in to the plan's expected step time, on a fast clock."""
        expected = self.document("plan", *selection)["estimate"]
        self.rig.set("step-s", str(expected["step_time_s"]))
        self.rig.set("speed", speed)

    def submit(self, selection: tuple[str, ...]) -> Run:
        """Submit by the recipe's own launch script."""
        answer = self.document("submit", "--cluster", CLUSTER, *selection, *RECIPE, "--yes")
        assert answer["procedure"] == "upstream"
        run = self.run(answer["id"])
        assert run.submission == "submitted"
        return run

    def launch(self, selection: Selection, *variables: str) -> Run:
        """Launch a selection with additional variables, as a user's own shell could set them."""
        services = Services(self.places)
        request = services.request(CLUSTER, plan(services.catalog, selection), "upstream")
        prepared = services.launcher.prepare(request)
        evidence = ClusterEvidence(services.launcher.preflight(request), services.launcher.installer(request).probe())
        command = prepared.script.replace("./launch.sh", " ".join((*variables, "./launch.sh")))
        spec = replace(spec_of(prepared.run), command=command)
        return services.launcher.submit(
            replace(prepared, run=replace(prepared.run, spec=spec), script=command), evidence
        )

    def run(self, run_id: str) -> Run:
        """The stored run."""
        return Services(self.places).runs.load(run_id)

    def watched(self, run: Run) -> WatchedRun:
        """Watch a run in a thread, as the screen does."""
        services = Services(self.places, timing=Timing(look_every_s=1.0))
        poller = services.clusters.poller(CLUSTER)
        self.watching.append(WatchedRun(services.feed.monitor(run.id), poller, run.job_ids[-1]))
        return self.watching[-1]

    def requeue(self, run: Run) -> None:
        """Have Slurm start the run's job again, soon; without any wait the start fails."""
        job = run.job_ids[-1]
        self.rig.as_operator(["scontrol", "requeue", job], check=True)
        waiting = ["squeue", "-h", "-j", job, "-t", "PENDING", "-o", "%r"]
        until(lambda: self.rig.as_operator(waiting).stdout.strip() == "BeginTime", "it waits")
        self.rig.as_operator(["scontrol", "update", f"jobid={job}", "StartTime=now+3"], check=True)

    def leave(self) -> None:
        """Stop watching all runs."""
        for watched in self.watching:
            watched.leave()

    def copy(self, run: Run, restart: int = 0) -> Path:
        """Path of a log's local copy."""
        return Services(self.places).runs.folder(run.id) / (f"log.{restart}" if restart else "log")


def spec_of(run: Run) -> UpstreamSpec:
    """Spec with which a run was launched."""
    assert isinstance(run.spec, UpstreamSpec)
    return run.spec


def remote_log(run: Run, restart: int = 0) -> Path:
    """Path of the training log, which is the same on the cluster and here."""
    assert run.job_log is not None
    return Path(run.job_log.path(run.job_ids[-1], restart))
