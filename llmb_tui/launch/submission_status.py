"""`SubmissionStatus`: the traces of a submission on the cluster, whatever the procedure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.language.text import clean, count_in

ProbeMode = Literal["look", "start", "withdraw"]

_WITHDRAWN = "withdrawn"

# Whether a process on another login node is still alive is not visible here; a submitting program gives up in minutes.
_LONGEST_S = 86400.0


@dataclass(frozen=True, slots=True)
class SubmissionDir:
    """Folder with a submission's traces, and the scripts that write and read them."""

    folder: str
    helper: tuple[str, ...]
    """Files of `remote/` that submit; the last one names the helper."""
    arguments: tuple[str, ...]
    """Arguments of the helper, behind the install directory and the folder."""
    reading: tuple[str, ...]
    """Files of `remote/` that read the traces, behind `status.sh`."""


@dataclass(frozen=True, slots=True)
class SubmissionStatus:
    """Traces of a submission so far. If all are empty, it never began, or its folder cannot be seen."""

    owner: str = ""
    """User and host that claimed the submission, as `user@host`, or `withdrawn`."""
    exit_code: int | None = None
    """Exit code of the submitting program; None while it has not ended."""
    output: str = ""
    """Output of that program, clean."""
    has_ended: bool = False
    """True if the submitting program will report nothing more."""
    age_s: float = 0.0
    """Seconds since it ended, or since it last showed a sign of life or was started, by the cluster's clock."""
    values: tuple[tuple[str, str], ...] = ()
    """Names and values that only one of the procedures uses; not clean."""

    @property
    def withdrawn(self) -> bool:
        """True if it is certain that nothing was submitted and never will be."""
        return self.owner == _WITHDRAWN

    def time_of(self, name: str) -> float:
        """First value of a name as Unix time, by the cluster's clock; 0.0 if there is none."""
        return _seconds("".join(self.values_of(name)[:1])) or 0.0

    def values_of(self, name: str) -> tuple[str, ...]:
        """Every value of a name, in order."""
        return tuple(value for key, value in self.values if key == name)


def probe(session: Session, place: SubmissionDir, how: ProbeMode = "look") -> SubmissionStatus:
    """Read the traces of a submission, in one remote call.

    `start` also starts it unless it was started before; `withdraw` first prevents a submission that has not begun from
    ever starting. Both may be repeated. Raises like `Session.run`.
    """
    # The started helper inherits the umask, and so do the job's own files.
    script = f"umask {session.profile.umask}\n" + remote_text("inside.sh", "group.sh", "status.sh", *place.reading)
    install = session.profile.install_dir.rstrip("/")
    # The helper is never a file there, because another member of the group could replace the file.
    helper = remote_text(*place.helper) if how == "start" else ""
    return parse(
        session.run_script(script, [install, place.folder, how, place.helper[-1], helper, *place.arguments]).stdout
    )


def parse(text: str) -> SubmissionStatus:
    """Parse the output of `probe`; all fields are empty for other text."""
    head, _, words = text.partition("\nwords\n")
    lines = tuple((name, value) for name, _, value in (line.partition(" ") for line in head.split("\n")) if name)
    values = dict(reversed(lines))  # the lines of status.sh come first and win
    claim = clean(values.get("claim", "")).split()  # owner, …, and the time by the cluster's clock
    claimed_at = _seconds(claim[-1] if len(claim) > 1 else None)
    code = re.fullmatch(r"(\d+)(?: (\d+))?", values.get("exit", ""))
    since = _seconds(code[2] if code else None) or _seconds(values.get("beat")) or claimed_at
    age_s = max(0.0, (_seconds(values.get("now")) or 0.0) - since) if since else 0.0
    return SubmissionStatus(
        owner="".join(claim[:1]),
        exit_code=int(code[1]) if code else None,
        output=clean(words.replace("\r\n", "\n").replace("\r", "\n")).strip(),
        has_ended=code is not None or "gone" in values or age_s > _LONGEST_S,
        age_s=age_s,
        values=lines,
    )


def _seconds(text: str | None) -> float | None:
    number = count_in(text or "")
    return None if number is None else float(number)
