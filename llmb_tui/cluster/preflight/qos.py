"""The check of the QOS: may the account use it, and does the job keep within its limits? Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from llmb_tui.cluster.preflight.examination import Answers, failed, ok, warning
from llmb_tui.cluster.preflight.report import Check
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.associations import Association, qos_of
from llmb_tui.cluster.slurm.partition import parse_time
from llmb_tui.plan.plan import Plan

QOS = "limited 6 sacctmgr -nP show qos format=name,maxwall,maxtres,maxtrespu,grptres"
"""For `run_batch`."""


@dataclass(frozen=True, slots=True)
class Qos:
    """A QOS with the limits that one job can break."""

    name: str
    longest: str
    """As Slurm prints a time; empty for no limit."""
    resources: tuple[tuple[str, int], ...]
    """(resource, most of it): of a job, of a user, of all together. `node` and `gres/gpu` matter here."""


def parse_qos(text: str) -> dict[str, Qos]:
    """QOS by name, from the output of `QOS`."""
    found = {}
    for line in text.splitlines():
        cells = line.split("|")
        if len(cells) == 5:
            limits = re.findall(r"(?:^|,|\|)(node|gres/gpu)=(\d+)", "|".join(cells[2:]))
            found[cells[0]] = Qos(cells[0], cells[1], tuple((name, int(most)) for name, most in limits))
    return found


def qos_check(
    answers: Answers,
    profile: ClusterProfile,
    plan: Plan | None,
    associations: list[Association],
    settings: dict[str, dict[str, str]],
) -> Iterator[Check]:
    """One check where the profile names a QOS, or where a limit stands in the way; otherwise none."""
    known = parse_qos(answers["qos"].text) if answers["qos"].exit_code == 0 else {}
    allowed = qos_of(associations, profile.account)
    needed = profile.qos or "within the limits"
    if profile.qos is not None and allowed and profile.qos not in allowed:
        mend = "Set the cluster's QOS to one of those that were found, or leave it out."
        yield failed("qos", "QOS", ", ".join(allowed), needed, mend)
        return
    default = next((a.default_qos for a in associations if a.account == profile.account), "")
    of_partition = [one.get("QoS", "") for one in settings.values()]
    in_force = [known[name] for name in (profile.qos or default, *of_partition) if name in known]
    broken = [limit for qos in in_force for limit in _broken(qos, plan)] if plan is not None else []
    if broken:
        mend = "Choose fewer GPUs or a shorter time limit, or a QOS that allows more."
        yield failed("qos", "QOS", "; ".join(broken), needed, mend)
    elif profile.qos is not None and not allowed:
        mend = "The QOS cannot be checked; if it is wrong, Slurm refuses the job."
        yield warning("qos", "QOS", "none is listed for this user", needed, mend)
    elif profile.qos is not None:
        yield ok("qos", "QOS", profile.qos, needed)


def _broken(qos: Qos, plan: Plan) -> Iterator[str]:
    wanted = {"node": plan.nodes, "gres/gpu": plan.nodes * plan.gpus_per_node}
    words = {"node": "nodes", "gres/gpu": "GPUs"}
    for name, most in qos.resources:
        if wanted[name] > most:
            yield f"{qos.name} allows {most} {words[name]}"
    longest, limit = parse_time(qos.longest), parse_time(plan.time_limit)
    if longest is not None and limit is not None and limit > longest:
        yield f"{qos.name} allows {qos.longest}"
