"""`fetch`: profiles, traces and logs that a run has left on its cluster, to this machine."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

from llmb_tui.answers.blocks import Grid
from llmb_tui.answers.fetched_files import FILE, Profile, fetched_files
from llmb_tui.answers.table import Table
from llmb_tui.cli.output import print_status, show, write
from llmb_tui.cli.user import confirm, has_terminal, terminal_prompter, user_services
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
_TELL_EVERY_S = 5.0


def fetch_verb(arguments: argparse.Namespace) -> int:
    """Show what there is with its size, ask, and bring it; then say in short what the first profile says."""
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
            show(Grid("", Table.by(FILE, left.files)))
        if not has_terminal():
            raise LlmbError(f"{byte_size(missing)} are to come.", fix="--yes fetches them without asking.", exit_code=1)
        if not confirm(f"Fetch {byte_size(missing)} into {target}?"):
            raise LlmbError("Nothing was fetched.", exit_code=1)
    done = fetch.all(_teller()) if left.files else []
    for one in done:
        if one.state == "refused":
            print_status(f"{one.file.name} was not fetched. {one.why}")
    profile = _profile(services, session, left, done, target)
    write(fetched_files(run.id, left, target, done, profile), arguments)
    return 1 if any(one.state == "refused" for one in done) else 0


def _teller() -> Callable[[str, int, int], None]:
    """Says of each file how far it is, now and then."""
    said: dict[str, float] = {}
    pace = RateEstimator(newest=20)

    def tell(name: str, here: int, size: int) -> None:
        now = time.monotonic()
        pace.note(here, now)
        if here < size and now - said.setdefault(name, now) < _TELL_EVERY_S:
            return
        said[name] = now
        left_s = pace.seconds_left(size, now)
        rest = f", {duration(left_s)} left" if left_s and here < size else ""
        print_status(f"{name}: {byte_size(min(here, size))} of {byte_size(size)}{rest}")

    return tell


def _profile(
    services: Services, session: Session, left: LeftFiles, done: Sequence[Fetched], target: Path
) -> Profile | None:
    """The first profile in short, by the `nsys` of this machine, else by the cluster's; None without either."""
    name = next((one.file.name for one in done if one.file.kind == "profile" and one.state != "refused"), None)
    if name is None:
        return None
    observes = services.policy.is_read_only(session.profile)
    try:
        summary = summarize(LocalConnection("this machine"), str((target / name).resolve()))
        if summary is None and not observes:
            print_status(f"{session.profile.name}: looked into {name} with nsys, where that is there")
            summary = summarize(session, f"{left.folder}/{name}")
    except LlmbError as error:
        print_status(str(error))
        return None
    if summary is None:
        where = "on this machine; the cluster is only looked at" if observes else "on this machine or on the login node"
        print_status(f"There is no summary of the profiles: `nsys` is not {where}. Nsight Systems opens them.")
        return None
    return name, summary
