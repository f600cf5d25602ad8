"""`jobs_of_launch`: which of the user's jobs a launch has submitted. Pure.

The launch script fixes the names, so that they are not the run's alone. A job that the launch names is taken where
Slurm, or what NeMo-Run wrote down, says so too. Where it named none, the jobs that came while it was at work are looked
at: of the right name, from the right folder, and of no other launch. Two of one name cannot be told apart.
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
from llmb_tui.launch.upstream.output import Task, batch_job, indexed_tasks, of_script, tasks

CLOCKS_APART_S = 120.0
"""How far the clocks of the login node and of Slurm's controller may be apart."""
_LATEST_S = 300.0 + CLOCKS_APART_S
"""A batch script that Slurm took later than this after the launch was last seen is not the launch's: a busy controller
takes no longer."""
_BEAT_S = 10.0
"""A launch is seen to be alive every five seconds."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A job that may be one of the launch."""

    id: str
    name: str
    """Of the job, in Slurm."""
    task: Task | None = None


def jobs_of_launch(spec: UpstreamSpec, status: SubmissionStatus, jobs: Sequence[OwnJob]) -> Jobs:
    """What is known of the launch's jobs. `jobs` are the user's since the launch began, as far as Slurm knows them."""
    by_id = {job.id: job for job in jobs}
    if spec.how == "sbatch":
        job_id = batch_job(status.words)
        if job_id:
            return _named_batch(spec, job_id, status, by_id)
        return _unnamed(spec, status, _batches(spec, status, jobs))
    index = {task.job_id: task for task in indexed_tasks(status.all("index"), spec.results)}
    # Of a long output only the end comes, and the numbers of all jobs in it.
    named: dict[str, Task | None] = dict.fromkeys(_words(status, "named"))
    named.update((task.job_id, task) for task in tasks(status.words, spec.results))
    if named:
        return _named_tasks(spec, named, by_id, index)
    return _unnamed(spec, status, _tasks(spec, status, jobs, index))


def _named_tasks(
    spec: UpstreamSpec, named: dict[str, Task | None], by_id: dict[str, OwnJob], index: dict[str, Task]
) -> Jobs:
    """The jobs that NeMo-Run has printed, each of which has a second witness. None: only the number is left of it."""
    candidates = []
    for job_id, printed in named.items():
        job, indexed = by_id.get(job_id), index.get(job_id)
        if job is None:
            if indexed is None or (printed or indexed) != indexed:
                return Jobs(question=_unconfirmed(spec, job_id))
            candidates.append(_Candidate(job_id, _name(spec, indexed), indexed))
            continue
        task = printed or indexed or of_script(job_id, job.script, spec.results)
        if not (job.name.endswith(f".{task.name}") if task else _has_its_name(spec, job.name)):
            return Jobs(question=_contradicted(spec, job_id, job.name))
        candidates.append(_Candidate(job_id, job.name, task))
    return _jobs_of(spec, candidates)


def _named_batch(spec: UpstreamSpec, job_id: str, status: SubmissionStatus, by_id: dict[str, OwnJob]) -> Jobs:
    """The job that sbatch has named; beside Slurm its output file is a witness."""
    job = by_id.get(job_id)
    if job and job.name != spec.job_name:
        return Jobs(question=_contradicted(spec, job_id, job.name))
    if job is None and f"slurm-{job_id}.out" not in status.all("file"):
        return Jobs(question=_unconfirmed(spec, job_id))
    return Jobs((job_id,))


def _tasks(
    spec: UpstreamSpec, status: SubmissionStatus, jobs: Sequence[OwnJob], index: dict[str, Task]
) -> list[_Candidate]:
    """Jobs with NeMo-Run's name of the launch, which Slurm knows or which NeMo-Run has written down."""
    began, last_seen = status.moment("began"), _last_seen(status)
    candidates = {
        task.job_id: _Candidate(task.job_id, _name(spec, task), task)
        for task in index.values()
        if _has_its_name(spec, _name(spec, task)) and began <= _made_at(task) <= last_seen + _BEAT_S
    }
    places = (spec.root, *status.all("place"))
    for job in jobs:
        task = of_script(job.id, job.script, spec.results)
        below = any(f"{job.folder}/".startswith(f"{place}/") for place in places)
        in_time = task is None or began <= _made_at(task) <= last_seen + _BEAT_S
        if _has_its_name(spec, job.name) and (task is not None or (not job.script and below)) and in_time:
            candidates[job.id] = _Candidate(job.id, job.name, task or candidates.get(job.id, _Candidate("", "")).task)
    return list(candidates.values())


def _batches(spec: UpstreamSpec, status: SubmissionStatus, jobs: Sequence[OwnJob]) -> list[_Candidate]:
    """Jobs with the script's name, from the folder where it is started, that came in time."""
    latest = _last_seen(status) + _LATEST_S
    places = (spec.directory, *status.all("place"))
    return [
        _Candidate(job.id, job.name)
        for job in jobs
        if job.name == spec.job_name and job.folder in places and job.submitted_at <= latest
    ]


def _unnamed(spec: UpstreamSpec, status: SubmissionStatus, candidates: Iterable[_Candidate]) -> Jobs:
    """The jobs of a launch that is over and has named none."""
    of_launch = _new_candidates(status, candidates) if status.over else []
    in_next = {one.id for one in of_launch} & set(_words(status, "next"))
    if of_launch and not in_next and "working" in status.all("last"):
        return Jobs(question="Another launch in the same folder is at work, and which jobs it makes is not known yet.")
    jobs = _jobs_of(spec, of_launch)
    numbers = " and ".join(jobs.ids)
    note = f"{spec.script} named no job; {numbers} came while it was at work, of the right name and folder, and alone."
    return replace(jobs, note=note) if jobs.ids else jobs


def _new_candidates(status: SubmissionStatus, candidates: Iterable[_Candidate]) -> list[_Candidate]:
    """Without the jobs that were there before, and those of other launches.

    What was there when the next launch in the same folder began came from this one. That a hung controller took a job
    later still is possible, and then it is one that no later launch has.
    """
    before, of_others = set(_words(status, "before")), set(_words(status, "other"))
    new = [one for one in candidates if one.id not in before]
    following = status.all("next")
    if not following:
        return new
    witnessed = [one for one in new if one.id in _words(status, "next")]
    return witnessed or [one for one in new if one.id not in of_others and "lost" not in status.all("last")]


def _jobs_of(spec: UpstreamSpec, candidates: Sequence[_Candidate]) -> Jobs:
    """The jobs, the plain benchmark last; a question where two have one name."""
    if not candidates:
        return Jobs()
    names = [one.name for one in candidates]
    if len(set(names)) < len(names):
        numbers = " and ".join(one.id for one in candidates)
        return Jobs(
            question=f"Jobs {numbers} came while {spec.script} was at work, and have the same name: it cannot be told "
            "which is this run's, and which was submitted otherwise."
        )
    # A profile's or a trace's name is that of the benchmark and a mark.
    ordered = sorted(candidates, key=lambda one: (-len(one.name), int(one.id)))
    return Jobs(tuple(one.id for one in ordered), _log(ordered[-1]))


def _log(job: _Candidate) -> JobLog | None:
    """Where the job of a task writes; None where its folder is not known."""
    if job.task is None or not matches(NAME, job.name):
        return None
    return JobLog.of_nemo_run(job.task.folder, job.name)


def _name(spec: UpstreamSpec, task: Task) -> str:
    return f"{spec.job_name.removesuffix(spec.experiment)}{task.name}"


def _has_its_name(spec: UpstreamSpec, name: str) -> bool:
    return name == spec.job_name or name.startswith(f"{spec.job_name}_")


def _made_at(task: Task) -> float:
    """When NeMo-Run made the experiment, Unix time by the login node's clock; it is in the folder's name."""
    match = re.search(r"_(\d{9,11})/[^/]+$", task.folder, re.ASCII)
    return float(match[1]) if match else 0.0


def _last_seen(status: SubmissionStatus) -> float:
    """When the launch ended, or was last seen to be alive."""
    return status.moment("now") - status.age_s


def _words(status: SubmissionStatus, name: str) -> list[str]:
    return [word for value in status.all(name) for word in value.split()]


def _contradicted(spec: UpstreamSpec, job_id: str, name: str) -> str:
    return f"{spec.script} names job {job_id}, but Slurm says that its name is {clean_line(name)!r}."


def _unconfirmed(spec: UpstreamSpec, job_id: str) -> str:
    return f"{spec.script} names job {job_id}, but Slurm knows no such job of yours since the launch began."
