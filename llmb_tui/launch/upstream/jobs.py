"""`jobs_of_launch`: find the jobs that a launch has submitted among the user's jobs. Pure.

The launch script chooses the job names, so that a name does not identify the run. A job that the launch reports counts
if Slurm or NeMo-Run's own records confirm it. If it reports none, the jobs that appeared during the launch are checked
for the right name and folder, and for other launches. Two jobs of one name cannot be told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from llmb_tui.cluster.job import OwnJob
from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.validation import NAME, matches
from llmb_tui.language.text import clean_line
from llmb_tui.launch.delivery import Jobs
from llmb_tui.launch.spec import UpstreamSpec
from llmb_tui.launch.submission_status import SubmissionStatus
from llmb_tui.launch.upstream.output import Task, batch_job, indexed_tasks, task_from_script, tasks

CLOCKS_APART_S = 120.0
"""Largest expected difference between the clocks of the login node and of Slurm's controller."""
_LATEST_S = 300.0 + CLOCKS_APART_S
"""A batch script that Slurm accepted later than this after the launch's last sign of life belongs to another launch: a
busy controller takes no longer."""
_BEAT_S = 10.0
"""Largest age of the last sign of life of an active launch, which gives one every five seconds."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A job that may belong to the launch."""

    id: str
    name: str
    """Slurm job name."""
    task: Task | None = None


def jobs_of_launch(spec: UpstreamSpec, status: SubmissionStatus, jobs: Sequence[OwnJob]) -> Jobs:
    """The launch's jobs, as far as they are known. `jobs` are the user's jobs in Slurm since the launch began."""
    by_id = {job.id: job for job in jobs}
    if spec.how == "sbatch":
        job_id = batch_job(status.output)
        if job_id:
            return _named_batch(spec, job_id, status, by_id)
        return _unnamed(spec, status, _batches(spec, status, jobs))
    index = {task.job_id: task for task in indexed_tasks(status.values_of("index"), spec.results)}
    # A long output arrives without its beginning, but with the ids of all jobs in it.
    named: dict[str, Task | None] = dict.fromkeys(_words(status, "named"))
    named.update((task.job_id, task) for task in tasks(status.output, spec.results))
    if named:
        return _named_tasks(spec, named, by_id, index)
    return _unnamed(spec, status, _tasks(spec, status, jobs, index))


def _named_tasks(
    spec: UpstreamSpec, named: dict[str, Task | None], by_id: dict[str, OwnJob], index: dict[str, Task]
) -> Jobs:
    """Confirmed jobs that NeMo-Run has printed. None: only the id of the printed task is left."""
    candidates = []
    for job_id, printed in named.items():
        job, indexed = by_id.get(job_id), index.get(job_id)
        if job is None:
            if indexed is None or (printed or indexed) != indexed:
                return Jobs(question=_unconfirmed(spec, job_id))
            candidates.append(_Candidate(job_id, _name(spec, indexed), indexed))
            continue
        task = printed or indexed or task_from_script(job_id, job.script, spec.results)
        if not (job.name.endswith(f".{task.name}") if task else _has_its_name(spec, job.name)):
            return Jobs(question=_name_mismatch(spec, job_id, job.name))
        candidates.append(_Candidate(job_id, job.name, task))
    return _jobs_of(spec, candidates)


def _named_batch(spec: UpstreamSpec, job_id: str, status: SubmissionStatus, by_id: dict[str, OwnJob]) -> Jobs:
    """The job that sbatch has reported, if Slurm or its output file confirms it."""
    job = by_id.get(job_id)
    if job and job.name != spec.job_name:
        return Jobs(question=_name_mismatch(spec, job_id, job.name))
    if job is None and f"slurm-{job_id}.out" not in status.values_of("file"):
        return Jobs(question=_unconfirmed(spec, job_id))
    return Jobs((job_id,))


def _tasks(
    spec: UpstreamSpec, status: SubmissionStatus, jobs: Sequence[OwnJob], index: dict[str, Task]
) -> list[_Candidate]:
    """Jobs with NeMo-Run's name of the launch, which Slurm knows or NeMo-Run has recorded."""
    began, last_seen = status.time_of("began"), _last_seen(status)
    candidates = {
        task.job_id: _Candidate(task.job_id, _name(spec, task), task)
        for task in index.values()
        if _has_its_name(spec, _name(spec, task)) and began <= _made_at(task) <= last_seen + _BEAT_S
    }
    places = (spec.root, *status.values_of("place"))
    for job in jobs:
        task = task_from_script(job.id, job.script, spec.results)
        below = any(f"{job.folder}/".startswith(f"{place}/") for place in places)
        in_time = task is None or began <= _made_at(task) <= last_seen + _BEAT_S
        if _has_its_name(spec, job.name) and (task is not None or (not job.script and below)) and in_time:
            candidates[job.id] = _Candidate(job.id, job.name, task or candidates.get(job.id, _Candidate("", "")).task)
    return list(candidates.values())


def _batches(spec: UpstreamSpec, status: SubmissionStatus, jobs: Sequence[OwnJob]) -> list[_Candidate]:
    """Jobs with the script's name, submitted from the launch's folder and in time."""
    latest = _last_seen(status) + _LATEST_S
    places = (spec.directory, *status.values_of("place"))
    return [
        _Candidate(job.id, job.name)
        for job in jobs
        if job.name == spec.job_name and job.folder in places and job.submitted_at <= latest
    ]


def _unnamed(spec: UpstreamSpec, status: SubmissionStatus, candidates: Iterable[_Candidate]) -> Jobs:
    """Jobs of a launch that has ended without reporting a job."""
    of_launch = _new_candidates(status, candidates) if status.has_ended else []
    in_next = {candidate.id for candidate in of_launch} & set(_words(status, "next"))
    if of_launch and not in_next and "working" in status.values_of("last"):
        return Jobs(question="Another launch in the same folder is active, and its jobs are not known yet.")
    jobs = _jobs_of(spec, of_launch)
    ids = " and ".join(jobs.ids)
    note = f"{spec.script} reported no job; only {ids} appeared while it was active, with the right name and folder."
    return replace(jobs, note=note) if jobs.ids else jobs


def _new_candidates(status: SubmissionStatus, candidates: Iterable[_Candidate]) -> list[_Candidate]:
    """Candidates without older jobs and without those of other launches.

    A job that existed when the next launch in the same folder began belongs to this launch. If a hung controller
    accepted a job even later, that job belongs to none of the later launches.
    """
    before, of_others = set(_words(status, "before")), set(_words(status, "other"))
    new = [candidate for candidate in candidates if candidate.id not in before]
    following = status.values_of("next")
    if not following:
        return new
    witnessed = [candidate for candidate in new if candidate.id in _words(status, "next")]
    others_known = "lost" not in status.values_of("last")
    return witnessed or [candidate for candidate in new if candidate.id not in of_others and others_known]


def _jobs_of(spec: UpstreamSpec, candidates: Sequence[_Candidate]) -> Jobs:
    """The jobs, the benchmark without profile or trace last; a question if two jobs share a name."""
    if not candidates:
        return Jobs()
    names = [candidate.name for candidate in candidates]
    if len(set(names)) < len(names):
        ids = " and ".join(candidate.id for candidate in candidates)
        return Jobs(
            question=f"Jobs {ids} appeared while {spec.script} was active, and have the same name: it is unknown which "
            "one belongs to this run."
        )
    # The name of a profiled or traced run is the benchmark's name with a suffix.
    ordered = sorted(candidates, key=lambda candidate: (-len(candidate.name), int(candidate.id)))
    return Jobs(tuple(candidate.id for candidate in ordered), _log(ordered[-1]))


def _log(job: _Candidate) -> JobLog | None:
    """Log of a task's job; None if its folder is unknown."""
    if job.task is None or not matches(NAME, job.name):
        return None
    return JobLog.of_nemo_run(job.task.folder, job.name)


def _name(spec: UpstreamSpec, task: Task) -> str:
    return f"{spec.job_name.removesuffix(spec.experiment)}{task.name}"


def _has_its_name(spec: UpstreamSpec, name: str) -> bool:
    return name == spec.job_name or name.startswith(f"{spec.job_name}_")


def _made_at(task: Task) -> float:
    """Unix time at which NeMo-Run made the experiment, by the login node's clock, from the folder's name."""
    match = re.search(r"_(\d{9,11})/[^/]+$", task.folder, re.ASCII)
    return float(match[1]) if match else 0.0


def _last_seen(status: SubmissionStatus) -> float:
    """Unix time at which the launch ended, or gave its last sign of life."""
    return status.time_of("now") - status.age_s


def _words(status: SubmissionStatus, name: str) -> list[str]:
    return [word for value in status.values_of(name) for word in value.split()]


def _name_mismatch(spec: UpstreamSpec, job_id: str, name: str) -> str:
    return f"{spec.script} reported job {job_id}, but that job's name in Slurm is {clean_line(name)!r}."


def _unconfirmed(spec: UpstreamSpec, job_id: str) -> str:
    return f"{spec.script} reported job {job_id}, but Slurm knows no such job of yours since the launch began."
