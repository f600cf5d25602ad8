"""`Operator`: somebody with a laptop who only knows the verbs, and an empty install directory on the rig."""

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
from tests.rig.jobs.watched import Watched

CLUSTER = "rig"
RECIPE = ("--procedure", "upstream")
Said = Callable[[], "tuple[str, str]"]
"""What was written to stdout and stderr since the last time."""


class Operator:
    """What they do is done in this process, because the presets with the stand-ins' commits are known here only."""

    def __init__(self, outside: Outside, places: UserPaths, said: Said, **profile: Any) -> None:
        self.outside = outside
        self.rig = outside.rig
        self.install = self.rig.new_dir()
        self.places = places
        self._said = said
        self.watching: list[Watched] = []
        services = Services(places)
        services.clusters.save(self.rig.profile(name=CLUSTER, install_dir=str(self.install), **profile))

    def verb(self, *words: str, code: int = 0) -> str:
        """What a verb prints; its exit code is checked."""
        found = main(words)
        answer, words_beside = self._said()
        assert found == code, f"{answer}\n{words_beside}"
        return answer

    def document(self, *words: str, code: int = 0) -> Any:
        """The JSON that a verb prints, or the last line of it."""
        return json.loads(self.verb(*words, "--json", code=code).splitlines()[-1])

    def give_token(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put the Hugging Face token on the cluster."""
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{self.outside.hub_token}\n"))
        self.verb("secrets", CLUSTER, "--give", "hugging-face")

    def preflight(self, selection: tuple[str, ...]) -> None:
        """Everything that the procedure needs is there."""
        report = self.document("doctor", CLUSTER, *selection, *RECIPE)
        assert report["passed"], report

    def installed(self, selection: tuple[str, ...]) -> None:
        """Install by the recipe's own setup script; the second time there is nothing to do, and nothing is done."""
        logs = []
        for _ in range(2):
            steps = self.document("install", CLUSTER, *selection, *RECIPE)
            assert {step["status"] for step in steps} == {"done"}
            logs.append({path: path.read_text() for path in self.install.glob(".llmb-tui/steps/*/log*")})
        assert logs[0] == logs[1]
        assert {path.name for path in logs[0]} == {"log"}, "every step was started once"
        assert not any(self.outside.hub_token in log for log in logs[0].values())

    def set_pace(self, selection: tuple[str, ...], speed: str = "2000") -> None:
        """The stand-in for the training takes the time that the plan expects, on a fast clock."""
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
        """Launch a selection with more variables than it means, as a person's own shell could have them."""
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
        """What is remembered of a run."""
        return Services(self.places).runs.load(run_id)

    def watched(self, run: Run) -> Watched:
        """Watch a run in a thread, as the screen does."""
        services = Services(self.places, timing=Timing(look_every_s=1.0))
        poller = services.clusters.poller(CLUSTER)
        self.watching.append(Watched(services.feed.monitor(run.id), poller, run.job_ids[-1]))
        return self.watching[-1]

    def requeue(self, run: Run) -> None:
        """Have Slurm start the run's job again, soon; where it does not wait at all, the start fails."""
        job = run.job_ids[-1]
        self.rig.as_operator(["scontrol", "requeue", job], check=True)
        waiting = ["squeue", "-h", "-j", job, "-t", "PENDING", "-o", "%r"]
        until(lambda: self.rig.as_operator(waiting).stdout.strip() == "BeginTime", "it waits")
        self.rig.as_operator(["scontrol", "update", f"jobid={job}", "StartTime=now+3"], check=True)

    def leave(self) -> None:
        """Watch nothing any more."""
        for watched in self.watching:
            watched.leave()

    def copy(self, run: Run, restart: int = 0) -> Path:
        """The copy of a log here."""
        return Services(self.places).runs.folder(run.id) / (f"log.{restart}" if restart else "log")


def spec_of(run: Run) -> UpstreamSpec:
    """What it was launched with."""
    assert isinstance(run.spec, UpstreamSpec)
    return run.spec


def remote_log(run: Run, restart: int = 0) -> Path:
    """The training log on the cluster, which lies at the same path here."""
    assert run.job_log is not None
    return Path(run.job_log.path(run.job_ids[-1], restart))
