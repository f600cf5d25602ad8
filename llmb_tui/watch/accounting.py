"""`keep_accounting`: save a finished run's accounting, which only the cluster has, in the run's folder."""

from __future__ import annotations

import contextlib
import threading

from llmb_tui.cluster.cluster import Cluster
from llmb_tui.errors import LlmbError
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import ACCOUNTING, Runs
from llmb_tui.store.files import write_atomic

# Accounting learns of the end of a job later than the queue.
_TRIES = 8
_PAUSE_S = 0.5


def keep_accounting(cluster: Cluster, runs: Runs, run: Run, stop: threading.Event | None = None) -> None:
    """Ask for the accounting and save it, unless it is saved already; errors of any kind save nothing.

    With `stop`, ask again for some seconds until the answer is complete; without it, ask once.
    """
    path = runs.folder(run.id) / ACCOUNTING
    with contextlib.suppress(LlmbError):
        if path.exists() or not path.parent.is_dir():  # the run was removed here
            return
        for _ in range(_TRIES):
            if text := cluster.retry_after_disconnect(lambda: cluster.accounting(run.job_ids)):
                write_atomic(path, text.encode())
                return
            if stop is None or stop.wait(_PAUSE_S):
                return
