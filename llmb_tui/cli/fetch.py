"""`fetch`: download profiles, traces and logs of a run from its cluster."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

from llmb_tui.answers.blocks import Grid
from llmb_tui.answers.fetched_files import FILE, Profile, fetched_files
from llmb_tui.answers.table import Table
from llmb_tui.cli.output import print_block, print_status, write
from llmb_tui.cli.user import require_confirmation, terminal_prompter, user_services
from llmb_tui.cluster.bandwidth import Limit, bytes_per_s
from llmb_tui.cluster.local import LocalConnection
from llmb_tui.cluster.session import Session
from llmb_tui.cluster_files.fetch import Fetch, Fetched
from llmb_tui.cluster_files.left_files import FileKind, LeftFiles, list_left
from llmb_tui.cluster_files.nsight import summarize
from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import byte_size, duration
from llmb_tui.launch.procedure_loader import procedure
from llmb_tui.rates import RateEstimator
from llmb_tui.services import Services

_KINDS: tuple[FileKind, ...] = get_args(FileKind)
_PROGRESS_EVERY_S = 5.0


def fetch_verb(arguments: argparse.Namespace) -> int:
    """List the files with their sizes, ask, and download them; then print a summary of the first profile."""
    services = user_services(arguments)
    run = services.runs.load(arguments.run)
    kinds = frozenset(kind for kind in _KINDS if getattr(arguments, f"{kind}s")) or frozenset(_KINDS)
    limit = None if arguments.limit is None else Limit(bytes_per_s(arguments.limit))
    procedure(run.procedure).refuse_fetch(run)
    session = services.clusters.login_node(run.cluster)
    session.connect(terminal_prompter())
    left = list_left(session, run, kinds)
    target = Path(arguments.to) if arguments.to is not None else Path(run.id)
    fetch = Fetch(session, left, target, limit=limit, prompter=terminal_prompter())
    missing = fetch.missing()
    if missing and not arguments.yes:
        if not arguments.json:
            print_block(Grid("", Table.by(FILE, left.files)))
        fix = f"Add --yes to fetch {byte_size(missing)} without a confirmation."
        require_confirmation(f"Fetch {byte_size(missing)} into {target}?", "Nothing was fetched.", fix)
    fetched = fetch.all(_progress_printer()) if left.files else []
    refused = [result for result in fetched if result.state == "refused"]
    for result in refused:
        print_status(f"{result.file.name} was not fetched. {result.why}")
    profile = _profile(services, session, left, fetched, target)
    write(fetched_files(run.id, left, target, fetched, profile), arguments)
    return 1 if refused else 0


def _progress_printer() -> Callable[[str, int, int], None]:
    """Callback that prints the progress of each file from time to time."""
    printed_at: dict[str, float] = {}
    rate = RateEstimator(newest=20)

    def print_progress(name: str, received: int, size: int) -> None:
        now = time.monotonic()
        rate.note(received, now)
        if received < size and now - printed_at.setdefault(name, now) < _PROGRESS_EVERY_S:
            return
        printed_at[name] = now
        left_s = rate.seconds_left(size, now)
        rest = f", {duration(left_s)} left" if left_s and received < size else ""
        print_status(f"{name}: {byte_size(min(received, size))} of {byte_size(size)}{rest}")

    return print_progress


def _profile(
    services: Services, session: Session, left: LeftFiles, fetched: Sequence[Fetched], target: Path
) -> Profile | None:
    """Summary of the first profile, by this machine's `nsys` or else the cluster's; None without either."""
    name = next((each.file.name for each in fetched if each.file.kind == "profile" and each.state != "refused"), None)
    if name is None:
        return None
    read_only = services.policy.is_read_only(session.profile)
    try:
        summary = summarize(LocalConnection("this machine"), str((target / name).resolve()))
        if summary is None and not read_only:
            print_status(f"{session.profile.name}: summarizing {name} there, if the login node has nsys")
            summary = summarize(session, f"{left.folder}/{name}")
    except LlmbError as error:
        print_status(str(error))
        return None
    if summary is None:
        where = "on this machine, and the cluster is read-only" if read_only else "on this machine or on the login node"
        print_status(f"No summary of the profiles: `nsys` is not {where}. Open them in Nsight Systems.")
        return None
    return name, summary
