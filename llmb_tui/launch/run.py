"""`Run`: one intent to train, from the moment it is journalled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from llmb_tui.catalog.recipe import LogFormatId, ResultRule
from llmb_tui.cluster.job import TERMINAL_STATES, Job
from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.scheduler_words import JobWords
from llmb_tui.cluster.slurm.words import SLURM_WORDS
from llmb_tui.language.states import Submission
from llmb_tui.launch.spec import LaunchSpec, RunaiSpec, SpecType, UpstreamSpec
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import ProcedureId
from llmb_tui.request import RunRequest

CancelOutcome = Literal["asked for", "carried out", "not carried out"]
"""`asked for`: it may still be carried out."""
_CARRIED_OUT_WITHIN_S = 300.0
"""A busy controller may cancel a job long after `scancel` gave up waiting for its answer."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """A request to cancel a job whose answer has not come; a later look at the job settles it."""

    job_id: str
    asked_at: float
    """Unix time."""
    outcome: CancelOutcome = "asked for"

    def settled(self, job: Job, now: float) -> Cancel:
        """What has become of it by what Slurm says of the job at `now`, Unix time."""
        outcome: CancelOutcome = "asked for"
        if job.finished:
            outcome = "carried out" if job.state == "CANCELLED" else "not carried out"
        elif job.goes_on and now - self.asked_at > _CARRIED_OUT_WITHIN_S:
            outcome = "not carried out"
        return replace(self, outcome=outcome)


@dataclass(frozen=True, slots=True)
class Run:
    """What is remembered of a run; its plan is the one that was shown before it was submitted."""

    id: str
    plan: Plan
    spec: LaunchSpec | UpstreamSpec | RunaiSpec | None
    """What it was submitted from; None for a run that somebody else submitted."""
    rule: ResultRule
    log_format: LogFormatId
    procedure: ProcedureId
    cluster: str
    """Name of the cluster profile."""
    created_at: float
    """Unix time of the intent."""
    submission: Submission = "intended"
    """`unknown`: the answer was lost; only a look at the cluster may settle it. `withdrawn`: it has no job, and it
    is certain that it never will."""
    job_ids: tuple[str, ...] = ()
    submitted_at: float | None = None
    job_state: str | None = None
    """Slurm's last known state of the job; of the last one, which is watched, where there are several."""
    job: Job | None = None
    """All that was last known of that job, but what grows while it goes on; None where an older version did not note
    it."""
    sent_at: float | None = None
    """Unix time at which its submission was begun; None before, and where an older version did not note it."""
    note: str = ""
    """Why it was refused, withdrawn or not sent, or what is unknown."""
    log: JobLog | None = None
    """Where the job writes, as its submission has said it; None where the spec says it, and while it is not known."""
    other_states: tuple[tuple[str, str], ...] = ()
    """(job id, Slurm's last known state) of the jobs before the last."""
    log_read: bool | None = None
    """True once the log was copied to its end after the job had ended, as long as that is not started once more; None
    where an older version did not note it."""
    cancel: Cancel | None = None
    """The last request to cancel a job of it, if its answer was lost."""
    changed: tuple[str, ...] = ()
    """Names of the variables that somebody changed who started it elsewhere."""

    @classmethod
    def of(cls, request: RunRequest, spec: LaunchSpec | UpstreamSpec | RunaiSpec, now: float) -> Run:
        """The intent to run a request by a spec that was made of it, at Unix time `now`."""
        recipe, cluster = request.recipe, request.profile.name
        rule, log_format = recipe.rule, recipe.launch.kind
        procedure = request.procedure
        return cls(spec.run_id, request.plan, spec, rule, log_format, procedure, cluster, now, log_read=False)

    def spec_as(self, kind: type[SpecType]) -> SpecType:
        """What it was submitted from. Raises TypeError for a run of another procedure."""
        if not isinstance(self.spec, kind):
            raise TypeError(f"run {self.id} has no {kind.__name__}")
        return self.spec

    @property
    def job_log(self) -> JobLog | None:
        """Where the job writes; None while that is not known."""
        return self.log or (self.spec.log if self.spec else None)

    @property
    def results(self) -> str:
        """Folder on the cluster with what a person may look for after it; empty where there is no such."""
        return self.spec.results_folder(self.log) if self.spec else ""

    @property
    def dependency(self) -> str:
        """As of its `RunRequest`; a cluster's profile has none of its own."""
        return (self.spec.sbatch_options.get("dependency") if self.spec else None) or ""

    @property
    def otherwise(self) -> tuple[str, ...]:
        """What was otherwise in the runs that the expected step time rests on, as far as it is known."""
        return self.spec.otherwise if self.spec else tuple(f"{name} changed" for name in self.changed)

    @property
    def words(self) -> JobWords:
        """What its jobs are called, and by whom they are scheduled."""
        return self.spec.job_words if self.spec else SLURM_WORDS  # llmb-run knows no other scheduler

    @property
    def job_name(self) -> str:
        """The job's name in Slurm, as far as it is known beforehand; empty where it is not."""
        return self.spec.job_name if self.spec else ""

    @property
    def going(self) -> bool:
        """True when the run may have a job that has not ended."""
        states = [self.state_of(job_id) for job_id in self.job_ids] or [self.job_state]
        return self.submission in ("submitted", "unknown") and not TERMINAL_STATES.issuperset(states)

    @property
    def cancel_note(self) -> str:
        """What became of a cancel whose answer was lost, in a sentence or two; empty where there is none such."""
        cancel, words = self.cancel, self.words
        if cancel is None:
            return ""
        job = f"{words.job} {cancel.job_id}"
        if cancel.outcome == "asked for":
            return f"{words.scheduler} was asked to cancel {job}, and its answer was lost: it may still do so."
        said = f"The cancel of {job}, whose answer was lost, was {cancel.outcome}"
        if cancel.outcome == "carried out":
            return f"{said}."
        state = self.state_of(cancel.job_id)
        if state in TERMINAL_STATES:
            return f"{said}: it ended as {state}."
        return f"{said}: the {words.job} goes on. Cancel it again if it should end."

    def state_of(self, job_id: str) -> str | None:
        """Slurm's last known state of one of the run's jobs."""
        return self.job_state if job_id == self.job_ids[-1] else dict(self.other_states).get(job_id)

    def seen(self, job: Job, now: float) -> Run:
        """The run with what Slurm says of one of its jobs at `now`, Unix time."""
        cancel = self.cancel
        if cancel is not None and cancel.job_id == job.id:
            cancel = cancel.settled(job, now)
        run = replace(self.with_state(job.id, job.state), cancel=cancel)
        if job.id not in self.job_ids[-1:]:
            return run
        # Without what is another at each look while it goes on.
        return replace(run, job=job if job.finished else replace(job, elapsed_s=None, starts_at=None, reason=""))

    def with_state(self, job_id: str, state: str) -> Run:
        """The run with what Slurm says of one of its jobs; a job that is none of its own changes nothing."""
        if job_id not in self.job_ids:
            return self
        if job_id == self.job_ids[-1]:
            again = self.job_state in TERMINAL_STATES and state not in TERMINAL_STATES
            return replace(self, job_state=state, log_read=False if again else self.log_read)
        return replace(self, other_states=tuple({**dict(self.other_states), job_id: state}.items()))
