"""Checks of the partition: is it open, long enough, large enough, and are its nodes the right ones? Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llmb_tui.cluster.offers import fitting_request, parse_config
from llmb_tui.cluster.preflight.architecture import architecture_of
from llmb_tui.cluster.preflight.examination import ADMINISTRATORS, Answers, failed, ok, said, warning
from llmb_tui.cluster.preflight.report import Check
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.partition import NodeGroup, Partition, parse_partitions, parse_time
from llmb_tui.plan.plan import Plan

Settings = dict[str, dict[str, str]]
"""What `scontrol show partition` says, by partition."""

_REQUESTS = {"gres": "--gres=gpu:N", "gpus-per-node": "--gpus-per-node=N", "none": "no GPU request"}


def parse_settings(text: str) -> Settings:
    """Settings of each partition from `scontrol show partition`."""
    records = re.split(r"(?m)^(?=PartitionName=)", text)
    found = [dict(re.findall(r"(?<!\S)(\w+)=(\S*)", record)) for record in records]
    return {record["PartitionName"]: record for record in found if "PartitionName" in record}


def partition_checks(answers: Answers, profile: ClusterProfile, plan: Plan | None) -> Iterator[Check]:
    """The partition or partitions of the profile, and all that depends on their nodes."""
    known = parse_partitions(answers["nodes"].text)
    settings = parse_settings(answers["partition"].text)
    if answers["partition"].exit_code != 0 or not settings:
        found = ", ".join(partition.name for partition in known) or said(answers["partition"])
        mend = "Set the cluster's partition to one of those that were found." if known else ADMINISTRATORS
        yield failed("partition", "Partition", found, profile.partition, mend)
        return
    groups = [_usable(one, profile, answers["who"].text) for one in settings.values()]
    yield next((check for check in groups if check.status == "ok"), groups[0])
    if plan is not None:
        yield _time_limit(settings, plan)
    named = [partition for partition in known if partition.name in settings]
    if not named:
        mend = f"`sinfo` shows no nodes of it. {ADMINISTRATORS}"
        yield failed("nodes", "Nodes", "none", _needed_nodes(plan), mend)
        return
    yield _nodes(named, settings, plan)
    if plan is not None:
        yield _gpus(named, profile, plan)
    yield _gpu_request(named, profile, parse_config(answers["config"].text))
    if plan is not None:
        yield _architecture(answers, set(settings), plan)


def _usable(settings: dict[str, str], profile: ClusterProfile, who: str) -> Check:
    name, state = settings["PartitionName"], settings.get("State", "UP")
    needed = f"{name}, up, for account {profile.account}"
    groups = who.partition("\n")[2].split()
    if state != "UP":
        mend = f"Choose another partition, or wait until it is up. {ADMINISTRATORS}"
        return failed("partition", "Partition", f"{name} is {state}", needed, mend)
    if not _may(settings, "Accounts", [profile.account]):
        mend = "Choose a partition or an account that go together."
        return failed("partition", "Partition", f"{name} is not for account {profile.account}", needed, mend)
    if profile.qos is not None and not _may(settings, "Qos", [profile.qos]):
        mend = "Choose a partition or a QOS that go together."
        return failed("partition", "Partition", f"{name} is not for QOS {profile.qos}", needed, mend)
    if groups and not _may(settings, "Groups", groups):
        found = f"{name} is only for members of {settings['AllowGroups']}"
        mend = f"Choose another partition, or ask to become a member. {ADMINISTRATORS}"
        return failed("partition", "Partition", found, needed, mend)
    return ok("partition", "Partition", f"{name}, up", needed)


def _may(settings: dict[str, str], what: str, mine: list[str]) -> bool:
    """Whether a partition's lists let any of mine in."""
    allowed = settings.get(f"Allow{what}", "ALL").split(",")
    denied = settings.get(f"Deny{what}", "").split(",")
    return ("ALL" in allowed or bool(set(mine) & set(allowed))) and not set(mine) & set(denied)


def _time_limit(settings: Settings, plan: Plan) -> Check:
    texts = [one.get("MaxTime", "UNLIMITED") for one in settings.values()]
    wanted = parse_time(plan.time_limit)
    fits = any((most := parse_time(text)) is None or wanted is None or wanted <= most for text in texts)
    found = f"at most {', '.join(dict.fromkeys(texts))}"
    if fits:
        return ok("time-limit", "Time limit", found, plan.time_limit)
    mend = "Lower the time limit, or choose a partition that gives more."
    return failed("time-limit", "Time limit", found, plan.time_limit, mend)


def _needed_nodes(plan: Plan | None) -> str:
    return "at least 1" if plan is None else f"{plan.nodes} × {plan.gpus_per_node} {plan.selection.gpu.upper()}"


def _nodes(partitions: list[Partition], settings: Settings, plan: Plan | None) -> Check:
    """Judged by the partition that has most to give: a job runs in one of several."""
    wanted, needed = 1 if plan is None else plan.nodes, _needed_nodes(plan)
    best = max(partitions, key=lambda partition: _count(partition, plan))
    total, working = _count(best, plan)
    most = settings[best.name].get("MaxNodes", "UNLIMITED")
    found = f"{working} working of {total}"
    if most.isdecimal() and int(most) < wanted:
        mend = "Choose fewer GPUs, or a partition that allows more nodes."
        return failed("nodes", "Nodes", f"at most {most} for one job", needed, mend)
    if total < wanted:
        return failed("nodes", "Nodes", found, needed, "Choose fewer GPUs, or a larger partition.")
    if working < wanted:
        return warning("nodes", "Nodes", found, needed, "The job will wait until enough of the others are back.")
    return ok("nodes", "Nodes", found, needed)


def _count(partition: Partition, plan: Plan | None) -> tuple[int, int]:
    """How many of a partition's nodes could serve the plan: all, and those that work."""
    fitting = [group for group in partition.groups if plan is None or _fits(group, plan) is not False]
    return sum(group.nodes for group in fitting), sum(group.nodes for group in fitting if group.works)


def _gpus(partitions: list[Partition], profile: ClusterProfile, plan: Plan) -> Check:
    groups = [group for partition in partitions for group in partition.groups]
    listed = dict.fromkeys(gpus for group in groups for gpus in group.gpus)
    found = ", ".join(f"{g.count} × {g.type or 'GPU of unknown type'}" for g in listed) or "Slurm counts no GPUs"
    needed = f"{plan.gpus_per_node} × {plan.selection.gpu.upper()}"
    fits = [_fits(group, plan) for group in groups]
    if True not in fits and None in fits:
        mend = f"Make sure that the nodes have {needed}: Slurm does not say."
        return warning("gpus", "GPUs", found, f"{needed} in a node", mend)
    if True not in fits:
        mend = "Choose the GPU type that the cluster has, or another partition."
        return failed("gpus", "GPUs", found, f"{needed} in a node", mend)
    others = [
        group for group in groups if any(g.count >= plan.gpus_per_node for g in group.gpus) and not _fits(group, plan)
    ]
    if others and profile.constraint is None:
        mend = f"The job could get other GPUs than {plan.selection.gpu.upper()}: {_how_to_tell_apart(groups, others)}"
        return warning("gpus", "GPUs", found, f"{needed} in every node", mend)
    return ok("gpus", "GPUs", found, f"{needed} in a node")


def _how_to_tell_apart(groups: list[NodeGroup], others: list[NodeGroup]) -> str:
    right = [set(group.features) for group in groups if group.gpus and group not in others]
    features = (
        set.intersection(*right) - {feature for group in others for feature in group.features} if right else set()
    )
    if features:
        return f"set the cluster's constraint to {' or '.join(sorted(features))}."
    return "choose a partition with one kind of GPUs, or exclude the other nodes."


def _fits(group: NodeGroup, plan: Plan) -> bool | None:
    """Whether these nodes have the plan's GPUs; None when Slurm does not say."""
    if not group.gpus:
        return None
    verdicts = [gpus.is_type(plan.selection.gpu) for gpus in group.gpus if gpus.count >= plan.gpus_per_node]
    if True in verdicts:
        return True
    return None if None in verdicts else False


def _gpu_request(partitions: list[Partition], profile: ClusterProfile, config: dict[str, str]) -> Check:
    fitting = fitting_request(tuple(partitions), config)
    found = "Slurm counts no GPUs here" if fitting == "none" else "Slurm counts GPUs here"
    needed = _REQUESTS[profile.gpu_request]
    if profile.gpu_request != "none" and fitting == "none":
        mend = "Slurm would refuse the job: set the cluster's GPU request to none."
        return failed("gpu-request", "GPU request", found, needed, mend)
    if profile.gpu_request == "none" and fitting != "none":
        mend = f"A job that asks for no GPUs may get none: set the GPU request to {fitting}."
        return warning("gpu-request", "GPU request", found, needed, mend)
    if profile.gpu_request == "gpus-per-node" and fitting == "gres":
        mend = "Slurm would refuse the job: set the cluster's GPU request to gres."
        return failed("gpu-request", "GPU request", f"{config['SelectType']} knows no --gpus-per-node", needed, mend)
    return ok("gpu-request", "GPU request", found, needed)


def _architecture(answers: Answers, partitions: set[str], plan: Plan) -> Check:
    """CPU architecture of the nodes against that of the image."""
    wanted, login = architecture_of(plan.selection.gpu), said(answers["machine"])
    needed = f"{wanted}, for the {plan.selection.gpu.upper()} image"
    rows = [line.split("|") for line in answers["architectures"].text.splitlines()]
    nodes = {row[1] for row in rows if len(row) == 3 and partitions & set(row[2].split(","))}
    if not nodes:
        mend = "Slurm does not say what the nodes are, and the login node is another kind: make sure."
        found = f"login node {login}"
        return ok("cpu", "CPU", found, needed) if login == wanted else warning("cpu", "CPU", found, needed, mend)
    found = " and ".join(sorted(nodes))
    if wanted not in nodes:
        return failed("cpu", "CPU", f"nodes {found}", needed, "Choose the GPU type that these nodes have.")
    return ok("cpu", "CPU", f"nodes {found}, login node {login}", needed)
