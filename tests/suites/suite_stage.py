"""A runner of suites over a cluster whose answers the test sets; the runs are stored for real."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.language.states import Submission
from llmb_tui.launch.direct.spec_of import launch_spec
from llmb_tui.launch.policy import Policy
from llmb_tui.launch.prepared import PreparedRun
from llmb_tui.launch.readiness import ClusterEvidence
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.step_state import StepState
from llmb_tui.preflight.report import Check, Preflight
from llmb_tui.request import RunRequest
from llmb_tui.store.journal import Journal
from llmb_tui.store.paths import UserPaths
from llmb_tui.suites.runner import SuiteRunner
from llmb_tui.suites.suite import Suite
from llmb_tui.suites.suite_progress import SuiteProgress
from llmb_tui.suites.suites import Suites
from llmb_tui.watch.run_records import RunRecords
from llmb_tui.watch.state import RunsChanged
from tests.kit.runs import CATALOG

EOS = SlurmProfile("eos", "eos.example.com", "acct", "batch", "/lustre/llmb")


class Killed(BaseException):
    """The program was killed."""


@dataclass
class Stage:
    """One machine; `runner` is a program on it, which knows only the files on the disk."""

    folder: Path
    outcomes: dict[int, Submission | LlmbError] = field(default_factory=dict)
    """Result of the n-th submission, counted from 1; a missing one gets its job."""
    kill_at: int | None = None
    """Number of the possible interruption at which the program is killed."""
    ends: Callable[[Run], str] = lambda _: "COMPLETED"
    failed_checks: tuple[Check, ...] = ()
    jobs: list[tuple[str, str]] = field(default_factory=list)
    """(run, dependency) of every job that the cluster received."""
    most_going: int = 0
    moments: int = 0
    messages: list[str] = field(default_factory=list)
    settles_as: Submission = "submitted"
    crowd: int = 1
    """Number of running jobs at which one ends."""
    copied: bool = True
    """True to copy the log of a job as soon as the job has ended."""

    def __post_init__(self) -> None:
        places = UserPaths(self.folder / "config", self.folder / "state")
        self.runs = Runs(places)
        self.records = RunRecords(self.runs)
        self.clusters = SimpleNamespace(
            profile=lambda _: EOS, cluster=lambda _: self, require_withdrawing=lambda _: None
        )
        self.suites = Suites(places, self.runs, self.records, CATALOG, cast("Any", self.clusters), Policy())
        self.journal = Journal(places.journal)
        self.timing = SimpleNamespace(settle_every_s=0.01, look_every_s=0.01)
        self.policy = Policy()
        self._ended = threading.Event()

    @property
    def runner(self) -> SuiteRunner:
        launcher: Any = SimpleNamespace(
            with_answer_cache=lambda: launcher,
            evidence=lambda _: ClusterEvidence(Preflight(self.failed_checks), (StepState("a", "A", "done"),)),
            prepare=self.prepare,
            submit=self.submit,
            resume=self.resume,
            policy=self.policy,
            catalog=CATALOG,
            runs=self.runs,
            journal=self.journal,
        )
        feed, clusters = cast("Any", self), cast("Any", self.clusters)
        return SuiteRunner(self.suites, launcher, feed, clusters)

    def go(self, suite: Suite, stop: threading.Event | None = None) -> SuiteProgress:
        """Run one program that submits, until it ends or is killed."""
        return self.runner.submit(suite, self.messages.append, stop or threading.Event())

    # A cluster that always answers.

    read_only = False

    def require_changes(self) -> None: ...

    def connect(self, prompter: object) -> None: ...

    # A launcher that submits each run at most once.

    def prepare(self, request: RunRequest, run_id: str) -> PreparedRun:
        self.moment()
        return PreparedRun(request, Run.of(request, launch_spec(request, run_id), 1.0), "#!/bin/sh\n")

    def resume(self, request: RunRequest, run: Run, *, evidence: object) -> Run:
        prepared = self.prepare(replace(request, dependency=run.dependency), run.id)
        assert prepared.run.spec == run.spec
        return self.submit(prepared, evidence)

    def submit(self, prepared: PreparedRun, evidence: object) -> Run:
        assert evidence is not None
        with self.runs.lock(prepared.run.id):
            return self._submit(prepared.run, prepared.request.dependency)

    def _submit(self, run: Run, dependency: str) -> Run:
        assert not self.runs.has(run.id) or self.runs.load(run.id).submission == "intended"
        self.runs.save(run)
        self.moment()
        self.runs.save(run := replace(run, submission="unknown", sent_at=2.0 + len(self.jobs)))
        outcome = self.outcomes.pop(len(self.jobs) + 1, "submitted")
        if isinstance(outcome, LlmbError):
            self.runs.save(replace(run, submission="intended", sent_at=None))
            raise outcome
        if outcome == "submitted" or (outcome == "unknown" and self.settles_as == "submitted"):
            assert run.id not in dict(self.jobs), "a run was sent twice"
            self.jobs.append((run.id, dependency))
        self.moment()
        if outcome == "submitted":
            run = replace(run, submission="submitted", job_ids=(self._job(run.id),), job_state="RUNNING")
        self.runs.save(run := replace(run, submission=outcome))
        self.most_going = max(self.most_going, sum(one.is_active for one in self.runs.all()))
        self.moment()
        if outcome in ("refused", "withdrawn"):
            raise LlmbError(f"It was {outcome}.")
        return run

    def moment(self) -> None:
        self.moments += 1
        if self.moments == self.kill_at:
            raise Killed

    def _job(self, run_id: str) -> str:
        return str(100 + [one for one, _ in self.jobs].index(run_id))

    # A feed of runs: unknown runs are settled, and jobs end one after the other.

    def follow(self, post: Callable[[RunsChanged], object]) -> SimpleNamespace:
        ended = threading.Event()

        def play() -> None:
            while not ended.wait(0.002):
                for run in self.runs.all():
                    if run.submission == "unknown":
                        self.settle(run.id)
                        post(RunsChanged())
                active = [run for run in self.runs.all() if run.submission == "submitted" and run.is_active]
                if len(active) >= self.crowd:
                    last = self.ends(active[-1])
                    if last != "RUNNING":
                        self.runs.save(replace(active[-1], job_state=last, log_read=self.copied))
                        post(RunsChanged())

        thread = threading.Thread(target=play, daemon=True)
        thread.start()

        def end() -> None:
            ended.set()
            thread.join()

        return SimpleNamespace(end=end)

    def settle(self, run_id: str, prompter: object = None) -> Run:  # noqa: ARG002 - as the feed has it
        with self.runs.lock(run_id, wait=False) as mine:
            return self._settle(self.runs.load(run_id)) if mine else self.runs.load(run_id)

    def _settle(self, run: Run) -> Run:
        run_id = run.id
        if run.submission == "unknown":
            jobs = (self._job(run_id),) if run_id in dict(self.jobs) else ()
            submission: Submission = "submitted" if jobs else "withdrawn"
            self.runs.save(run := replace(run, submission=submission, job_ids=jobs, job_state="RUNNING"))
        return run

    def cancel(self, run: Run, prompter: object = None) -> tuple[str, ...]:  # noqa: ARG002 - as above
        self.runs.save(replace(run, job_state="CANCELLED"))
        return run.job_ids

    def monitor(self, run_id: str) -> SimpleNamespace:
        self.runs.save_log_read(run_id)
        return self.seen()

    @staticmethod
    def seen(link: str = "live", note: str = "", *, unread: bool = False) -> SimpleNamespace:
        """A monitor that returns this state at its first check."""
        state = SimpleNamespace(link=link, link_note=note, log_unread=unread)
        return SimpleNamespace(once=lambda: state)
