"""What a preflight says: facts about a cluster, a profile and a plan in; checks out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from llmb_tui.cluster.batch import Answer
from llmb_tui.cluster.partition import Gpus, NodeGroup, Partition, parse_partitions, parse_time
from llmb_tui.cluster.preflight_report import Check, CheckStatus, Preflight
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm import accounting_is_off, parse_accounts
from llmb_tui.plan.plan import Plan
from llmb_tui.text import clean_line

_OLDEST_SLURM = (20, 11)
_ADMINISTRATORS = "Ask the cluster's administrators."
# The recipes' documentation: container images take 5 to 60 GB each.
_SMALLEST_IMAGE_GB = 5
_BIGGEST_IMAGE_GB = 60


@dataclass(frozen=True, slots=True)
class Facts:
    """What the commands of `preflight.commands` answered."""

    version: Answer
    ping: Answer
    partition: Answer
    nodes: Answer
    accounts: Answer
    srun: Answer
    enroot: Answer
    disk: Answer


def evaluate(facts: Facts, profile: ClusterProfile, plan: Plan | None) -> Preflight:
    """All checks that the facts allow. Without Slurm, or while its controller is silent, the rest of it is left out."""
    checks = [_scheduler(facts)]
    if checks[-1].status != "failed":
        checks += [_controller(facts), _account(facts, profile)]
        if facts.ping.exit_code == 0:
            checks += _partition(facts, profile, plan)
        checks += [_pyxis(facts), _enroot(facts)]
    return Preflight(tuple(_cleaned(check) for check in (*checks, *_disk(facts, profile))))


def _scheduler(facts: Facts) -> Check:
    found = re.search(r"(\d+)\.(\d+)(?:\.\d+)*", facts.version.text)
    needed = "Slurm {}.{:02} or newer".format(*_OLDEST_SLURM)
    if facts.version.exit_code != 0 or found is None:
        mend = "Is this a login node? If so, make Slurm's commands known to non-interactive shells, in ~/.bashrc."
        return Check("scheduler", "Scheduler", "failed", _said(facts.version), needed, mend)
    is_old = (int(found[1]), int(found[2])) < _OLDEST_SLURM
    mend = "It may work all the same." if is_old else ""
    return Check("scheduler", "Scheduler", "warning" if is_old else "ok", f"Slurm {found[0]}", needed, mend)


def _controller(facts: Facts) -> Check:
    up = facts.ping.exit_code == 0
    mend = "" if up else f"It is down or overloaded; running jobs go on. Try again in a minute. {_ADMINISTRATORS}"
    found = "answers" if up else _said(facts.ping)
    return Check("controller", "Controller", "ok" if up else "failed", found, "answers", mend)


def _account(facts: Facts, profile: ClusterProfile) -> Check:
    accounts = parse_accounts(facts.accounts)
    if profile.account in accounts:
        return Check("account", "Account", "ok", profile.account, profile.account, "")
    if accounting_is_off(facts.accounts):
        return Check("account", "Account", "ok", "this cluster keeps no accounts", profile.account, "")
    if facts.accounts.exit_code != 0 or not accounts:
        found = _said(facts.accounts) if facts.accounts.exit_code else "none is listed for this user"
        mend = "The account cannot be checked; if it is wrong, Slurm refuses the job."
        return Check("account", "Account", "warning", found, profile.account, mend)
    mend = f"Set the cluster's account to one of: {', '.join(accounts)}."
    return Check("account", "Account", "failed", ", ".join(accounts), profile.account, mend)


def _partition(facts: Facts, profile: ClusterProfile, plan: Plan | None) -> Iterator[Check]:
    """The partition, and all that depends on it."""
    known = parse_partitions(facts.nodes.text)
    if facts.partition.exit_code != 0:
        found = ", ".join(p.name for p in known) or _said(facts.partition)
        mend = "Set the cluster's partition to one of those that were found." if known else _ADMINISTRATORS
        yield Check("partition", "Partition", "failed", found, profile.partition, mend)
        return
    settings = dict(re.findall(r"(?<!\S)(\w+)=(\S*)", facts.partition.text))
    yield _usable(settings, profile)
    if plan is not None:
        yield _time_limit(settings, plan)
    partition = next((p for p in known if p.name == profile.partition), None)
    if partition is None:
        mend = f"`sinfo` shows no nodes of it. {_ADMINISTRATORS}"
        yield Check("nodes", "Nodes", "failed", "none", _needed_nodes(plan), mend)
        return
    yield _nodes(partition, settings, plan)
    if plan is not None:
        yield _gpus(partition, plan)
    yield _gpu_request(partition, profile)


def _usable(settings: dict[str, str], profile: ClusterProfile) -> Check:
    state, allowed = settings.get("State", "UP"), settings.get("AllowAccounts", "ALL").split(",")
    denied = settings.get("DenyAccounts", "").split(",")
    needed = f"{profile.partition}, up, for account {profile.account}"
    if state != "UP":
        mend = f"Choose another partition, or wait until it is up. {_ADMINISTRATORS}"
        return Check("partition", "Partition", "failed", f"{profile.partition} is {state}", needed, mend)
    if ("ALL" not in allowed and profile.account not in allowed) or profile.account in denied:
        found = f"{profile.partition} is not for account {profile.account}"
        mend = "Choose a partition or an account that go together."
        return Check("partition", "Partition", "failed", found, needed, mend)
    return Check("partition", "Partition", "ok", f"{profile.partition}, up", needed, "")


def _time_limit(settings: dict[str, str], plan: Plan) -> Check:
    text = settings.get("MaxTime", "UNLIMITED")
    most, wanted = parse_time(text), parse_time(plan.time_limit)
    fits = most is None or wanted is None or wanted <= most
    mend = "" if fits else "Lower the time limit, or choose a partition that gives more."
    return Check("time-limit", "Time limit", "ok" if fits else "failed", f"at most {text}", plan.time_limit, mend)


def _needed_nodes(plan: Plan | None) -> str:
    return "at least 1" if plan is None else f"{plan.nodes} × {plan.gpus_per_node} {plan.selection.gpu.upper()}"


def _nodes(partition: Partition, settings: dict[str, str], plan: Plan | None) -> Check:
    wanted = 1 if plan is None else plan.nodes
    fitting = [group for group in partition.groups if plan is None or _fits(group, plan) is not False]
    total = sum(group.nodes for group in fitting)
    working = sum(group.nodes for group in fitting if group.works)
    most = settings.get("MaxNodes", "UNLIMITED")
    found = f"{working} working of {total}"
    status: CheckStatus = "ok"
    mend = ""
    if most.isdigit() and int(most) < wanted:
        status, found = "failed", f"at most {most} for one job"
        mend = "Choose fewer GPUs, or a partition that allows more nodes."
    elif total < wanted:
        status, mend = "failed", "Choose fewer GPUs, or a larger partition."
    elif working < wanted:
        status, mend = "warning", "The job will wait until enough of the others are back."
    return Check("nodes", "Nodes", status, found, _needed_nodes(plan), mend)


def _gpus(partition: Partition, plan: Plan) -> Check:
    listed = {gpus: None for group in partition.groups for gpus in group.gpus}
    found = ", ".join(f"{g.count} × {g.type or 'GPU of unknown type'}" for g in listed) or "Slurm counts no GPUs"
    needed = f"{plan.gpus_per_node} × {plan.selection.gpu.upper()} in a node"
    fits = [_fits(group, plan) for group in partition.groups]
    if True in fits:
        return Check("gpus", "GPUs", "ok", found, needed, "")
    if None in fits:
        mend = f"Make sure that the nodes have {needed.removesuffix(' in a node')}: Slurm does not say."
        return Check("gpus", "GPUs", "warning", found, needed, mend)
    mend = "Choose the GPU type that the cluster has, or another partition."
    return Check("gpus", "GPUs", "failed", found, needed, mend)


def _fits(group: NodeGroup, plan: Plan) -> bool | None:
    """Whether these nodes have the plan's GPUs; None when Slurm does not say."""
    if not group.gpus:
        return None
    verdicts = [_is_type(gpus, plan.selection.gpu) for gpus in group.gpus if gpus.count >= plan.gpus_per_node]
    if True in verdicts:
        return True
    return None if None in verdicts else False


def _is_type(gpus: Gpus, wanted: str) -> bool | None:
    """Sites name types freely: `h100`, `H100_SXM`, `nvidia_h100_80gb_hbm3`. `b200` is no `gb200`."""
    if gpus.type is None:
        return None
    return any(word.startswith(wanted.lower()) for word in re.split(r"[^a-z0-9]+", gpus.type.lower()))


def _gpu_request(partition: Partition, profile: ClusterProfile) -> Check:
    has_gres = any(group.gpus for group in partition.groups)
    found = "Slurm counts GPUs here" if has_gres else "Slurm counts no GPUs here"
    needed = {"gres": "--gres=gpu:N", "gpus-per-node": "--gpus-per-node=N", "none": "no GPU request"}
    status: CheckStatus = "ok"
    mend = ""
    if has_gres and profile.gpu_request == "none":
        status, mend = "warning", "A job that asks for no GPUs may get none: set the GPU request to gpus-per-node."
    elif not has_gres and profile.gpu_request != "none":
        status, mend = "failed", "Slurm would refuse the job: set the cluster's GPU request to none."
    return Check("gpu-request", "GPU request", status, found, needed[profile.gpu_request], mend)


def _pyxis(facts: Facts) -> Check:
    has_it = facts.srun.exit_code == 0 and "--container-image" in facts.srun.text
    found = "srun knows --container-image" if has_it else "srun does not know --container-image"
    mend = "" if has_it else f"The recipes run in containers, which the Slurm plugin Pyxis starts. {_ADMINISTRATORS}"
    return Check("pyxis", "Pyxis", "ok" if has_it else "failed", found, "srun --container-image", mend)


def _enroot(facts: Facts) -> Check:
    has_it = facts.enroot.exit_code == 0
    found = f"enroot {facts.enroot.text.strip()}" if has_it else "not on the login node"
    mend = "" if has_it else "The container image will be imported in a job, which waits in the queue like any other."
    return Check("enroot", "Enroot", "ok" if has_it else "warning", found, "enroot on the login node", mend)


def _disk(facts: Facts, profile: ClusterProfile) -> Iterator[Check]:
    lines = facts.disk.text.splitlines()
    needed = f"{profile.install_dir}, writable"
    if len(lines) < 2:
        mend = "Check the path; the file system may hang."
        yield Check("install-dir", "Install directory", "failed", _said(facts.disk), needed, mend)
        return
    directory, access = lines[:2]
    if access != "writable":
        mend = "Choose a directory that you may write to, on a file system that all nodes share."
        yield Check("install-dir", "Install directory", "failed", f"{directory} is not writable", needed, mend)
    else:
        exists = directory.rstrip("/") == profile.install_dir.rstrip("/")
        found = "writable" if exists else f"to be made in {directory}"
        yield Check("install-dir", "Install directory", "ok", found, needed, "")
    yield _space(lines[-1])


def _space(df_line: str) -> Check:
    """Free space by the last line of `df -Pk`. Quotas do not show there."""
    needed = f"{_SMALLEST_IMAGE_GB} to {_BIGGEST_IMAGE_GB} GB for a container image"
    cells = re.fullmatch(r".*?\s\d+\s+\d+\s+(\d+)\s+\S+\s+/.*", df_line)
    if cells is None:
        return Check("disk", "Free space", "warning", "unknown", needed, "`df` gave no number: look for yourself.")
    free_gb = int(cells[1]) * 1024 / 1e9
    found = f"{free_gb:,.0f} GB"
    if free_gb < _SMALLEST_IMAGE_GB:
        return Check("disk", "Free space", "failed", found, needed, "Free some space, or choose another directory.")
    if free_gb < _BIGGEST_IMAGE_GB:
        return Check("disk", "Free space", "warning", found, needed, "It may not be enough: watch the import.")
    return Check("disk", "Free space", "ok", found, needed, "")


def _cleaned(check: Check) -> Check:
    found = clean_line(check.found).strip() or "no answer"
    return replace(check, found=found, needed=clean_line(check.needed), mend=clean_line(check.mend))


def _said(answer: Answer) -> str:
    """The first line of what a command said."""
    return answer.text.strip().partition("\n")[0]
