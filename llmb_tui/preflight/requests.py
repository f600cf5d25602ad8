"""Checks of the other requests of a profile: QOS, reservation, constraint, excluded nodes, segment. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from llmb_tui.cluster.batch import TIMED_OUT, Answer
from llmb_tui.cluster.slurm.accounting import Association, qos_of
from llmb_tui.cluster.slurm.client import SEGMENT_SINCE, parse_version
from llmb_tui.cluster.slurm.errors import explain
from llmb_tui.cluster.slurm.partition import parse_partitions, parse_time
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.language.text import clean_line, count_in, plural
from llmb_tui.plan.plan import Plan
from llmb_tui.preflight.check_group import Answers, failed, first_line, ok, warning
from llmb_tui.preflight.needs import Needs
from llmb_tui.preflight.partition import PartitionSettings
from llmb_tui.preflight.report import Check

_COLUMNS = "name,flags,maxwall,maxtres,maxtrespu,grptres,mintres"
QOS = f'[ "$rc_associations" -ne {TIMED_OUT} ] && limited 6 sacctmgr -nP show qos format={_COLUMNS}'
"""Snippet for `run_batch`, after `associations`: it does not wait for hanging accounting a second time."""
_NONE = "(null)"
_COUNT = re.compile(r"\*\d+")
_FEATURE = re.compile(r"[\w.+:=@/-]+")


@dataclass(frozen=True, slots=True)
class Qos:
    """A QOS with the limits that one job can exceed."""

    name: str
    flags: frozenset[str]
    """Flags of sacctmgr, such as `OverPartQOS`: its limits have priority over those of a partition's QOS."""
    longest: str
    """Longest run time in Slurm's notation; empty for no limit."""
    resources: Mapping[tuple[int, str], int]
    """Limits of nodes and GPUs, by kind of limit (per job, per user, of all together) and Slurm's resource, such as
    `node`, `gres/gpu` or `gres/gpu:h100`."""
    smallest: Mapping[str, int]
    """Smallest numbers of nodes and GPUs of a job, by resource."""


def request_checks(answers: Answers, needs: Needs, settings: PartitionSettings) -> Iterator[Check]:
    """Make one check for each of these fields that is set. `settings`: partitions in which the job may run."""
    profile, plan = needs.profile, needs.plan
    if profile.reservation is not None:
        unasked = answers["reservations"].exit_code != 0
        failure = explain("scontrol show reservation", answers["reservations"]) if unasked else None
        for name in profile.reservation.split(","):
            if failure:
                yield warning("reservation", "Reservation", failure.words, name, failure.sentences)
            else:
                yield _reservation(answers, name, needs)
    if profile.constraint is not None:
        yield _constraint(answers, profile.constraint, settings)
    if profile.exclude is not None:
        yield _exclude(answers, profile.exclude)
    if profile.segment is not None:
        yield _segment(answers, profile.segment, plan)


def _reservation(answers: Answers, name: str, needs: Needs) -> Check:
    plan, account = needs.plan, needs.profile.account
    lines = answers["reservations"].text.splitlines()
    records = [dict(re.findall(r"(?<!\S)(\w+)=(\S*)", line)) for line in lines]
    reservations = {record["ReservationName"]: record for record in records if "ReservationName" in record}
    if name not in reservations:
        fix = "Remove the reservation, or set it to one of these."
        return failed("reservation", "Reservation", ", ".join(reservations) or "no reservation", name, fix)
    record, user = reservations[name], answers["who"].text.partition("\n")[0]
    by_user, by_account = _lists(record.get("Users", _NONE), user), _lists(record.get("Accounts", _NONE), account)
    if not by_user and not by_account and (by_user, by_account) != (None, None):
        found, fix = f"{name} does not allow {user} or {account}", "Remove the reservation, or ask for access to it."
        if by_account is None or record["Accounts"].startswith("-"):
            return failed("reservation", "Reservation", found, name, fix)
        fix = f"{fix} Slurm also allows accounts below these: the test submission shows it."
        return warning("reservation", "Reservation", f"{name} allows {record['Accounts']}", name, fix)
    nodes = record.get("NodeCnt", "")
    if plan is not None and (reserved := count_in(nodes)) is not None and reserved < plan.nodes:
        found, fix = f"{name} has {nodes} nodes", "Choose fewer GPUs, or a larger reservation."
        flexible = "FLEX" in record.get("Flags", "").split(",")
        if flexible:
            fix = "The reservation is FLEX: the job may also use nodes outside of it."
        return (warning if flexible else failed)("reservation", "Reservation", found, f"{plan.nodes} nodes", fix)
    if record.get("State") == "INACTIVE":
        found = f"{name}, from {record.get('StartTime', 'a time unknown')} to {record.get('EndTime', 'a time unknown')}"
        return warning("reservation", "Reservation", found, name, "The job waits until the reservation begins.")
    return ok("reservation", "Reservation", f"{name}, until {record.get('EndTime', 'a time unknown')}", name)


def _lists(names: str, mine: str) -> bool | None:
    """True if a reservation's list allows a name. A list with dashes names the excluded ones. None: no list."""
    if names == _NONE:
        return None
    return (f"-{mine}" not in names.split(",")) if names.startswith("-") else mine in names.split(",")


def _constraint(answers: Answers, constraint: str, settings: PartitionSettings) -> Check:
    groups = [g for p in parse_partitions(answers["nodes"].text) if p.name in settings for g in p.groups]
    features = dict.fromkeys(feature for group in groups for feature in group.features)
    missing = [word for word in _FEATURE.findall(_COUNT.sub("", constraint)) if word not in features]
    if missing:
        found = f"no node has {', '.join(missing)}; the nodes have {', '.join(features) or 'no features'}"
        fix = "Correct or remove the cluster's constraint."
        return failed("constraint", "Constraint", found, constraint, fix)
    return ok("constraint", "Constraint", "nodes with these features", constraint)


def _exclude(answers: Answers, nodes: str) -> Check:
    if not answers["exclude"].text.strip():  # the command only prints unknown nodes
        return ok("exclude", "Excluded nodes", "known", nodes)
    fix = "Correct or remove the list of nodes to exclude."
    return failed("exclude", "Excluded nodes", first_line(answers["exclude"]), nodes, fix)


def _segment(answers: Answers, segment: int, plan: Plan | None) -> Check:
    needed = f"--segment={segment}, Slurm {'{}.{:02}'.format(*SEGMENT_SINCE)} or newer"
    text = answers["version"].text
    version, release = parse_version(text), clean_line(" ".join(text.split()[-1:]))
    if version is not None and version < SEGMENT_SINCE:
        fix = "Remove the segment: this Slurm's sbatch does not have the option, and would refuse the job."
        return failed("segment", "Segment", f"Slurm {release}", needed, fix)
    if plan is not None and plan.nodes % segment:
        count = f"{plan.nodes} nodes"
        fix = "Choose a segment that divides the number of nodes: Slurm only fills whole segments."
        return warning("segment", "Segment", count, needed, fix)
    return ok("segment", "Segment", f"Slurm {release if version else 'unknown'}", needed)


def qos_of_job(answers: Answers, profile: SlurmProfile, associations: list[Association]) -> Qos | None:
    """QOS of the profile, or the default of its account; None if Slurm does not report it."""
    default = next((a.default_qos for a in associations if a.account == profile.account), "")
    return parse_qos(answers["qos"]).get(profile.qos or default)


def parse_qos(answer: Answer) -> dict[str, Qos]:
    """Parse the answer to `QOS` to QOS by name."""
    by_name = {}
    for line in answer.text.splitlines() if answer.exit_code == 0 else ():
        cells = line.split("|")
        if len(cells) == 7:
            name, flags, longest, *kinds, smallest = cells
            limits = {
                (kind, resource): most for kind, text in enumerate(kinds) for resource, most in _resources(text).items()
            }
            by_name[name] = Qos(name, frozenset(flags.split(",")), longest, limits, _resources(smallest))
    return by_name


def _resources(text: str) -> dict[str, int]:
    """Numbers of nodes and GPUs in Slurm's list of trackable resources."""
    return {name: int(number) for name, number in re.findall(r"(?:^|,)(node|gres/gpu(?::[^,=]+)?)=(\d{1,18})", text)}


def qos_check(
    answers: Answers,
    needs: Needs,
    associations: list[Association],
    settings: PartitionSettings,
    config: Mapping[str, str],
) -> Iterator[Check]:
    """Make one check if the profile names a QOS or the plan violates a limit, otherwise none.

    Of several partitions the one with the fewest exceeded limits counts: a job runs in one of them.
    """
    profile, plan = needs.profile, needs.plan
    by_name = parse_qos(answers["qos"])
    allowed = qos_of(associations, profile.account)
    needed = profile.qos or "within the limits"
    if profile.qos is not None and allowed and profile.qos not in allowed:
        fix = "Set the cluster's QOS to one of these, or remove it."
        yield failed("qos", "QOS", ", ".join(allowed), needed, fix)
        return
    own = qos_of_job(answers, profile, associations)
    partition_qos = [by_name.get(partition.get("QoS", "")) for partition in settings.values()] or [None]
    in_force = [_in_force(own, qos) for qos in partition_qos]
    fewest: list[str] = []
    too_small: list[str] = []
    if plan is not None:
        requested = _requested(plan, profile)
        violations = [([*_exceeded(qos, plan, requested)], [*_below(qos, requested)]) for qos in in_force]
        fewest, too_small = min(violations, key=lambda both: len(both[0]) + len(both[1]))
    if (fewest or too_small) and "limits" not in config.get("AccountingStorageEnforce", "limits"):
        fix = "Slurm does not enforce limits on this cluster: the job may still run."
        yield warning("qos", "QOS", "; ".join([*fewest, *too_small]), needed, fix)
    elif too_small:
        fix = "Slurm accepts the job, but it waits without an end: choose more GPUs, or another QOS."
        if fewest:
            fix = "No size suits these limits: choose another QOS or partition."
        yield failed("qos", "QOS", "; ".join([*fewest, *too_small]), needed, fix)
    elif fewest:
        fix = "Choose fewer GPUs or a shorter time limit, or a QOS that allows more."
        yield failed("qos", "QOS", "; ".join(fewest), needed, fix)
    elif profile.qos is not None and not allowed:
        fix = "The QOS cannot be checked; if it is wrong, Slurm refuses the job."
        unasked = answers["associations"].exit_code != 0
        found = explain("sacctmgr", answers["associations"]).words if unasked else "no QOS is listed for this user"
        yield warning("qos", "QOS", found, needed, fix)
    elif profile.qos is not None:
        yield ok("qos", "QOS", profile.qos, needed)


def _in_force(own: Qos | None, partition_qos: Qos | None) -> list[Qos]:
    """QOS of the job and its partition, in Slurm's order (resource_limits.html): the first to set a limit counts."""
    in_order = [own, partition_qos] if own is not None and "OverPartQOS" in own.flags else [partition_qos, own]
    return [qos for qos in in_order if qos is not None]


def _requested(plan: Plan, profile: SlurmProfile) -> dict[str, int]:
    """Nodes and GPUs of the job by Slurm's resource; by type, too, if the job requests one."""
    gpus = plan.nodes * plan.gpus_per_node
    typed = {f"gres/gpu:{profile.gpu_type}": gpus} if profile.gpu_type is not None else {}
    return {"node": plan.nodes, "gres/gpu": gpus, **typed}


def _in_words(number: int, resource: str) -> str:
    return plural(number, "node") if resource == "node" else plural(number, "GPU")


def _below(in_force: list[Qos], requested: Mapping[str, int]) -> Iterator[str]:
    """Smallest sizes of a job that the request does not reach; the first QOS that sets one counts."""
    decided: set[str] = set()
    for qos in in_force:
        for resource, least in qos.smallest.items():
            if resource not in decided and requested.get(resource, least) < least:
                yield f"{qos.name} requires at least {_in_words(least, resource)}"
        decided |= qos.smallest.keys()


def _exceeded(in_force: list[Qos], plan: Plan, requested: Mapping[str, int]) -> Iterator[str]:
    decided: set[tuple[int, str]] = set()
    for qos in in_force:
        for (kind, resource), most in qos.resources.items():
            if (kind, resource) not in decided and requested.get(resource, 0) > most:
                yield f"{qos.name} allows {_in_words(most, resource)}"
        decided |= qos.resources.keys()
    limit = parse_time(plan.time_limit)
    for qos in in_force:
        longest = parse_time(qos.longest)
        if longest is not None:
            if limit is not None and limit > longest:
                yield f"{qos.name} allows {qos.longest}"
            break
