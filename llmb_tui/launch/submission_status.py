"""`SubmissionStatus`: what a submission has left on the cluster, whatever the procedure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.language.text import clean

ProbeMode = Literal["look", "start", "withdraw"]

_WITHDRAWN = "withdrawn"

# Whether a process on another login node still lives cannot be seen from here; what submits gives up within minutes.
_LONGEST_S = 86400.0


@dataclass(frozen=True, slots=True)
class SubmissionDir:
    """Where a submission leaves its traces, and what it leaves there."""

    folder: str
    helper: tuple[str, ...]
    """The files of `remote/` that submit, the last of which names them."""
    arguments: tuple[str, ...]
    """Of the helper, behind the install directory and the folder."""
    reading: tuple[str, ...]
    """The files of `remote/` that read the traces, behind `status.sh`."""


@dataclass(frozen=True, slots=True)
class SubmissionStatus:
    """What a submission has left so far. All empty: it never began, or its folder cannot be seen."""

    owner: str = ""
    """Who claimed the submission, `user@host`, or `withdrawn`."""
    exit_code: int | None = None
    """Of what submits; None while it has not ended."""
    words: str = ""
    """What it said, clean."""
    over: bool = False
    """True when nothing more will come from it."""
    age_s: float = 0.0
    """Seconds since it ended, or else since it was last seen alive or was started, by the cluster's clock."""
    more: tuple[tuple[str, str], ...] = ()
    """Names and values that only one of the procedures has; not clean."""

    @property
    def withdrawn(self) -> bool:
        """True when it is certain that nothing was submitted and never will be."""
        return self.owner == _WITHDRAWN

    def moment(self, name: str) -> float:
        """The first value of that name as Unix time, by the cluster's clock; 0.0 where there is none."""
        return _seconds("".join(self.all(name)[:1])) or 0.0

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of that name, in the order in which they came."""
        return tuple(value for key, value in self.more if key == name)


def probe(session: Session, place: SubmissionDir, how: ProbeMode = "look") -> SubmissionStatus:
    """Read the traces of a submission, in one remote call.

    `start` also starts it unless somebody did; `withdraw` first makes sure that one that has not begun never will.
    Either may be repeated. Raises what `Session.run` raises.
    """
    # What it starts takes this over, and so do the job's own files.
    script = f"umask {session.profile.umask}\n" + remote_text("inside.sh", "group.sh", "status.sh", *place.reading)
    install = session.profile.install_dir.rstrip("/")
    # It is never a file there, where another member of a group could put another one in its place.
    helper = remote_text(*place.helper) if how == "start" else ""
    return parse(
        session.run_script(script, [install, place.folder, how, place.helper[-1], helper, *place.arguments]).stdout
    )


def parse(text: str) -> SubmissionStatus:
    """The status from the output of `probe`; all empty for a text that is no such output."""
    head, _, words = text.partition("\nwords\n")
    lines = tuple((name, value) for name, _, value in (line.partition(" ") for line in head.split("\n")) if name)
    values = dict(reversed(lines))  # those of status.sh come first
    claim = clean(values.get("claim", "")).split()  # who made it, …, and when by the cluster's clock
    claimed_at = _seconds(claim[-1] if len(claim) > 1 else None)
    code = re.fullmatch(r"(\d+)(?: (\d+))?", values.get("exit", ""))
    since = _seconds(code[2] if code else None) or _seconds(values.get("beat")) or claimed_at
    age_s = max(0.0, (_seconds(values.get("now")) or 0.0) - since) if since else 0.0
    return SubmissionStatus(
        owner="".join(claim[:1]),
        exit_code=int(code[1]) if code else None,
        words=clean(words.replace("\r\n", "\n").replace("\r", "\n")).strip(),
        over=code is not None or "gone" in values or age_s > _LONGEST_S,
        age_s=age_s,
        more=lines,
    )


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isdecimal() and text.isascii() else None
