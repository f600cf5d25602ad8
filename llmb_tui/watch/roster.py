"""The going runs of a cluster: what Slurm says of their jobs is saved, by one look or look after look."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from queue import Empty, SimpleQueue

from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.client import look
from llmb_tui.cluster.slurm.job import Job
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.watch.lookout import Following, Lookout
from llmb_tui.watch.news import JobNews, LinkNews, LookFailed, News


def look_at(session: Session, runs: Runs, going: Sequence[Run]) -> int:
    """Ask Slurm about these runs' jobs in one remote call, and save what changed; how many did.

    A job that Slurm does not name keeps its last known state, and so does a run that another thread or process
    here is at work on. Raises as `slurm.client.look` does.
    """
    jobs = look(session, [job_id for run in going for job_id in run.job_ids])
    return sum(_save(runs, run, [jobs[job_id] for job_id in run.job_ids if job_id in jobs]) for run in going)


class Roster:
    """Follows the jobs of a cluster's going runs, until its end. Thread-safe."""

    def __init__(self, lookout: Lookout, runs: Runs) -> None:
        self._lookout = lookout
        self._runs = runs
        self._lock = threading.Lock()
        self._ended = False
        self._news: SimpleQueue[News] = SimpleQueue()
        self._followings: dict[str, Following] = {}
        self.trouble = ""
        """Why the last look failed; empty after one that did not."""

    def follow(self, going: Sequence[Run]) -> None:
        """Follow the jobs of exactly these runs, and save what was learned since the last time."""
        wanted = {job_id: run for run in going for job_id in run.job_ids}
        with self._lock:
            if self._ended:
                return
            for job_id in self._followings.keys() - wanted.keys():
                self._followings.pop(job_id).end()
            new = [job_id for job_id in wanted if job_id not in self._followings]
            self._followings.update(zip(new, self._lookout.follow_all(new, self._news.put), strict=True))
            self._take_news(wanted)

    def end(self) -> None:
        """Follow no job any more."""
        with self._lock:
            self._ended = True
            for following in self._followings.values():
                following.end()

    def _take_news(self, wanted: Mapping[str, Run]) -> None:
        try:
            while True:
                news = self._news.get_nowait()
                if isinstance(news, JobNews):
                    self.trouble = ""
                    if news.job is not None and news.job.id in wanted:
                        _save(self._runs, wanted[news.job.id], [news.job])
                elif isinstance(news, (LookFailed, LinkNews)):
                    self.trouble = news.note
        except Empty:
            pass


def _save(runs: Runs, run: Run, jobs: Sequence[Job]) -> bool:
    """Save the states of a run's jobs if one is another, and nobody else here is at work on the run."""
    if all(run.state_of(job.id) == job.state for job in jobs):
        return False
    with runs.lock(run.id, wait=False) as mine:
        if mine:
            known = runs.load(run.id)
            for job in jobs:
                known = known.told(job.id, job.state)
            runs.save(known)
        return mine
