"""Checks of the partition: its access, time limit, nodes and GPUs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from llmb_tui.cluster.batch import NO_ANSWER, TIMED_OUT
from llmb_tui.cluster.slurm.inventory import fitting_request, parse_config
from llmb_tui.cluster.slurm.params import arguments_of, gpu_options
from llmb_tui.cluster.slurm.partition import NodeGroup, Partition, parse_partitions, parse_time
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.language.labels import gpus_label
from llmb_tui.language.text import count_in
from llmb_tui.plan.plan import Plan
from llmb_tui.preflight.check_group import (
    ADMINISTRATORS,
    Answers,
    card_warning,
    failed,
    first_line,
    ok,
    unserved,
    warning,
)
from llmb_tui.preflight.needs import Needs, architecture_of
from llmb_tui.preflight.report import Check

PartitionSettings = dict[str, dict[str, str]]
"""Settings in the output of `scontrol show partition`, by partition."""

_LIFTED = "The job's QOS lifts this limit of the partition ({})."


def parse_settings(text: str) -> PartitionSettings:
    """Parse the output of `scontrol show partition`."""
    records = re.split(r"(?m)^(?=PartitionName=)", text)
    tables = [dict(re.findall(r"(?<!\S)(\w+)=(\S*)", record)) for record in records]
    return {record["PartitionName"]: record for record in tables if "PartitionName" in record}


def possible_partitions(answers: Answers, profile: SlurmProfile, config: Mapping[str, str]) -> PartitionSettings:
    """Settings of the partitions in which a job of the profile may run.

    If the profile names none, that is Slurm's default partition; if a plugin of the site may choose, or there is no
    default, it is any partition that the user may use.
    """
    settings = parse_settings(answers["partition"].text)
    if profile.partition:
        return settings
    default = {name: record for name, record in settings.items() if record.get("Default") == "YES"}
    if default and not _may_be_chosen_by_site(config):
        return default
    usable = {n: s for n, s in settings.items() if _usable(s, profile, answers["who"].text).status == "ok"}
    return usable or settings


def _may_be_chosen_by_site(config: Mapping[str, str]) -> bool:
    return config.get("JobSubmitPlugins", "unknown") not in ("", "(null)")


def partition_checks(
    answers: Answers, needs: Needs, settings: PartitionSettings, qos_flags: frozenset[str]
) -> Iterator[Check]:
    """Check the partitions in which the job may run, and all requirements for their nodes.

    `settings`: these partitions, from `possible_partitions`. `qos_flags`: flags of the job's QOS, which may lift limits
    of a partition.
    """
    profile, plan = needs.profile, needs.plan
    config = parse_config(answers["config"].text)
    partitions = parse_partitions(answers["nodes"].text)
    if answers["partition"].exit_code != 0 or not settings:
        if partitions and answers["partition"].exit_code not in (TIMED_OUT, NO_ANSWER.exit_code):
            found = ", ".join(partition.name for partition in partitions)
            fix = "Set the cluster's partition to one of these."
            yield failed("partition", "Partition", found, profile.partition or "any", fix)
        else:
            needed = profile.partition or "any"
            yield unserved("partition", "Partition", first_line(answers["partition"]), needed, ADMINISTRATORS)
        return
    groups = [_usable(partition, profile, answers["who"].text) for partition in settings.values()]
    usable = next((check for check in groups if check.status == "ok"), groups[0])
    yield usable if profile.partition or usable.status != "ok" else _not_named(settings, config)
    if plan is not None:
        yield _time_limit(settings, plan, qos_flags)
    requested = [partition for partition in partitions if partition.name in settings]
    if not requested:
        fix = f"`sinfo` lists no nodes of it. {ADMINISTRATORS}"
        yield failed("nodes", "Nodes", "none", _needed_nodes(plan), fix)
        return
    counted = any(partition.gpus for partition in partitions)
    if profile.gpu_type is not None and any(partition.gpus for partition in requested):
        found = _kinds(group for partition in requested for group in partition.groups)
        partitions = [_of_type(partition, profile.gpu_type) for partition in partitions]
        requested = [partition for partition in partitions if partition.name in settings]
        if not any(partition.gpus for partition in requested):
            fix = "Slurm would refuse the job: set the cluster's GPU type to one of these, or remove it."
            yield failed("gpu-request", "GPU request", found, _request(profile), fix)
            return
    yield _nodes(requested, settings, plan, qos_flags, counted=counted)
    if counted and not any(partition.gpus for partition in requested):
        yield _no_gpus(requested, partitions, plan)
    elif plan is not None:
        yield _gpus(requested, partitions, profile, plan)
    yield _gpu_request(partitions, profile, config)
    if plan is not None:
        yield _architecture(answers, set(settings), plan)


def _not_named(settings: PartitionSettings, config: Mapping[str, str]) -> Check:
    """Check that a job without a partition gets one; the test submission shows whether the site takes it."""
    default = next((name for name, record in settings.items() if record.get("Default") == "YES"), "")
    needed = "Slurm or the site chooses"
    if _may_be_chosen_by_site(config):
        return ok("partition", "Partition", f"not named; the default is {default or 'none'}", needed)
    if default:
        return ok("partition", "Partition", f"not named; Slurm uses its default, {default}", needed)
    fix = "Name the cluster's partition: Slurm refuses a job without one."
    return failed("partition", "Partition", "not named, and Slurm has no default", needed, fix)


def _of_type(partition: Partition, gpu_type: str) -> Partition:
    """The partition with only those GPUs that a request for the type can get."""
    groups = (replace(g, gpus=tuple(gpus for gpus in g.gpus if gpus.type == gpu_type)) for g in partition.groups)
    return replace(partition, groups=tuple(groups))


def _request(profile: SlurmProfile) -> str:
    """Option that requests the GPUs of a node."""
    return "".join(arguments_of(gpu_options(profile, "N"))) or "no GPU request"


def _usable(settings: dict[str, str], profile: SlurmProfile, who: str) -> Check:
    name, state = settings["PartitionName"], settings.get("State", "UP")
    needed = f"{name}, up, for account {profile.account}"
    groups = who.partition("\n")[2].split()
    if state != "UP":
        fix = f"Choose another partition, or wait until it is up. {ADMINISTRATORS}"
        return unserved("partition", "Partition", f"{name} is {state}", needed, fix)
    if not _may(settings, "Accounts", [profile.account]):
        fix = "Choose another partition or another account."
        if profile.account in _denied(settings, "Accounts"):
            return failed("partition", "Partition", f"{name} does not allow account {profile.account}", needed, fix)
        fix = f"{fix} Newer Slurm also allows accounts below an allowed one: the test submission shows it."
        return warning("partition", "Partition", f"{name} allows {settings['AllowAccounts']}", needed, fix)
    if profile.qos is not None and not _may(settings, "Qos", [profile.qos]):
        fix = "Choose another partition or another QOS."
        return failed("partition", "Partition", f"{name} does not allow QOS {profile.qos}", needed, fix)
    if groups and not _may(settings, "Groups", groups):
        found = f"{name} only allows members of {settings['AllowGroups']}"
        fix = "Choose another partition, or ask the cluster's administrators for membership."
        return failed("partition", "Partition", found, needed, fix)
    return ok("partition", "Partition", f"{name}, up", needed)


def _may(settings: dict[str, str], what: str, mine: list[str]) -> bool:
    """True if a partition's lists allow one of these names and deny none."""
    allowed = settings.get(f"Allow{what}", "ALL").split(",")
    return ("ALL" in allowed or bool(set(mine) & set(allowed))) and not set(mine) & _denied(settings, what)


def _denied(settings: dict[str, str], what: str) -> set[str]:
    return set(settings.get(f"Deny{what}", "").split(","))


def _time_limit(settings: PartitionSettings, plan: Plan, qos_flags: frozenset[str]) -> Check:
    texts = [partition.get("MaxTime", "UNLIMITED") for partition in settings.values()]
    limit = parse_time(plan.time_limit)
    fits = any((most := parse_time(text)) is None or limit is None or limit <= most for text in texts)
    found = f"at most {', '.join(dict.fromkeys(texts))}"
    if fits:
        return ok("time-limit", "Time limit", found, plan.time_limit)
    if "PartitionTimeLimit" in qos_flags:
        return warning("time-limit", "Time limit", found, plan.time_limit, _LIFTED.format("PartitionTimeLimit"))
    fix = "Lower the time limit, or choose a partition that allows more."
    return failed("time-limit", "Time limit", found, plan.time_limit, fix)


def _needed_nodes(plan: Plan | None) -> str:
    return "at least 1" if plan is None else f"{plan.nodes} × {plan.gpus_per_node} {plan.selection.gpu.upper()}"


def _nodes(
    partitions: list[Partition],
    settings: PartitionSettings,
    plan: Plan | None,
    qos_flags: frozenset[str],
    *,
    counted: bool,
) -> Check:
    """Check the number of nodes in the partition that suits the job best: the job runs in one of them.

    If all partitions must suit the job (EnforcePartLimits=ALL), the test submission shows it. `counted`: Slurm counts
    GPUs in some partition of the cluster.
    """
    counts = {partition.name: _count(partition, plan, counted=counted) for partition in partitions}
    largest_first = sorted(counts, key=counts.__getitem__, reverse=True)
    checks = [_nodes_of(counts[name], settings[name], plan, qos_flags) for name in largest_first]
    return min(checks, key=lambda check: ("ok", "warning", "failed").index(check.status))


def _nodes_of(count: tuple[int, int], settings: dict[str, str], plan: Plan | None, qos_flags: frozenset[str]) -> Check:
    nodes, needed = 1 if plan is None else plan.nodes, _needed_nodes(plan)
    total, working = count
    found = f"{working} working of {total}"
    limit, fix, lifted_by = _node_limit(settings, plan)
    if limit and lifted_by not in qos_flags:
        return failed("nodes", "Nodes", limit, needed, fix)
    if total == 0 and plan is not None:
        return failed("nodes", "Nodes", "none with these GPUs", needed, "Choose a partition whose nodes have them.")
    if total < nodes:
        return failed("nodes", "Nodes", found, needed, "Choose fewer GPUs, or a larger partition.")
    if limit:
        return warning("nodes", "Nodes", limit, needed, _LIFTED.format(lifted_by))
    if working < nodes:
        return warning("nodes", "Nodes", found, needed, "The job will wait until enough other nodes work again.")
    return ok("nodes", "Nodes", found, needed)


def _node_limit(settings: dict[str, str], plan: Plan | None) -> tuple[str, str, str]:
    """The partition's limit that the plan violates, its remedy and the flag of a QOS that lifts it; empty if none."""
    most, least = settings.get("MaxNodes", "UNLIMITED"), settings.get("MinNodes", "0")
    nodes = 1 if plan is None else plan.nodes
    if (allowed := count_in(most)) is not None and allowed < nodes:
        fix = "Choose fewer GPUs, or a partition that allows more nodes."
        return f"at most {most} for one job", fix, "PartitionMaxNodes"
    if plan is not None and (required := count_in(least)) is not None and required > nodes:
        fix = "Choose more GPUs, or a partition that allows fewer nodes."
        return f"at least {least} for one job", fix, "PartitionMinNodes"
    return "", "", ""


def _count(partition: Partition, plan: Plan | None, *, counted: bool) -> tuple[int, int]:
    """Number of a partition's nodes that suit the plan: all, and the working ones."""
    fitting = [group for group in partition.groups if plan is None or _fits(group, plan, counted=counted) is not False]
    return sum(group.nodes for group in fitting), sum(group.nodes for group in fitting if group.works)


def _no_gpus(requested: list[Partition], partitions: list[Partition], plan: Plan | None) -> Check:
    """Make the check for requested partitions without GPUs on a cluster where others have some."""
    others = "; ".join(f"{other.name} has {_kinds(other.groups)}" for other in partitions if other.gpus)
    found = f"no GPUs in {' and '.join(partition.name for partition in requested)}; {others}"
    needed = "GPUs" if plan is None else f"{gpus_label(plan.gpus_per_node, plan.selection.gpu)} in a node"
    return failed("gpus", "GPUs", found, needed, _another_partition(partitions, plan))


def _another_partition(partitions: list[Partition], plan: Plan | None) -> str:
    """Remedy if no requested partition has the GPUs of the plan, or any whole GPU."""

    def suits(partition: Partition) -> bool:
        if plan is None:
            return partition.has_whole_gpus
        return any(_fits(group, plan, counted=True) for group in partition.groups)

    names = [partition.name for partition in partitions if partition.is_up and suits(partition)]
    if names:
        return f"Choose a partition with these GPUs, such as {' or '.join(names[:3])}."
    if plan is None:
        return "Choose a partition with whole GPUs."
    return "Choose the GPU type that the cluster has, or another partition."


def _kinds(groups: Iterable[NodeGroup]) -> str:
    return ", ".join(dict.fromkeys(gpus.words for group in groups for gpus in group.gpus))


def _gpus(requested: list[Partition], partitions: list[Partition], profile: SlurmProfile, plan: Plan) -> Check:
    """Check that a node has the GPUs of the plan, and that the job cannot get other GPUs."""
    counted = any(partition.gpus for partition in partitions)
    groups = [group for partition in requested for group in partition.groups]
    named = profile.partition or profile.gpu_request == "none"
    without = " and ".join(partition.name for partition in requested if not partition.gpus and counted and named)
    found = _kinds(groups) or "Slurm counts no GPUs"
    if without:
        found += f"; none in {without}"
    needed = gpus_label(plan.gpus_per_node, plan.selection.gpu)
    fits = [_fits(group, plan, counted=counted) for group in groups]
    if True not in fits and None in fits:
        fix = f"Slurm does not report the GPUs: make sure that the nodes have {needed}."
        return warning("gpus", "GPUs", found, f"{needed} in a node", fix)
    if True not in fits:
        slices = any(gpus.model.is_slice for group in groups for gpus in group.gpus)
        fix = f"A MIG slice is not a whole {plan.selection.gpu.upper()}. " if slices else ""
        return failed("gpus", "GPUs", found, f"{needed} in a node", fix + _another_partition(partitions, plan))
    if without and profile.gpu_request == "none":
        fix = f"The job requests no GPUs and could start without any: {_avoid(without, profile)}."
        return failed("gpus", "GPUs", found, f"{needed} in every node", fix)
    doubts = list(_doubts(groups, profile.constraint, plan))
    if without:
        doubts.append(f"A job that requests GPUs does not start in {without}: {_avoid('it', profile)}.")
    if doubts:
        return warning("gpus", "GPUs", found, f"{needed} in every node", " ".join(doubts))
    return ok("gpus", "GPUs", found, f"{needed} in a node")


def _avoid(partition: str, profile: SlurmProfile) -> str:
    return f"remove {partition} from the cluster's partition" if profile.partition else "name the cluster's partition"


def _doubts(groups: list[NodeGroup], constraint: str | None, plan: Plan) -> Iterator[str]:
    """Reasons why a job could run on other GPUs than the SXM modules of the plan's type."""
    gpu = plan.selection.gpu
    selected = [group for group in groups if constraint in group.features] or groups
    able = [group for group in selected if sum(gpus.count for gpus in group.gpus) >= plan.gpus_per_node]
    pure = [group for group in able if all(gpus.model.is_type(gpu) for gpus in group.gpus)]
    other = [group for group in able if group not in pure]
    # A constraint that is an expression may already select the right nodes.
    if other and (constraint is None or selected is not groups):
        yield f"The job could get other GPUs than {gpu.upper()}: {_selection_advice(pure, other, gpu)}"
    cards = [group for group in able if any(g.model.is_type(gpu) and g.model.is_card for g in group.gpus)]
    if cards:
        yield card_warning(gpu, (g.type or "" for group in cards for g in group.gpus if g.model.is_card))
        modules = [group for group in pure if group not in cards]
        if modules:
            yield f"To get only SXM, {_selection_advice(modules, cards, gpu)}"


def _selection_advice(right: list[NodeGroup], wrong: list[NodeGroup], gpu: str) -> str:
    """Advice how a job gets GPUs of a type only on the right nodes; without such nodes, only whole GPUs of the type."""
    if not right:
        # The request has only a number, and these nodes have both kinds.
        return f"{_type_advice(wrong, [], gpu)}choose a partition whose nodes have only whole GPUs of this type."
    common = set.intersection(*(set(group.features) for group in right))
    features = common - {feature for group in wrong for feature in group.features}
    if features:
        return f"set the cluster's constraint to {' or '.join(sorted(features))}."
    return f"{_type_advice(right, wrong, gpu)}choose a partition with one kind of GPUs, or exclude the other nodes."


def _type_advice(right: list[NodeGroup], wrong: list[NodeGroup], gpu: str) -> str:
    """Advice to request the type by name, if Slurm has the same name for it on all right nodes and on no other."""
    types = {gpus.type for group in right for gpus in group.gpus if gpus.model.is_type(gpu)}
    others = {gpus.type for group in wrong for gpus in group.gpus}
    name = types.pop() if len(types) == 1 else None
    return f"set the cluster's GPU type to {name}, or " if name and name not in others else ""


def _fits(group: NodeGroup, plan: Plan, *, counted: bool) -> bool | None:
    """True if these nodes have the plan's GPUs; None if Slurm does not report it.

    `counted`: Slurm counts GPUs on this cluster, so nodes without reported GPUs have none.
    """
    if not group.gpus:
        return False if counted else None
    of_type = [(gpus.count, gpus.model.is_type(plan.selection.gpu)) for gpus in group.gpus]
    if sum(count for count, is_type in of_type if is_type) >= plan.gpus_per_node:
        return True
    possible = sum(count for count, is_type in of_type if is_type is not False)
    return None if possible >= plan.gpus_per_node else False


def _gpu_request(partitions: list[Partition], profile: SlurmProfile, config: Mapping[str, str]) -> Check:
    fitting = fitting_request(tuple(partitions), config)
    found = "Slurm counts no GPUs in any partition" if fitting == "none" else "Slurm counts GPUs"
    needed = _request(profile)
    if profile.gpu_request != "none" and fitting == "none":
        fix = "Slurm would refuse the job: set the cluster's GPU request to none."
        return failed("gpu-request", "GPU request", found, needed, fix)
    if profile.gpu_request == "none" and fitting != "none":
        fix = f"A job that requests no GPUs may get none: set the GPU request to {fitting}."
        return warning("gpu-request", "GPU request", found, needed, fix)
    if profile.gpu_request == "gpus-per-node" and fitting == "gres":
        fix = "Slurm would refuse the job: set the cluster's GPU request to gres."
        return failed(
            "gpu-request", "GPU request", f"{config['SelectType']} does not support --gpus-per-node", needed, fix
        )
    return ok("gpu-request", "GPU request", found, needed)


def _architecture(answers: Answers, partitions: set[str], plan: Plan) -> Check:
    """Compare the CPU architecture of the nodes with that of the image."""
    architecture, login = architecture_of(plan.selection.gpu), first_line(answers["machine"])
    needed = f"{architecture}, for the {plan.selection.gpu.upper()} image"
    rows = [line.split("|") for line in answers["architectures"].text.splitlines()]
    nodes = {row[1] for row in rows if len(row) == 3 and partitions & set(row[2].split(","))}
    if not nodes:
        fix = "Slurm does not report the nodes' architecture, and the login node has another one: check the nodes."
        found = f"login node {login}"
        return ok("cpu", "CPU", found, needed) if login == architecture else warning("cpu", "CPU", found, needed, fix)
    found = " and ".join(sorted(nodes))
    if architecture not in nodes:
        return failed("cpu", "CPU", f"nodes {found}", needed, "Choose the GPU type that these nodes have.")
    return ok("cpu", "CPU", f"nodes {found}, login node {login}", needed)
