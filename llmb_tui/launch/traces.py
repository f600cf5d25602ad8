"""`Traces`: what a submission has left on the cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from llmb_tui.cluster.session import Session
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.text import clean

Look = Literal["look", "start", "withdraw"]

_WITHDRAWN = "withdrawn"

# Whoever creates claim decides: submit.sh by submitting, this by making sure that nothing ever will be.
# setsid lets it outlive its session, and gives it a process group of its own, so that it can be seen whether sbatch or
# submit.sh is still running: asked before the files are read, it makes them final. sbatch has answered before its exit
# code is there. A job writes its output file whatever became of its submission.
_LOOK = rf"""
cd "$1" 2>/dev/null || exit 0
case $2 in
start)
    if [ ! -h claim ]; then
        nohup $(command -v setsid) sh "$3" "$1" "$4" </dev/null >/dev/null 2>&1 &
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
echo "exit $(cat exit 2>/dev/null)"
sed -n 's/^\([0-9][0-9]*\)\(;.*\)\{{0,1\}}$/answer \1/p' answer 2>/dev/null
for output in "$5"_*.out; do
    echo "output ${{output#"$5"_}}"
done
echo "words"
tail -c 2000 refusal 2>/dev/null
exit 0
"""

# Whether a process on another login node still lives cannot be seen from here; sbatch gives up within minutes.
_LONGEST_S = 86400.0


@dataclass(frozen=True, slots=True)
class Traces:
    """What was found. All empty: the submission never began, or its folder cannot be seen."""

    owner: str = ""
    """Who claimed the submission, `user@host`, or `withdrawn`."""
    job_ids: tuple[str, ...] = ()
    """What sbatch answered, else the jobs that have an output file."""
    exit_code: int | None = None
    """Exit code of sbatch; None while it has not answered."""
    words: str = ""
    """What sbatch wrote on stderr, clean."""
    over: bool = False
    """True when nothing more will come from sbatch."""
    age_s: float = 0.0
    """Seconds since sbatch ended, or else since it was started, by the cluster's clock."""

    @property
    def settled(self) -> bool:
        """True when nothing more will happen on the cluster."""
        return self.over or self.withdrawn or bool(self.job_ids)

    @property
    def withdrawn(self) -> bool:
        """True when it is certain that nothing was submitted and never will be."""
        return self.owner == _WITHDRAWN


def look(session: Session, spec: LaunchSpec, how: Look = "look") -> Traces:
    """Read the traces of a submission, in one remote call.

    `start` also starts it unless somebody did; `withdraw` first makes sure that one that has not begun never will.
    Either may be repeated. Raises what `Session.run` raises.
    """
    output = f"{spec.task_dir}/sbatch_{spec.job_name}"
    done = session.run_script(_LOOK, [folder(spec), how, helper_path(spec), script_path(spec), output])
    return parse(done.stdout)


def folder(spec: LaunchSpec) -> str:
    """Folder on the cluster for the traces."""
    return f"{spec.experiment_dir}/submit"


def helper_path(spec: LaunchSpec) -> str:
    """Where `remote/submit.sh` is put."""
    return f"{spec.experiment_dir}/submit.sh"


def script_path(spec: LaunchSpec) -> str:
    """Where the batch script is put: where NeMo-Run would."""
    return f"{spec.experiment_dir}/{spec.task}_sbatch.sh"


def parse(text: str) -> Traces:
    """Traces from the output of the look; text that is no such output has none."""
    head, _, words = text.partition("\nwords\n")
    said = re.findall(r"^(gone|claim|now|exit|answer|output) ?(.*)$", head, re.MULTILINE)
    values = dict(said)
    owner, claimed_at = _claim(values.get("claim", ""))
    code = re.fullmatch(r"(\d+)(?: (\d+))?", values.get("exit", ""))
    answered = [value for name, value in said if name == "answer"]
    outputs = [value.removesuffix(".out") for name, value in said if name == "output"]
    since = _seconds(code[2] if code else None) or claimed_at
    age_s = max(0.0, (_seconds(values.get("now")) or 0.0) - since) if since else 0.0
    return Traces(
        owner=owner,
        job_ids=tuple(answered[-1:]) or tuple(sorted({job for job in outputs if job.isdecimal()}, key=int)),
        exit_code=int(code[1]) if code else None,
        words=clean(words).strip(),
        over=code is not None or "gone" in values or age_s > _LONGEST_S,
        age_s=age_s,
    )


def _claim(text: str) -> tuple[str, float | None]:
    """Who made it, and when by the cluster's clock."""
    parts = clean(text).split()
    return (parts[0] if parts else ""), _seconds(parts[-1] if len(parts) > 1 else None)


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isdecimal() else None
