"""`keep_network_lines`: copy NCCL's lines about the network once from the folder of a finished run."""

from __future__ import annotations

import contextlib

from llmb_tui.cluster.batch import ask
from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session, login_node
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import NETWORK, Runs
from llmb_tui.store.files import write_atomic

_DEADLINE_S = 60.0


def keep_network_lines(cluster: Cluster, runs: Runs, run: Run) -> None:
    """Copy the lines if the run was configured to write them and no copy is here; errors of any kind save nothing."""
    from llmb_tui.launch.procedure_loader import procedure  # noqa: PLC0415 - a list of runs needs no procedure

    path, folder = runs.folder(run.id) / NETWORK, procedure(run.procedure).network_folder(run)
    if not folder:
        return
    with contextlib.suppress(LlmbError):
        if path.exists() or not path.parent.is_dir():  # the run was removed here
            return
        session = login_node(cluster)
        if text := session.retry_after_disconnect(lambda: _network_lines(session, folder)):
            write_atomic(path, text.encode())


def _network_lines(session: Session, folder: str) -> str:
    script = remote_text("inside.sh", "network_lines.sh")
    parts = ask(session, script, folder, failed=LlmbError, deadline_s=_DEADLINE_S)
    return "".join(clean(text) for kind, _, text in parts if kind == "lines")
