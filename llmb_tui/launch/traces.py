"""`Traces`: what a submission has left in its folder on the cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass

from llmb_tui.cluster.session import Session
from llmb_tui.text import clean

WITHDRAWN = "withdrawn"

# The exit code is read before the answer, which is written first: an exit code without an answer is final.
# Whoever creates claim/owner decides: submit.sh by submitting, this by making sure that nothing ever will be.
_LOOK = rf"""
cd "$1" 2>/dev/null || exit 0
if [ "$2" = withdraw ]; then
    mkdir claim 2>/dev/null
    (set -C; echo {WITHDRAWN} >claim/owner) 2>/dev/null
fi
echo "exit $(cat exit 2>/dev/null)"
echo "owner $(cat claim/owner 2>/dev/null)"
echo "job $(head -n 1 submitted 2>/dev/null)"
tail -c 2000 refusal 2>/dev/null
exit 0
"""


@dataclass(frozen=True, slots=True)
class Traces:
    """What was found. All empty: the submission never began."""

    owner: str = ""
    """Who claimed the submission: `user@host process time`, or `withdrawn`."""
    job_id: str | None = None
    exit_code: int | None = None
    """Exit code of sbatch; None while it has not answered."""
    words: str = ""
    """What sbatch wrote on stderr, clean."""

    @property
    def settled(self) -> bool:
        """True when nothing more will happen on the cluster."""
        return self.exit_code is not None or self.job_id is not None or self.owner == WITHDRAWN


def look(session: Session, folder: str, *, withdraw: bool = False) -> Traces:
    """Read the traces of a submission. `withdraw` first makes sure that one that has not begun never will."""
    done = session.run_script(_LOOK, [folder, "withdraw" if withdraw else "look"])
    return parse(done.stdout)


def parse(text: str) -> Traces:
    """Traces from the output of the look; text that is no such output has none."""
    exit_line, owner_line, job_line, words = (*text.split("\n", 3), "", "", "", "")[:4]
    job = re.fullmatch(r"job (\d+)(;.*)?", job_line)
    code = re.fullmatch(r"exit (\d+)", exit_line)
    return Traces(
        owner=clean(owner_line.removeprefix("owner ")).strip() if owner_line.startswith("owner ") else "",
        job_id=job[1] if job else None,
        exit_code=int(code[1]) if code else None,
        words=clean(words).strip(),
    )
