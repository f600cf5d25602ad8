"""`keep_accounting`: what only a cluster can say of a run, asked for once when it is over, and kept in its folder."""

from __future__ import annotations

import contextlib
import threading

from llmb_tui.cluster.cluster import Cluster
from llmb_tui.errors import Trouble
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import ACCOUNTING, Runs
from llmb_tui.store.files import write_atomic

# Accounting hears of an end after the queue does.
_TRIES = 8
_PAUSE_S = 0.5


def keep_accounting(cluster: Cluster, runs: Runs, run: Run, stop: threading.Event | None = None) -> None:
    """Ask and keep, unless that was done before; trouble of any kind leaves nothing.

    Until `stop` it is asked again for some seconds while not all of it is there; without one it is asked once.
    """
    path = runs.folder(run.id) / ACCOUNTING
    with contextlib.suppress(Trouble):
        if path.exists() or not path.parent.is_dir():  # a run that was removed here
            return
        for _ in range(_TRIES):
            if text := cluster.patiently(lambda: cluster.accounting(run.job_ids)):
                write_atomic(path, text.encode())
                return
            if stop is None or stop.wait(_PAUSE_S):
                return
