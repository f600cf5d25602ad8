"""`Traces`: what a submission has left on the cluster, whatever the procedure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from llmb_tui.cluster.session import Session
from llmb_tui.text import clean

Look = Literal["look", "start", "withdraw"]

_WITHDRAWN = "withdrawn"

# Whoever creates claim decides: the helper by submitting, this by making sure that nothing ever will be.
# setsid lets it outlive its session, and gives it a process group of its own, so that it can be seen whether anything
# of it is still running: asked before the files are read, it makes them final.
_LOOK = rf"""
cd "$1" 2>/dev/null || exit 0
folder=$1 how=$2
shift 2
case $how in
start)
    if [ ! -h claim ]; then
        helper=$1
        shift
        nohup $(command -v setsid) sh "$helper" "$folder" "$@" </dev/null >/dev/null 2>&1 &
        set -- "$helper" "$@"
    fi
    ;;
withdraw)
    ln -s {_WITHDRAWN} claim 2>/dev/null
    ;;
esac
claim=$(readlink claim)
owner=${{claim%% *}}
group=${{claim#* }}
if [ "${{owner##*@}}" = "$(uname -n)" ] && [ ! -e exit ]; then
    ps -A -o pgid= -o stat= | awk -v group="${{group%% *}}" '
        $1 == group && $2 !~ /^Z/ {{ alive = 1 }}
        END {{ if (NR && group && !alive) print "gone" }}'
fi
echo "claim $claim"
echo "now $(date +%s)"
echo "beat $(cat beat 2>/dev/null)"
echo "exit $(cat exit 2>/dev/null)"
"""

# Whether a process on another login node still lives cannot be seen from here; what submits gives up within minutes.
_LONGEST_S = 86400.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a submission leaves its traces, and what it leaves there."""

    folder: str
    helper: str
    """Path of the script that submits."""
    arguments: tuple[str, ...]
    """Of the helper, behind the folder."""
    reading: str
    """In sh, with `$1` the helper and its arguments from `$2`: prints lines `NAME VALUE`, then a line `words`, and then
    what the submission said."""


@dataclass(frozen=True, slots=True)
class Traces:
    """What was found. All empty: the submission never began, or its folder cannot be seen."""

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
    def settled(self) -> bool:
        """True when nothing more will happen on the cluster."""
        return self.over or self.withdrawn

    @property
    def withdrawn(self) -> bool:
        """True when it is certain that nothing was submitted and never will be."""
        return self.owner == _WITHDRAWN

    def moment(self, name: str) -> float:
        """The first value of that name as Unix time, by the cluster's clock; 0.0 where there is none."""
        return _seconds("".join(self.all(name)[:1])) or 0.0

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of that name, in the order in which they came."""
        return tuple(value for found, value in self.more if found == name)


def look(session: Session, place: Place, how: Look = "look") -> Traces:
    """Read the traces of a submission, in one remote call.

    `start` also starts it unless somebody did; `withdraw` first makes sure that one that has not begun never will.
    Either may be repeated. Raises what `Session.run` raises.
    """
    done = session.run_script(_LOOK + place.reading, [place.folder, how, place.helper, *place.arguments])
    return parse(done.stdout)


def parse(text: str) -> Traces:
    """Traces from the output of the look; text that is no such output has none."""
    head, _, words = text.partition("\nwords\n")
    said = tuple((name, value) for name, _, value in (line.partition(" ") for line in head.split("\n")) if name)
    values = dict(reversed(said))  # the look's own lines come first
    owner, claimed_at = _claim(values.get("claim", ""))
    code = re.fullmatch(r"(\d+)(?: (\d+))?", values.get("exit", ""))
    since = _seconds(code[2] if code else None) or _seconds(values.get("beat")) or claimed_at
    age_s = max(0.0, (_seconds(values.get("now")) or 0.0) - since) if since else 0.0
    return Traces(
        owner=owner,
        exit_code=int(code[1]) if code else None,
        words=clean(words.replace("\r\n", "\n").replace("\r", "\n")).strip(),
        over=code is not None or "gone" in values or age_s > _LONGEST_S,
        age_s=age_s,
        more=said,
    )


def _claim(text: str) -> tuple[str, float | None]:
    """Who made it, and when by the cluster's clock."""
    parts = clean(text).split()
    return (parts[0] if parts else ""), _seconds(parts[-1] if len(parts) > 1 else None)


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isdecimal() and text.isascii() else None
