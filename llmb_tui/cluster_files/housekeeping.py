"""`Belonging`: what this program has put on a cluster: images, environments, runs, checkpoints; and taking it away.

All of it lies below the install directory, and nothing else is looked at or removed. What may go is decided from three
sides: what is remembered of runs here, Slurm's queue, and the cluster itself, which looks again before it renames.
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
from llmb_tui.cluster.cluster import SchedulerTrouble
from llmb_tui.cluster.failures import Disconnected, Unanswered, Unreachable
from llmb_tui.cluster.quoting import shell_join
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.client import going_jobs
from llmb_tui.cluster.validation import PATH, matches
from llmb_tui.errors import Trouble
from llmb_tui.language.quantities import byte_size
from llmb_tui.language.states import state_label
from llmb_tui.language.text import clean, clean_line
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
    "trash": "not all deleted",
}
_OF_RUNS: tuple[ItemKind, ...] = ("run", "checkpoint")
_MOST = 2000
_LOOK_S, _MOVE_S, _DELETE_S = 60.0, 60.0, 600.0
_AT_ONCE, _EACH_S, _ALL_S = 8, 12, 96


@dataclass(frozen=True, slots=True)
class Belonging:
    """One thing below the install directory."""

    kind: ItemKind
    path: str
    """Below the install directory; what it is called."""
    run_ids: tuple[str, ...] = ()
    """Of the runs that are remembered here and have written there."""
    kept: str = ""
    """Why it cannot be removed; empty where it can."""
    size: int | None = None
    """Bytes on the disk; None while that was not measured, or could not be in time."""


@dataclass(frozen=True, slots=True)
class BelongingsListing:
    """What `remote/belongings.sh` prints of an install directory, and what Slurm says of jobs."""

    install: str
    things: tuple[tuple[ItemKind, str, bool, bool], ...]
    """(kind, path, owned by this user, made by an install step or a run of ours)."""
    installing: tuple[str, ...] = ()
    """Install steps that are at work."""
    more: int = 0
    """So many are not in `things`: their names are none of ours, a link is on the way to them, or they are too many."""
    queued: tuple[str, ...] = ()
    """The user's jobs that wait or run."""
    silent: str = ""
    """Why that is not known."""
    held: Mapping[str, str] = field(default_factory=dict)
    """Why what runs there have left stays, by their ids."""
    to_load: Mapping[str, str] = field(default_factory=dict)
    """Why checkpoints stay, by their absolute paths."""
    real: Mapping[str, str] = field(default_factory=dict)
    """Where the install directory and these checkpoints really are, as far as that is known: links lead to either."""


@dataclass(frozen=True, slots=True)
class Removal:
    """What became of things that were to be removed."""

    removed: tuple[str, ...]
    """Paths that are away."""
    kept: Mapping[str, str]
    """Why the others stayed."""
    left: str = ""
    """Why not all of their space is free yet; empty where it is."""


def belongings(
    session: Session,
    catalog: Catalog,
    runs: Sequence[Run],
    held: Mapping[str, str],
    to_load: Mapping[str, str] = {},
) -> tuple[tuple[Belonging, ...], int]:
    """What there is, not measured, and how many more things, which are not named.

    `runs`: all remembered ones; `held`: why what runs of this cluster have left, or will need, stays in any case, by
    their ids; `to_load`: why checkpoints stay, by the paths that suites name. Raises Trouble where the cluster cannot
    be asked, or has no such directory.
    """
    listing, silent = _list(session, catalog), ""
    queued: tuple[str, ...] = ()
    try:
        queued = tuple(job.id for job in going_jobs(session))
    except SchedulerTrouble as trouble:
        silent = f"Slurm cannot say which jobs go on. {trouble.what}"
    to_load = _to_load(to_load, runs)
    real = _real_paths(session, (listing.install, *to_load)) if to_load else {}
    listing = replace(listing, held=held, to_load=to_load, real=real, queued=queued, silent=silent)
    return judged(listing, runs, session.profile.name), listing.more


def judged(listing: BelongingsListing, runs: Sequence[Run], cluster: str) -> tuple[Belonging, ...]:
    """What is listed, with its runs, and why it has to stay where it does. Pure."""
    install = f"{listing.install}/"
    logs = [(run.job_log.folder, run) for run in runs if run.job_log and run.job_log.folder.startswith(install)]
    folders = [(folder.removeprefix(install), run) for folder, run in logs]
    run_folders = [path for kind, path, *_ in listing.things if kind == "run"]
    # Two profiles may have one install directory, and share what is in it.
    users = [run for run in runs if run.going and (run.cluster == cluster or _writes_below(run, install))]
    going = f"{users[0].id}{'' if users[0].cluster == cluster else f' of {users[0].cluster}'}" if users else ""
    real = {path: listing.real.get(path, path) for path in (listing.install, *listing.to_load)}
    to_load = [
        (root, saved, why)
        for path, why in listing.to_load.items()
        for root, saved in ((listing.install, path), (real[listing.install], real[path]))
    ]
    found = []
    for kind, path, mine, ours in listing.things:
        # Of checkpoints the run's whole folder says whose they are.
        top = next((folder for folder in run_folders if _below(path, folder)), path)
        of = [run for folder, run in folders if _below(folder, top)]
        reasons = [
            (not mine, "It belongs to another user."),
            (bool(listing.installing), f"An install is at work: {', '.join(listing.installing)}."),
        ]
        if kind != "trash":
            reasons.append((bool(listing.silent), listing.silent))
        if kind in _OF_RUNS:
            reasons.append((not of, "It is of no run that is remembered here, and may be another machine's."))
        elif kind != "trash":
            reasons += [
                (not ours, "This program did not install it."),
                (bool(going), f"Run {going} goes on, as far as is known, and may need it."),
                (bool(listing.held), f"{next(iter(listing.held.values()), '')} It may need it."),
                (bool(listing.queued), f"Job {''.join(listing.queued[:1])} waits or runs, and may need it."),
            ]
        reasons += [(run.id in listing.held, listing.held.get(run.id, "")) for run in of]
        reasons += [reason for run in of for reason in _why_run_stays(run, listing.queued, cluster, kind)]
        reasons += [
            (_below(f"{root}/{path}", saved) or _below(saved, f"{root}/{path}"), why) for root, saved, why in to_load
        ]
        why = next((why for holds, why in reasons if holds), "")
        found.append(Belonging(kind, path, tuple(run.id for run in of), why))
    return _with_what_they_hold(found)


def measured(
    session: Session, things: Sequence[Belonging], tell: Callable[[str], None] = lambda _: None
) -> tuple[Belonging, ...]:
    """The same with sizes, as far as they are known within two minutes or three; `tell` is told how far it is.

    Raises Trouble where the cluster cannot be asked.
    """
    install, found = _directory(session), list(things)
    until = time.monotonic() + _ALL_S
    for first in range(0, len(found), _AT_ONCE):
        if time.monotonic() > until:
            tell(f"It takes too long: {len(found) - first} more were not measured.")
            break
        part = found[first : first + _AT_ONCE]
        tell(f"Measuring {first + 1} to {first + len(part)} of {len(found)}: {part[0].path} …")
        commands = {
            f"at{at}": f"limited {_EACH_S} {shell_join(['du', '-skx', f'{install}/{thing.path}'])} 2>/dev/null"
            for at, thing in enumerate(part)
        }
        answers = run_batch(session, commands, deadline_s=_AT_ONCE * _EACH_S + 30.0)
        for at, thing in enumerate(part):
            answer = answers[f"at{at}"]
            kilobytes = answer.text.partition("\t")[0]
            if answer.exit_code == 0 and kilobytes.isdecimal():
                found[first + at] = replace(thing, size=int(kilobytes) * 1024)
    return tuple(found)


def total_size(things: Sequence[Belonging]) -> str:
    """Of what was measured, in words; what lies in another one of these is not counted twice."""
    tops = [one for one in things if not any(_below(one.path, other.path) for other in things if other is not one)]
    total = byte_size(sum(one.size or 0 for one in tops))
    return f"{total} or more" if any(one.size is None for one in tops) else total


def chosen(things: Sequence[Belonging], names: Iterable[str]) -> tuple[Belonging, ...]:
    """Those of these names: a path below the install directory, the id of a run, or `trash`. Each is named once.

    Raises Trouble (exit code 1) for a name that is none, and for what has to stay.
    """
    found: dict[str, Belonging] = {}
    for name in names:
        of_name = [thing for thing in things if _is_called(thing, name)]
        if not of_name:
            what = f"There is no {clean_line(name)[:200]} among what this program has put there."
            raise Trouble(what, fix="`llmb-tui disk CLUSTER` lists the names.", exit_code=1)
        for thing in of_name:
            if thing.kept:
                raise Trouble(f"{thing.path} cannot be removed.", thing.kept, exit_code=1)
            found[thing.path] = thing
    return tuple(
        thing for thing in found.values() if not any(_below(thing.path, top) for top in found if top != thing.path)
    )


def remove(session: Session, things: Sequence[Belonging], tell: Callable[[str], None] = lambda _: None) -> Removal:
    """Take these away, then delete them; may be repeated after it was cut.

    Raises `ObserverMode`, and Trouble where the cluster cannot be asked.
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
        tell(f"Taking away {len(paths)} …")
        for head, text in session.patiently(move):
            what, _, path = head.partition(" ")
            # What is not there at a second try went with the first one, whose answer was lost.
            if path in paths and (what == "removed" or (what == "gone" and tries > 1)):
                removed.append(path)
            elif path in paths:
                kept[path] = clean_line(text.strip())[:400] or "It is not there any more."
    return Removal(tuple(removed), kept, _delete(session, install, script, tell) if removed else "")


def _delete(session: Session, install: str, script: str, tell: Callable[[str], None]) -> str:
    """Delete what was taken away; why some of it is left, empty where nothing is."""
    token = secrets.token_hex(8)
    tell("Deleting; what is large takes a while …")
    try:
        answers = session.patiently(lambda: _answers(session, script, [install, token], token, _DELETE_S))
    except (Unanswered, Disconnected, Unreachable) as trouble:
        return f"It is not known whether everything is deleted. {trouble.what}"
    return "" if ("left 0", "") in answers else "Not everything could be deleted."


def _list(session: Session, catalog: Catalog) -> BelongingsListing:
    install, token = _directory(session), secrets.token_hex(8)
    script = remote_text("lock.sh", "inside.sh", "belongings.sh")
    arguments = [install, token, str(_MOST), *_repositories(catalog)]
    things: list[tuple[ItemKind, str, bool, bool]] = []
    installing, more = [], 0
    for head, _ in session.patiently(lambda: _answers(session, script, arguments, token, _LOOK_S)):
        kind, *words = head.split(" ")
        if kind == "more" and words and words[0].isdecimal():
            more = int(words[0])
        elif kind == "step" and words:
            installing.append(clean_line(words[0]))
        elif kind in get_args(ItemKind) and len(words) == 3 and _is_below(words[2]):
            things.append((cast("ItemKind", kind), words[2], words[0] == "yes", words[1] == "yes"))
    return BelongingsListing(install, tuple(dict.fromkeys(things)), tuple(installing), more)


def _real_paths(session: Session, paths: Sequence[str]) -> dict[str, str]:
    """Where paths really are, by the paths; those of which the cluster says nothing are left out."""
    asked = {f"at{at}": shell_join(["readlink", "-f", "--", path]) for at, path in enumerate(paths)}
    answers = run_batch(session, asked, deadline_s=_LOOK_S)
    found = {path: answers[name].text.rstrip("\n") for name, path in zip(asked, paths, strict=True)}
    return {path: real for path, real in found.items() if real.startswith("/")}


def _answers(
    session: Session, script: str, arguments: Sequence[str], token: str, deadline_s: float
) -> list[tuple[str, str]]:
    """What one of the scripts prints, by the lines that begin with the token."""
    result = session.run_script(script, arguments, deadline_s=deadline_s)
    if result.exit_code != 0:
        why = clean(result.stderr.strip()) or f"The command there ended with {result.exit_code}."
        raise Trouble(f"The install directory cannot be used: {clean_line(arguments[0])}", why)
    return frames(result.stdout, token)


def _repositories(catalog: Catalog) -> list[str]:
    """Path and install step of each repository that lies in the install directory itself."""
    scripts = [(recipe, recipe.upstream) for recipe in catalog.recipes if recipe.upstream is not None]
    return [
        word
        for recipe, upstream in scripts
        if upstream.root_variable == "LLMB_INSTALL"
        for word in (upstream.checkout, f"repository-{recipe.workload}-{recipe.release}")
    ]


def _directory(session: Session) -> str:
    """The install directory. Raises Trouble (exit code 1) for one below which nothing can be named."""
    install = session.profile.install_dir.rstrip("/")
    if matches(PATH, install):
        return install
    raise Trouble(
        f"{session.profile.name} has no install directory.",
        clean_line(session.profile.install_dir),
        "Enter one in its profile.",
        exit_code=1,
    )


def _is_below(path: str) -> bool:
    """It names something below a directory, and cannot lead out of it."""
    return matches(PATH, f"/{path}") and not {"", "."}.intersection(path.split("/"))


def _is_called(thing: Belonging, name: str) -> bool:
    by_run = thing.kind == "run" and name in thing.run_ids
    return thing.path == name.rstrip("/") or by_run or (thing.kind == "trash" and name == "trash")


def _below(path: str, top: str) -> bool:
    """It is that, or lies below it."""
    return path == top or path.startswith(f"{top}/")


def _writes_below(run: Run, install: str) -> bool:
    """Its log is there, or what its launch leaves before that says where its log is."""
    folders = (run.job_log.folder if run.job_log else "", getattr(run.spec, "folder", ""))
    return any(folder.startswith(install) for folder in folders)


def _to_load(by_suites: Mapping[str, str], runs: Sequence[Run]) -> dict[str, str]:
    """Why checkpoints stay, by their paths: those of suites, and of runs that are not over, on whatever cluster."""
    loaders = [(run.plan.options.load_checkpoint, run) for run in runs if run.going or run.submission == "intended"]
    found = {path: f"Run {run.id} is to load from it." for path, run in loaders if path}
    return {posixpath.normpath(path): why for path, why in {**by_suites, **found}.items()}


def _why_run_stays(run: Run, queued: Sequence[str], cluster: str, kind: ItemKind) -> list[tuple[bool, str]]:
    """What may stand against removing what a run has left, or what holds that."""
    unread = kind != "checkpoint" and bool(run.job_ids) and not run.log_read
    procedure = PROCEDURES[run.procedure]
    return [
        (run.cluster != cluster, f"Run {run.id} is one of {run.cluster} here."),
        (not procedure.starts_runs, f"{procedure.name} started it."),
        (run.submission in ("unknown", "intended"), f"Run {run.id} is {state_label(run.submission).word}."),
        (run.going or bool({*run.job_ids} & {*queued}), f"Run {run.id} goes on, as far as is known."),
        (unread, f"Its log may not have been read to its end: `llmb-tui watch {run.id}` reads it."),
    ]


def _with_what_they_hold(things: Sequence[Belonging]) -> tuple[Belonging, ...]:
    """What holds a run that has to stay stays as well."""
    stay = [thing for thing in things if thing.kept and thing.kind == "run"]
    found = []
    for thing in things:
        inner = next((one for one in stay if _below(one.path, thing.path)), None)
        kept = f"It holds {inner.path}. {inner.kept}" if inner and not thing.kept else thing.kept
        found.append(replace(thing, kept=kept))
    return tuple(found)
