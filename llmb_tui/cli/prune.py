"""`jobs --prune`: the local copies of logs that may go, and removing them after a yes."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from llmb_tui.cli.output import print_json, print_line, print_table, say
from llmb_tui.cli.user import confirm, has_terminal
from llmb_tui.cluster_files.prune import LocalLogs, LogCopies, held_by_suites, local_logs, remove_log
from llmb_tui.errors import Trouble
from llmb_tui.language.instants import local_day
from llmb_tui.language.labels import run_label
from llmb_tui.language.quantities import byte_size
from llmb_tui.language.text import plural
from llmb_tui.services import Services

_DAY_S = 86400.0
_HEADINGS = ("run", "workload", "cluster", "last line", "files", "size")


def prune(services: Services, arguments: argparse.Namespace) -> int:
    """Show the logs, ask, and remove them; without a terminal and without a yes they are only shown."""
    before = time.time() - _DAY_S * (arguments.older_than or 0)
    logs = local_logs(services.runs, before, held_by_suites(services.suites))
    if not arguments.json:
        _show(logs)
    removed: list[LogCopies] = []
    failed: list[Trouble] = []
    if logs.removable and (arguments.yes or has_terminal()):
        what = f"{plural(len(logs.removable), 'log')} ({_sum(logs.removable)})"
        if not arguments.yes and not confirm(f"Remove the copies of {what} from this machine?"):
            raise Trouble("Nothing was removed.", exit_code=1)
        for log in logs.removable:
            try:
                remove_log(services.runs, log)
                removed.append(log)
            except Trouble as trouble:
                failed.append(trouble)
                say(str(trouble))
    if arguments.json:
        documents = [_document(log) for log in logs.removable]
        print_json({"logs": documents, "kept": dict(logs.kept), "removed": [log.run.id for log in removed]})
    elif removed:
        print_line(f"{plural(len(removed), 'log')} ({_sum(removed)}) removed; what was read of them stays.")
    elif logs.removable and not failed:
        say("Nothing was removed: --yes removes them without asking.")
    return 2 if failed else 0


def _show(logs: LocalLogs) -> None:
    if logs.removable:
        print_table(_HEADINGS, map(_row, logs.removable))
        say("Runs, plans, results and verdicts stay, and so do the logs on their clusters.")
    else:
        say("There is no log to remove.")
    for run_id, why in logs.kept.items():
        say(f"The log of {run_id} stays. {why}")


def _row(log: LogCopies) -> tuple[str, ...]:
    what = log.run.plan.selection
    return (
        log.run.id,
        run_label(what.workload, what.size, what.dtype, what.scale, what.gpu),
        log.run.cluster,
        local_day(log.grew_at, time.time()),
        " ".join(log.names),
        byte_size(log.size),
    )


def _document(log: LogCopies) -> dict[str, object]:
    run, files = log.run, list(log.names)
    return {"id": run.id, "cluster": run.cluster, "files": files, "bytes": log.size, "grew_at": log.grew_at}


def _sum(logs: Sequence[LogCopies]) -> str:
    return byte_size(sum(log.size for log in logs))
