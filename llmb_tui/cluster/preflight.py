"""Preflight: ask a cluster what a plan needs to know before anything is installed or queued. Takes seconds."""

from __future__ import annotations

from llmb_tui.cluster.batch import run_batch
from llmb_tui.cluster.checks import Facts, evaluate
from llmb_tui.cluster.partition import SINFO_FORMAT
from llmb_tui.cluster.preflight_report import Preflight
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.quoting import shell_join
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm import ACCOUNTS
from llmb_tui.plan.plan import Plan

_DEADLINE_S = 60.0

# The nearest directory that exists, whether it may be written to, and what is free there.
_DISK = """
directory=%s
while [ ! -e "$directory" ]; do directory=$(dirname "$directory"); done
printf '%%s\\n' "$directory"
if [ -d "$directory" ] && [ -w "$directory" ]; then echo writable; else echo read-only; fi
df -Pk "$directory"
"""


def run_preflight(session: Session, profile: ClusterProfile, plan: Plan | None) -> Preflight:
    """Check a cluster, for a plan or, without one, on its own. Nothing is queued, nothing is written.

    Raises what `Session.run` raises; what Slurm says or refuses to say is in the checks.
    """
    answers = run_batch(session, commands(profile), _DEADLINE_S)
    return evaluate(Facts(**answers), profile, plan)


def commands(profile: ClusterProfile) -> dict[str, str]:
    """The sh snippets that gather the `Facts`, by field."""
    # Each client of a controller that hangs takes 10 s to say so: one is enough.
    if_it_answers = '[ "$rc_ping" -eq 0 ] && '
    return {
        "version": "sinfo --version",
        "ping": "scontrol ping",
        "partition": if_it_answers + shell_join(["scontrol", "show", "partition", profile.partition]),
        "nodes": if_it_answers + shell_join(["sinfo", "-h", "-o", SINFO_FORMAT]),
        "accounts": ACCOUNTS,
        "srun": "srun --help",
        "enroot": "enroot version",
        "disk": _DISK % shell_join([profile.install_dir]),
    }
