"""`launched`: which of the user's jobs a launch has submitted. Pure.

The launch script fixes the names, so that they are not the run's alone. A job that the launch names is taken where
Slurm, or what NeMo-Run wrote down, says so too. Where it named none, the jobs that came while it was at work are looked
at: of the right name, from the right folder, and of no other launch. Two of one name cannot be told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from llmb_tui.cluster.slurm.own_jobs import OwnJob
from llmb_tui.cluster.words import NAME, fits
from llmb_tui.launch.job_log import JobLog
from llmb_tui.launch.published.output import Task, batch_job, indexed, of_script, tasks
from llmb_tui.launch.published.spec import PublishedSpec
from llmb_tui.launch.traces import Traces
from llmb_tui.launch.way import Jobs
from llmb_tui.text import clean_line

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


def launched(spec: PublishedSpec, found: Traces, jobs: Sequence[OwnJob]) -> Jobs:
    """What is known of the launch's jobs. `jobs` are the user's since the launch began, as far as Slurm knows them."""
    known = {job.id: job for job in jobs}
    if spec.how == "sbatch":
        named = batch_job(found.words)
        return _named_batch(spec, named, found, known) if named else _unnamed(spec, found, _batches(spec, found, jobs))
    written = {task.job_id: task for task in indexed(found.all("index"), spec.results)}
    said = tasks(found.words, spec.results)
    return (
        _named_tasks(spec, said, known, written) if said else _unnamed(spec, found, _tasks(spec, found, jobs, written))
    )


def _named_tasks(spec: PublishedSpec, said: Iterable[Task], known: dict[str, OwnJob], written: dict[str, Task]) -> Jobs:
    """The jobs that NeMo-Run has printed, each of which has a second witness."""
    candidates = []
    for task in said:
        job = known.get(task.job_id)
        if job and not job.name.endswith(f".{task.name}"):
            return Jobs(question=_contradicted(spec, task.job_id, job.name))
        if job is None and written.get(task.job_id) != task:
            return Jobs(question=_unconfirmed(spec, task.job_id))
        candidates.append(_Candidate(task.job_id, job.name if job else _name(spec, task), task))
    return _settled(spec, candidates)


def _named_batch(spec: PublishedSpec, job_id: str, found: Traces, known: dict[str, OwnJob]) -> Jobs:
    """The job that sbatch has named; beside Slurm its output file is a witness."""
    job = known.get(job_id)
    if job and job.name != spec.job_name:
        return Jobs(question=_contradicted(spec, job_id, job.name))
    if job is None and f"slurm-{job_id}.out" not in found.all("file"):
        return Jobs(question=_unconfirmed(spec, job_id))
    return Jobs((job_id,))


def _tasks(spec: PublishedSpec, found: Traces, jobs: Sequence[OwnJob], written: dict[str, Task]) -> list[_Candidate]:
    """Jobs with NeMo-Run's name of the launch, which Slurm knows or which NeMo-Run has written down."""
    began, seen = found.moment("began"), _last_seen(found)
    candidates = {
        task.job_id: _Candidate(task.job_id, _name(spec, task), task)
        for task in written.values()
        if _expected(spec, _name(spec, task)) and began <= _made_at(task) <= seen + _BEAT_S
    }
    places = (spec.root, *found.all("place"))
    for job in jobs:
        task = of_script(job.id, job.script, spec.results)
        below = any(f"{job.folder}/".startswith(f"{place}/") for place in places)
        in_time = task is None or began <= _made_at(task) <= seen + _BEAT_S
        if _expected(spec, job.name) and (task is not None or (not job.script and below)) and in_time:
            candidates[job.id] = _Candidate(job.id, job.name, task or candidates.get(job.id, _Candidate("", "")).task)
    return list(candidates.values())


def _batches(spec: PublishedSpec, found: Traces, jobs: Sequence[OwnJob]) -> list[_Candidate]:
    """Jobs with the script's name, from the folder where it is started, that came in time."""
    latest = _last_seen(found) + _LATEST_S
    places = (spec.directory, *found.all("place"))
    return [
        _Candidate(job.id, job.name)
        for job in jobs
        if job.name == spec.job_name and job.folder in places and job.submitted_at <= latest
    ]


def _unnamed(spec: PublishedSpec, found: Traces, candidates: Iterable[_Candidate]) -> Jobs:
    """The jobs of a launch that is over and has named none."""
    own = _told_apart(found, candidates) if found.over else []
    in_next = {one.id for one in own} & set(_words(found, "next"))
    if own and not in_next and "working" in found.all("last"):
        return Jobs(question="Another launch in the same folder is at work, and which jobs it makes is not known yet.")
    jobs = _settled(spec, own)
    numbers = " and ".join(jobs.ids)
    note = f"{spec.script} named no job; {numbers} came while it was at work, of the right name and folder, and alone."
    return replace(jobs, note=note) if jobs.ids else jobs


def _told_apart(found: Traces, candidates: Iterable[_Candidate]) -> list[_Candidate]:
    """Without the jobs that were there before, and those of other launches.

    What was there when the next launch in the same folder began came from this one. That a hung controller took a job
    later still is possible, and then it is one that no later launch has.
    """
    before, others = set(_words(found, "before")), set(_words(found, "other"))
    new = [one for one in candidates if one.id not in before]
    following = found.all("next")
    if not following:
        return new
    known = [one for one in new if one.id in _words(found, "next")]
    return known or [one for one in new if one.id not in others and "lost" not in found.all("last")]


def _settled(spec: PublishedSpec, candidates: Sequence[_Candidate]) -> Jobs:
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
    if job.task is None or not fits(NAME, job.name):
        return None
    name = f"{job.name}_%j"
    return JobLog(f"{job.task.folder}/log-{name}_%r.out", (f"{job.task.folder}/sbatch_{name}.out",))


def _name(spec: PublishedSpec, task: Task) -> str:
    """The name that NeMo-Run gives to a task's job."""
    return f"{spec.job_name.removesuffix(spec.experiment)}{task.name}"


def _expected(spec: PublishedSpec, name: str) -> bool:
    return name == spec.job_name or name.startswith(f"{spec.job_name}_")


def _made_at(task: Task) -> float:
    """When NeMo-Run made the experiment, Unix time by the login node's clock; it is in the folder's name."""
    match = re.search(r"_(\d{9,11})/[^/]+$", task.folder, re.ASCII)
    return float(match[1]) if match else 0.0


def _last_seen(found: Traces) -> float:
    """When the launch ended, or was last seen to be alive."""
    return found.moment("now") - found.age_s


def _words(found: Traces, name: str) -> list[str]:
    return [word for value in found.all(name) for word in value.split()]


def _contradicted(spec: PublishedSpec, job_id: str, name: str) -> str:
    return f"{spec.script} names job {job_id}, but Slurm says that its name is {clean_line(name)!r}."


def _unconfirmed(spec: PublishedSpec, job_id: str) -> str:
    return f"{spec.script} names job {job_id}, but Slurm knows no such job of yours since the launch began."
