"""`InstallItem`: items of this program on a cluster, such as images, environments, runs and checkpoints; their removal.

All items are below the install directory; nothing else is inspected or removed. Three sources decide what may be
removed: the remembered runs on this machine, Slurm's queue, and the cluster, which checks again before it renames an
item.
"""

from __future__ import annotations

import posixpath
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast, get_args

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.batch import frames, run_batch
from llmb_tui.cluster.cluster import SchedulerError
from llmb_tui.cluster.failures import DisconnectedError, NoAnswerError, UnreachableError
from llmb_tui.cluster.quoting import shell_join
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.client import going_jobs
from llmb_tui.cluster.validation import PATH, matches
from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import byte_size
from llmb_tui.language.redact import server_words
from llmb_tui.language.states import state_label
from llmb_tui.language.text import clean_line, count_in
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.launch.run import Run

ItemKind = Literal["image", "environment", "repository", "run", "checkpoint", "cache", "trash"]
KINDS: dict[ItemKind, str] = {
    "image": "container image",
    "environment": "Python environment",
    "repository": "recipe's repository",
    "run": "run",
    "checkpoint": "checkpoints",
    "cache": "downloads",
    "trash": "partly deleted",
}
_OF_RUNS: tuple[ItemKind, ...] = ("run", "checkpoint")
MOST = 2000
"""Largest number of items in one listing."""
_LOOK_S, _MOVE_S, _DELETE_S = 60.0, 60.0, 600.0
_AT_ONCE, _EACH_S, _ALL_S = 8, 12, 96


@dataclass(frozen=True, slots=True)
class InstallItem:
    """One item below the install directory."""

    kind: ItemKind
    path: str
    """Path below the install directory, which is also its name."""
    run_ids: tuple[str, ...] = ()
    """Ids of remembered runs that have written there."""
    kept: str = ""
    """Reason why it cannot be removed; empty if it can."""
    size: int | None = None
    """Bytes on disk; None if it was not measured, or could not be measured in time."""


@dataclass(frozen=True, slots=True)
class BelongingsListing:
    """Output of `remote/belongings.sh` for an install directory, with Slurm's data about jobs."""

    install: str
    things: tuple[tuple[ItemKind, str, bool, bool], ...]
    """(kind, path, owned by this user, made by an install step or a run of this program)."""
    installing: tuple[str, ...] = ()
    """Install steps in progress."""
    more: int = 0
    """Number of items missing in `things`: they have foreign names, are behind a link, or exceed the limit."""
    queued: tuple[str, ...] = ()
    """The user's waiting or running jobs."""
    unknown_jobs: str = ""
    """Reason why the jobs are unknown."""
    held: Mapping[str, str] = field(default_factory=dict)
    """Reasons why files of runs stay, by run id."""
    to_load: Mapping[str, str] = field(default_factory=dict)
    """Reasons why checkpoints stay, by absolute path."""
    real: Mapping[str, str] = field(default_factory=dict)
    """Real paths of the install directory and of these checkpoints, as far as known, because links may lead to
    either."""


@dataclass(frozen=True, slots=True)
class Removal:
    """Result of a removal."""

    removed: tuple[str, ...]
    """Paths that were removed."""
    kept: Mapping[str, str]
    """Reasons why other items stayed."""
    left: str = ""
    """Reason why not all of their space is free yet; empty if it is."""


def install_items(
    session: Session,
    catalog: Catalog,
    runs: Sequence[Run],
    held: Mapping[str, str],
    to_load: Mapping[str, str] = {},
) -> tuple[tuple[InstallItem, ...], int]:
    """All items, not measured, and the number of further items that are not listed.

    `runs`: all remembered runs; `held`: reasons why files that runs of this cluster have left, or will need, must stay,
    by run id; `to_load`: reasons why checkpoints stay, by the paths that suites name. Raises LlmbError if the cluster
    cannot be asked, or if the directory does not exist.
    """
    listing, silent = _list(session, catalog), ""
    queued: tuple[str, ...] = ()
    try:
        queued = tuple(job.id for job in going_jobs(session))
    except SchedulerError as error:
        silent = f"Slurm does not report which jobs are active. {error.what} {error.why}"
    to_load = _to_load(to_load, runs)
    real = _real_paths(session, (listing.install, *to_load)) if to_load else {}
    listing = replace(listing, held=held, to_load=to_load, real=real, queued=queued, unknown_jobs=silent)
    return judged(listing, runs, session.profile.name), listing.more


def judged(listing: BelongingsListing, runs: Sequence[Run], cluster: str) -> tuple[InstallItem, ...]:
    """Items of a listing with their runs, and the reasons why some must stay. Pure."""
    install = f"{listing.install}/"
    logs = [(run.job_log.folder, run) for run in runs if run.job_log and run.job_log.folder.startswith(install)]
    folders = [(folder.removeprefix(install), run) for folder, run in logs]
    run_folders = [path for kind, path, *_ in listing.things if kind == "run"]
    # Two profiles may use the same install directory and share its contents.
    users = [run for run in runs if run.is_active and (run.cluster == cluster or _writes_below(run, install))]
    going = f"{users[0].id}{'' if users[0].cluster == cluster else f' of {users[0].cluster}'}" if users else ""
    real = {path: listing.real.get(path, path) for path in (listing.install, *listing.to_load)}
    to_load = [
        (root, saved, why)
        for path, why in listing.to_load.items()
        for root, saved in ((listing.install, path), (real[listing.install], real[path]))
    ]
    items = []
    for kind, path, mine, ours in listing.things:
        # The whole folder of a run shows the owner of its checkpoints.
        top = next((folder for folder in run_folders if _below(path, folder)), path)
        owners = [run for folder, run in folders if _below(folder, top)]
        reasons = [
            (not mine, "It belongs to another user."),
            (bool(listing.installing), f"An install is in progress: {', '.join(listing.installing)}."),
        ]
        if kind != "trash":
            reasons.append((bool(listing.unknown_jobs), listing.unknown_jobs))
        if kind in _OF_RUNS:
            reasons.append(
                (not owners, "It belongs to no run that this machine remembers, and may belong to another machine.")
            )
        elif kind != "trash":
            reasons += [
                (not ours, "This program did not install it."),
                (bool(going), f"Run {going} is active by its last known state, and may need it."),
                (bool(listing.held), f"{next(iter(listing.held.values()), '')} It may need it."),
                (bool(listing.queued), f"Job {''.join(listing.queued[:1])} is waiting or running, and may need it."),
            ]
        reasons += [(run.id in listing.held, listing.held.get(run.id, "")) for run in owners]
        reasons += [reason for run in owners for reason in _why_run_stays(run, listing.queued, cluster, kind)]
        reasons += [
            (_below(f"{root}/{path}", saved) or _below(saved, f"{root}/{path}"), why) for root, saved, why in to_load
        ]
        why = next((why for holds, why in reasons if holds), "")
        items.append(InstallItem(kind, path, tuple(run.id for run in owners), why))
    return _with_what_they_hold(items)


def measure_items(
    session: Session, things: Sequence[InstallItem], tell: Callable[[str], None] = lambda _: None
) -> tuple[InstallItem, ...]:
    """The items with sizes, as far as they can be measured within two or three minutes; `tell` gets progress messages.

    Raises LlmbError if the cluster cannot be asked.
    """
    install, items = _directory(session), list(things)
    until = time.monotonic() + _ALL_S
    for first in range(0, len(items), _AT_ONCE):
        if time.monotonic() > until:
            tell(f"Time limit reached: {len(items) - first} more were not measured.")
            break
        part = items[first : first + _AT_ONCE]
        tell(f"Measuring {first + 1} to {first + len(part)} of {len(items)}: {part[0].path} …")
        commands = {
            f"at{position}": f"limited {_EACH_S} {shell_join(['du', '-skx', f'{install}/{thing.path}'])} 2>/dev/null"
            for position, thing in enumerate(part)
        }
        answers = run_batch(session, commands, deadline_s=_AT_ONCE * _EACH_S + 30.0)
        for position, thing in enumerate(part):
            answer = answers[f"at{position}"]
            kib = count_in(answer.text.partition("\t")[0])
            if answer.exit_code == 0 and kib is not None:
                items[first + position] = replace(thing, size=kib * 1024)
    return tuple(items)


def total_size(things: Sequence[InstallItem]) -> str:
    """Text of the total measured size; nested items are counted once."""
    tops = [thing for thing in things if not any(_below(thing.path, top.path) for top in things if top is not thing)]
    total = byte_size(sum(thing.size or 0 for thing in tops))
    return f"{total} or more" if any(thing.size is None for thing in tops) else total


def select_items(things: Sequence[InstallItem], names: Iterable[str]) -> tuple[InstallItem, ...]:
    """Items with these names: a path below the install directory, the id of a run, or `trash`. Each is listed once.

    Raises LlmbError (exit code 1) for an unknown name, and for an item that must stay.
    """
    items: dict[str, InstallItem] = {}
    for name in names:
        of_name = [thing for thing in things if _is_called(thing, name)]
        if not of_name:
            what = f"{clean_line(name)[:200]} is not an item of this program on the cluster."
            raise LlmbError(what, fix="`llmb-tui disk CLUSTER` lists the names.", exit_code=1)
        for thing in of_name:
            if thing.kept:
                raise LlmbError(f"{thing.path} cannot be removed.", thing.kept, exit_code=1)
            items[thing.path] = thing
    return tuple(
        thing for thing in items.values() if not any(_below(thing.path, top) for top in items if top != thing.path)
    )


def remove(session: Session, things: Sequence[InstallItem], tell: Callable[[str], None] = lambda _: None) -> Removal:
    """Move the items away, then delete them; may be repeated after an interruption.

    Raises `ReadOnlyError`, and LlmbError if the cluster cannot be asked.
    """
    session.require_changes()
    install, token = _directory(session), secrets.token_hex(8)
    script = remote_text("lock.sh", "inside.sh", "discard.sh")
    paths = [thing.path for thing in things if thing.kind != "trash"]
    removed, kept = [thing.path for thing in things if thing.kind == "trash"], {}
    tries = 0

    def move() -> list[tuple[str, str]]:
        nonlocal tries
        tries += 1
        return _answers(session, script, [install, token, *paths], token, _MOVE_S)

    if paths:
        tell(f"Removing {len(paths)} …")
        for head, text in session.retry_after_disconnect(move):
            what, _, path = head.partition(" ")
            # An item that is missing at a second try was moved by the first one, whose answer was lost.
            if path in paths and (what == "removed" or (what == "gone" and tries > 1)):
                removed.append(path)
            elif path in paths:
                kept[path] = clean_line(server_words(text, 400)) or "It no longer exists."
    return Removal(tuple(removed), kept, _delete(session, install, script, tell) if removed else "")


def _delete(session: Session, install: str, script: str, tell: Callable[[str], None]) -> str:
    """Delete the items that were moved away; return the reason why some are left, empty if none are."""
    token = secrets.token_hex(8)
    tell("Deleting; large items take a while …")
    try:
        answers = session.retry_after_disconnect(lambda: _answers(session, script, [install, token], token, _DELETE_S))
    except (NoAnswerError, DisconnectedError, UnreachableError) as error:
        return f"It is unknown whether everything was deleted. {error.what}"
    return "" if ("left 0", "") in answers else "Not everything could be deleted."


def _list(session: Session, catalog: Catalog) -> BelongingsListing:
    install, token = _directory(session), secrets.token_hex(8)
    script = remote_text("lock.sh", "inside.sh", "belongings.sh")
    arguments = [install, token, str(MOST), *_repositories(catalog)]
    things: list[tuple[ItemKind, str, bool, bool]] = []
    installing, more = [], 0
    for head, _ in session.retry_after_disconnect(lambda: _answers(session, script, arguments, token, _LOOK_S)):
        kind, *words = head.split(" ")
        if kind == "more" and words:
            more = count_in(words[0]) or 0
        elif kind == "step" and words:
            installing.append(clean_line(words[0]))
        elif kind in get_args(ItemKind) and len(words) == 3 and _is_below(words[2]):
            things.append((cast("ItemKind", kind), words[2], words[0] == "yes", words[1] == "yes"))
    return BelongingsListing(install, tuple(dict.fromkeys(things)), tuple(installing), more)


def _real_paths(session: Session, paths: Sequence[str]) -> dict[str, str]:
    """Real paths by path; paths for which the cluster gives none are left out."""
    commands = {f"at{i}": shell_join(["readlink", "-f", "--", path]) for i, path in enumerate(paths)}
    answers = run_batch(session, commands, deadline_s=_LOOK_S)
    real_paths = {path: answers[name].text.rstrip("\n") for name, path in zip(commands, paths, strict=True)}
    return {path: real for path, real in real_paths.items() if real.startswith("/")}


def _answers(
    session: Session, script: str, arguments: Sequence[str], token: str, deadline_s: float
) -> list[tuple[str, str]]:
    """Output of one of the scripts, split at the lines that begin with the token."""
    result = session.run_script(script, arguments, deadline_s=deadline_s)
    if result.exit_code != 0:
        why = server_words(result.stderr) or f"The command on the cluster ended with exit code {result.exit_code}."
        raise LlmbError(f"The install directory cannot be used: {clean_line(arguments[0])}", why)
    return frames(result.stdout, token)


def _repositories(catalog: Catalog) -> list[str]:
    """Path and install step of each repository directly below the install directory."""
    scripts = [(recipe, recipe.upstream) for recipe in catalog.recipes if recipe.upstream is not None]
    return [
        word
        for recipe, upstream in scripts
        if upstream.root_variable == "LLMB_INSTALL"
        for word in (upstream.checkout, f"repository-{recipe.workload}-{recipe.release}")
    ]


def _directory(session: Session) -> str:
    """The install directory. Raises LlmbError (exit code 1) for one whose path cannot be used."""
    install = session.profile.install_dir.rstrip("/")
    if matches(PATH, install):
        return install
    raise LlmbError(
        f"{session.profile.name} has no install directory.",
        clean_line(session.profile.install_dir),
        "Enter one in its profile.",
        exit_code=1,
    )


def _is_below(path: str) -> bool:
    """Whether a path is below a directory and cannot lead out of it."""
    return matches(PATH, f"/{path}") and not {"", "."}.intersection(path.split("/"))


def _is_called(thing: InstallItem, name: str) -> bool:
    by_run = thing.kind == "run" and name in thing.run_ids
    return thing.path == name.rstrip("/") or by_run or (thing.kind == "trash" and name == "trash")


def _below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")


def _writes_below(run: Run, install: str) -> bool:
    """Whether the run's log is below the directory, or the files of its launch while the log's path is unknown."""
    folders = (run.job_log.folder if run.job_log else "", getattr(run.spec, "folder", ""))
    return any(folder.startswith(install) for folder in folders)


def _to_load(by_suites: Mapping[str, str], runs: Sequence[Run]) -> dict[str, str]:
    """Reasons why checkpoints stay, by path: those of suites, and of unfinished runs on any cluster."""
    loaders = [(run.plan.options.load_checkpoint, run) for run in runs if run.is_active or run.submission == "intended"]
    by_runs = {path: f"Run {run.id} is to load from it." for path, run in loaders if path}
    return {posixpath.normpath(path): why for path, why in {**by_suites, **by_runs}.items()}


def _why_run_stays(run: Run, queued: Sequence[str], cluster: str, kind: ItemKind) -> list[tuple[bool, str]]:
    """Possible reasons against removing files of a run, or an item that contains them."""
    unread = kind != "checkpoint" and bool(run.job_ids) and not run.log_read
    procedure = PROCEDURES[run.procedure]
    return [
        (run.cluster != cluster, f"Run {run.id} belongs to cluster {run.cluster}."),
        (not procedure.starts_runs, f"It was started by {procedure.title}."),
        (run.submission in ("unknown", "intended"), f"Run {run.id} is {state_label(run.submission).word}."),
        (run.is_active or bool({*run.job_ids} & {*queued}), f"Run {run.id} is active by its last known state."),
        (unread, f"Its log may not have been read to its end: `llmb-tui watch {run.id}` reads it."),
    ]


def _with_what_they_hold(things: Sequence[InstallItem]) -> tuple[InstallItem, ...]:
    """Keep also the items that contain a run that must stay."""
    stay = [thing for thing in things if thing.kept and thing.kind == "run"]
    items = []
    for thing in things:
        inner = next((run for run in stay if _below(run.path, thing.path)), None)
        kept = f"It contains {inner.path}. {inner.kept}" if inner and not thing.kept else thing.kept
        items.append(replace(thing, kept=kept))
    return tuple(items)
