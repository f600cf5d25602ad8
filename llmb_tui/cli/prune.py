"""`jobs --prune`: the local log copies that can be removed, and their removal after a confirmation."""

from __future__ import annotations

import argparse
import time

from llmb_tui.answers.local_logs import count_and_size, log_table, pruned_logs
from llmb_tui.cli.output import print_block, print_status, write
from llmb_tui.cli.user import confirm, has_terminal
from llmb_tui.cluster_files.prune import LogCopies, held_by_suites, local_logs, remove_log
from llmb_tui.errors import LlmbError
from llmb_tui.services import Services

_DAY_S = 86400.0


def prune(services: Services, arguments: argparse.Namespace) -> int:
    """List the logs, ask, and remove them; without a terminal and without `--yes`, only list them."""
    now = time.time()
    logs = local_logs(services.runs, now - _DAY_S * (arguments.older_than or 0), held_by_suites(services.suites))
    removed: list[LogCopies] = []
    failed: list[LlmbError] = []
    asks = not arguments.yes and has_terminal()
    if logs.removable and asks:
        if not arguments.json:
            print_block(log_table(logs.removable, now))
        if not confirm(f"Remove the copies of {count_and_size(logs.removable)} from this machine?"):
            raise LlmbError("Nothing was removed.", exit_code=1)
    for log in logs.removable if asks or arguments.yes else ():
        try:
            remove_log(services.runs, log)
            removed.append(log)
        except LlmbError as error:
            failed.append(error)
            print_status(str(error))
    write(pruned_logs(logs, removed, now), arguments)
    if logs.removable and not (asks or arguments.yes or arguments.json):
        print_status("Nothing was removed. Add --yes to remove them without a confirmation.")
    return 2 if failed else 0
