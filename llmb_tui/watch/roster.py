"""`look_at`: one look for all going runs of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm import look
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs


def look_at(session: Session, runs: Runs, going: Sequence[Run]) -> int:
    """Ask Slurm about these runs' jobs in one remote call, and save what changed; how many did.

    A job that Slurm does not name keeps its last known state, and so does a run that another thread or process
    here is at work on. Raises as `slurm.look` does.
    """
    job_ids = [run.job_ids[-1] for run in going if run.job_ids]
    jobs = look(session, job_ids)
    changed = 0
    for run in going:
        job = jobs.get(run.job_ids[-1]) if run.job_ids else None
        if job is None or job.state == run.job_state:
            continue
        with runs.lock(run.id, wait=False) as mine:
            if mine:
                runs.save(replace(runs.load(run.id), job_state=job.state))
                changed += 1
    return changed
