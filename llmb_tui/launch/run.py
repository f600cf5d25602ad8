"""`Run`: one training run, from the moment its intent is in the journal."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from llmb_tui.catalog.recipe import LogFormatId, ResultRule
from llmb_tui.cluster.job import END_UNKNOWN, GONE_AFTER_S, LEFT_QUEUE, TERMINAL_STATES, Job
from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.scheduler_words import JobWords
from llmb_tui.cluster.slurm.words import SLURM_WORDS
from llmb_tui.language.states import Submission
from llmb_tui.launch.spec import LaunchSpec, RunaiSpec, SpecType, UpstreamSpec
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import ProcedureId
from llmb_tui.request import RunRequest

CancelOutcome = Literal["asked for", "carried out", "not carried out"]
"""`asked for`: the cancel may still be carried out."""
_CARRIED_OUT_WITHIN_S = 300.0
"""A busy controller may cancel a job long after `scancel` stopped waiting for its answer."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """A request to cancel a job, whose answer was lost; a later look at the job settles the outcome."""

    job_id: str
    asked_at: float
    """Unix time."""
    outcome: CancelOutcome = "asked for"

    def with_job_state(self, job: Job, now: float) -> Cancel:
        """The cancel with the outcome that follows from the state of its job at `now`, Unix time."""
        outcome: CancelOutcome = "asked for"
        if job.finished:
            outcome = "carried out" if job.state == "CANCELLED" else "not carried out"
        elif job.goes_on and now - self.asked_at > _CARRIED_OUT_WITHIN_S:
            outcome = "not carried out"
        return replace(self, outcome=outcome)


@dataclass(frozen=True, slots=True)
class Run:
    """Record of one run; its plan is the one that was shown before the submission."""

    id: str
    plan: Plan
    spec: LaunchSpec | UpstreamSpec | RunaiSpec | None
    """Spec that it was submitted from; None for a run that another program submitted."""
    rule: ResultRule
    log_format: LogFormatId
    procedure: ProcedureId
    cluster: str
    """Name of the cluster profile."""
    created_at: float
    """Unix time of the intent."""
    submission: Submission = "intended"
    """`unknown`: the answer was lost, and only a look at the cluster may settle it. `withdrawn`: it is certain that it
    has no job and never will."""
    job_ids: tuple[str, ...] = ()
    submitted_at: float | None = None
    job_state: str | None = None
    """Slurm's last known state of the job; if there are several jobs, of the last one, which is watched."""
    job: Job | None = None
    """Last known details of that job, without values that change while it runs; None if an older version did not
    store them."""
    sent_at: float | None = None
    """Unix time of the start of its submission; None before, and if an older version did not store it."""
    note: str = ""
    """Why it was rejected, withdrawn or not submitted, or what is unknown about it."""
    log: JobLog | None = None
    """Log of the job, as its submission reported it; None if the spec has it, and while it is unknown."""
    other_states: tuple[tuple[str, str], ...] = ()
    """(job id, Slurm's last known state) of the jobs before the last one."""
    log_read: bool | None = None
    """True once the log was copied to its end after the job ended, unless the job was started again; None if an older
    version did not store it."""
    cancel: Cancel | None = None
    """Last request to cancel one of its jobs, if its answer was lost."""
    changed: tuple[str, ...] = ()
    """Variables that were changed for a run that another program started, by name."""
    left_queue: tuple[tuple[str, float], ...] = field(default=(), metadata={"optional": True})
    """(job id, Unix time of the first answer without it) of each job that has left the queue of a cluster whose
    accounting cannot be queried."""

    @classmethod
    def of(cls, request: RunRequest, spec: LaunchSpec | UpstreamSpec | RunaiSpec, now: float) -> Run:
        """The intent to run a request with a spec that was made from it, at Unix time `now`."""
        recipe, cluster = request.recipe, request.profile.name
        rule, log_format = recipe.rule, recipe.launch.kind
        procedure = request.procedure
        return cls(spec.run_id, request.plan, spec, rule, log_format, procedure, cluster, now, log_read=False)

    def spec_as(self, kind: type[SpecType]) -> SpecType:
        """The spec, as the given type. Raises TypeError for a run of another procedure."""
        if not isinstance(self.spec, kind):
            raise TypeError(f"run {self.id} has no {kind.__name__}")
        return self.spec

    @property
    def job_log(self) -> JobLog | None:
        """Log of the job; None while it is unknown."""
        return self.log or (self.spec.log if self.spec else None)

    @property
    def results(self) -> str:
        """Results folder on the cluster, for the user to look into; empty if there is none."""
        return self.spec.results_folder(self.log) if self.spec else ""

    @property
    def dependency(self) -> str:
        """Slurm dependency, as in its `RunRequest`; a cluster's profile cannot set one."""
        return (self.spec.sbatch_options.get("dependency") if self.spec else None) or ""

    @property
    def differences_from_reference(self) -> tuple[str, ...]:
        """Known differences from the runs that the expected step time is based on."""
        return self.spec.otherwise if self.spec else tuple(f"{name} changed" for name in self.changed)

    @property
    def words(self) -> JobWords:
        """Names of its jobs and of their scheduler."""
        return self.spec.job_words if self.spec else SLURM_WORDS  # llmb-run knows no other scheduler

    @property
    def job_name(self) -> str:
        """Slurm job name, as far as it is known beforehand; empty if it is not."""
        return self.spec.job_name if self.spec else ""

    @property
    def is_active(self) -> bool:
        """True if the run may have a job that has not ended."""
        states = [self.state_of(job_id) for job_id in self.job_ids] or [self.job_state]
        return self.submission in ("submitted", "unknown") and not TERMINAL_STATES.issuperset(states)

    @property
    def cancel_note(self) -> str:
        """Outcome of a cancel whose answer was lost, one or two sentences; empty if there is no such cancel."""
        cancel, words = self.cancel, self.words
        if cancel is None:
            return ""
        job = f"{words.job} {cancel.job_id}"
        if cancel.outcome == "asked for":
            return f"{words.scheduler} was asked to cancel {job}, and its answer was lost: it may still cancel it."
        result = f"The cancel of {job}, whose answer was lost, was {cancel.outcome}"
        if cancel.outcome == "carried out":
            return f"{result}."
        state = self.state_of(cancel.job_id)
        if state in TERMINAL_STATES:
            return f"{result}: it ended as {state}."
        return f"{result}: the {words.job} is still active. Cancel it again to end it."

    def state_of(self, job_id: str) -> str | None:
        """Slurm's last known state of one of the run's jobs."""
        return self.job_state if job_id == self.job_ids[-1] else dict(self.other_states).get(job_id)

    def seen(self, job: Job, now: float) -> Run:
        """The run, updated by the details of one of its jobs at `now`, Unix time."""
        left_queue = dict(self.left_queue)
        if job.state == LEFT_QUEUE:
            return self._without_job(job, left_queue.get(job.id, now), now)
        if left_queue.pop(job.id, None) is not None:
            return replace(self, left_queue=tuple(left_queue.items())).seen(job, now)
        cancel = self.cancel
        if cancel is not None and cancel.job_id == job.id:
            cancel = cancel.with_job_state(job, now)
        run = replace(self.with_state(job.id, job.state), cancel=cancel)
        if job.id not in self.job_ids[-1:]:
            return run
        # Without the values that differ at each look while it runs.
        reason = job.reason if job.waiting else ""
        return replace(run, job=job if job.finished else replace(job, elapsed_s=None, starts_at=None, reason=reason))

    def _without_job(self, job: Job, since: float, now: float) -> Run:
        """The run, whose `job` has not been in the queue from `since` until `now`, Unix times."""
        if job.id not in self.job_ids or self.state_of(job.id) in TERMINAL_STATES:
            return self
        run = replace(self, left_queue=tuple({**dict(self.left_queue), job.id: since}.items()))
        if now - since < GONE_AFTER_S:
            return run
        if run.cancel is not None and run.cancel.job_id == job.id:
            run = replace(run, cancel=None)  # nothing will tell whether the cancel or something else ended it
        run = run.with_state(job.id, END_UNKNOWN)
        if job.id != self.job_ids[-1]:
            return run
        return replace(run, job=replace(self.job or job, state=END_UNKNOWN, reason=job.reason))

    def with_state(self, job_id: str, state: str) -> Run:
        """The run with the state of one of its jobs; the job of another run changes nothing."""
        if job_id not in self.job_ids:
            return self
        if job_id == self.job_ids[-1]:
            restarted = self.job_state in TERMINAL_STATES and state not in TERMINAL_STATES
            return replace(self, job_state=state, log_read=False if restarted else self.log_read)
        return replace(self, other_states=tuple({**dict(self.other_states), job_id: state}.items()))
