"""Checks of what a profile asks for besides: reservation, constraint, excluded nodes, segment. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llmb_tui.cluster.preflight.examination import Answers, failed, ok, said, warning
from llmb_tui.cluster.preflight.report import Check
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.partition import parse_partitions
from llmb_tui.cluster.slurm.version import SEGMENT_SINCE, parse_version
from llmb_tui.plan.plan import Plan
from llmb_tui.text import clean_line

_FEATURE = re.compile(r"[A-Za-z_][\w.+:=@/-]*")


def request_checks(answers: Answers, profile: ClusterProfile, plan: Plan | None) -> Iterator[Check]:
    """One check for each field that is set."""
    if profile.reservation is not None:
        for name in profile.reservation.split(","):
            yield _reservation(answers, name, profile, plan)
    if profile.constraint is not None:
        yield _constraint(answers, profile.constraint, profile)
    if profile.exclude is not None:
        yield _exclude(answers, profile.exclude)
    if profile.segment is not None:
        yield _segment(answers, profile.segment, plan)


def _reservation(answers: Answers, name: str, profile: ClusterProfile, plan: Plan | None) -> Check:
    lines = answers["reservations"].text.splitlines()
    records = [dict(re.findall(r"(?<!\S)(\w+)=(\S*)", line)) for line in lines]
    known = {record["ReservationName"]: record for record in records if "ReservationName" in record}
    if name not in known:
        mend = "Leave the reservation out, or set it to one that was found."
        return failed("reservation", "Reservation", ", ".join(known) or "there is none", name, mend)
    record, user = known[name], answers["who"].text.partition("\n")[0]
    users, accounts = (record.get(key, "(null)").split(",") for key in ("Users", "Accounts"))
    if (users, accounts) != (["(null)"], ["(null)"]) and user not in users and profile.account not in accounts:
        mend = "Leave the reservation out, or ask to be taken in."
        return failed("reservation", "Reservation", f"{name} is not for {user} or {profile.account}", name, mend)
    nodes = record.get("NodeCnt", "")
    if plan is not None and nodes.isdecimal() and int(nodes) < plan.nodes:
        found, mend = f"{name} has {nodes} nodes", "Choose fewer GPUs, or a larger reservation."
        return failed("reservation", "Reservation", found, f"{plan.nodes} nodes", mend)
    if record.get("State") == "INACTIVE":
        found = f"{name}, from {record.get('StartTime', 'a time unknown')} to {record.get('EndTime', 'a time unknown')}"
        return warning("reservation", "Reservation", found, name, "The job waits until the reservation begins.")
    return ok("reservation", "Reservation", f"{name}, until {record.get('EndTime', 'a time unknown')}", name)


def _constraint(answers: Answers, constraint: str, profile: ClusterProfile) -> Check:
    named = profile.partition.split(",")
    groups = [g for p in parse_partitions(answers["nodes"].text) if p.name in named for g in p.groups]
    features = dict.fromkeys(feature for group in groups for feature in group.features)
    missing = [word for word in _FEATURE.findall(constraint) if word not in features]
    if missing:
        found = f"no node has {', '.join(missing)}; there is {', '.join(features) or 'no feature at all'}"
        mend = "Correct the cluster's constraint, or leave it out."
        return failed("constraint", "Constraint", found, constraint, mend)
    return ok("constraint", "Constraint", "nodes with these features", constraint)


def _exclude(answers: Answers, nodes: str) -> Check:
    if not answers["exclude"].text.strip():  # only what is no node is left
        return ok("exclude", "Excluded nodes", "known", nodes)
    mend = "Correct the list of nodes to exclude, or leave it out."
    return failed("exclude", "Excluded nodes", said(answers["exclude"]), nodes, mend)


def _segment(answers: Answers, segment: int, plan: Plan | None) -> Check:
    needed = f"--segment={segment}, Slurm {'{}.{:02}'.format(*SEGMENT_SINCE)} or newer"
    text = answers["version"].text
    version, found = parse_version(text), clean_line(" ".join(text.split()[-1:]))
    if version is not None and version < SEGMENT_SINCE:
        mend = "Leave the segment out: sbatch does not know the option here, and would refuse the job."
        return failed("segment", "Segment", f"Slurm {found}", needed, mend)
    if plan is not None and plan.nodes % segment:
        shown = f"{plan.nodes} nodes"
        mend = "Choose a segment that divides the number of nodes: Slurm fills whole segments only."
        return warning("segment", "Segment", shown, needed, mend)
    return ok("segment", "Segment", f"Slurm {found if version else 'unknown'}", needed)
