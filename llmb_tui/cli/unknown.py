"""Runs of which it is not known whether they have a job: the verbs ask the cluster by themselves, and say so."""

from __future__ import annotations

import time

from llmb_tui.cli.output import say
from llmb_tui.cluster.failures import DeadlinePassed, Disconnected, Unreachable
from llmb_tui.cluster.slurm.trouble import SlurmTrouble
from llmb_tui.errors import Trouble
from llmb_tui.launch.run import Run
from llmb_tui.services import Services

ASK_EVERY_S = 10.0
_PASSES = (DeadlinePassed, Disconnected, Unreachable, SlurmTrouble)


def settled(services: Services, run_id: str, *, patiently: bool = False) -> Run:
    """A run, after the cluster was asked about it if it is unknown; `patiently` again and again, until it is known.

    While it is not, says why. Raises Trouble when there is no such run, or the cluster does not let us in.
    """
    run = services.runs().load(run_id)
    told = ""
    while run.submission == "unknown":
        run, note = _ask(services, run)
        if note and note != told:
            _say(run, note)
            told = note
        if not patiently or run.submission != "unknown":
            break
        time.sleep(ASK_EVERY_S)
    return run


def settle_all(services: Services) -> None:
    """Ask about every unknown run, and say why one stays so; a cluster that does not answer is asked once."""
    silent: set[str] = set()
    for run in services.runs().all():
        if run.submission != "unknown" or run.cluster in silent:
            continue
        try:
            now = services.reconcile(run.id)
            note = now.note if now.submission == "unknown" else ""
        except Trouble as trouble:
            silent.add(run.cluster)
            note = trouble.what
        if note:
            _say(run, note)


def _say(run: Run, note: str) -> None:
    say(f"{run.cluster}: it is not known yet whether run {run.id} was submitted. {note}")


def _ask(services: Services, run: Run) -> tuple[Run, str]:
    """The run as it is now, and why it is still unknown; empty when it is not."""
    try:
        run = services.reconcile(run.id)
    except _PASSES as trouble:
        return run, f"{trouble.what} {trouble.why}".rstrip()
    return run, run.note if run.submission == "unknown" else ""
