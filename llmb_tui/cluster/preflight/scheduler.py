"""Checks of the scheduler: is it there, does it answer, may this user run this job on it? Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llmb_tui.cluster.offers import CONFIG, parse_config
from llmb_tui.cluster.preflight.containers import plugin_checks, slurm_plugin_commands
from llmb_tui.cluster.preflight.examination import (
    ADMINISTRATORS,
    TIMED_OUT,
    Answers,
    Examination,
    failed,
    ok,
    said,
    warning,
)
from llmb_tui.cluster.preflight.partition import parse_settings, partition_checks
from llmb_tui.cluster.preflight.qos import QOS, qos_check
from llmb_tui.cluster.preflight.report import Check
from llmb_tui.cluster.preflight.requests import request_checks
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.quoting import shell_join
from llmb_tui.cluster.slurm.accounting import accounting_is_off
from llmb_tui.cluster.slurm.associations import ASSOCIATIONS, Association, accounts_of, parse_associations
from llmb_tui.cluster.slurm.params import sbatch_options
from llmb_tui.cluster.slurm.partition import SINFO_FORMAT
from llmb_tui.plan.plan import Plan

_OLDEST_SLURM = (20, 11)

# Architectures of the nodes by partition, counted there: a large cluster's nodes are megabytes of text.
_NODE_ARCHITECTURES = """scontrol -o show nodes | awk '
{ arch = ""; partitions = ""
  for (i = 1; i <= NF; i++) {
    if ($i ~ /^Arch=/) arch = substr($i, 6)
    if ($i ~ /^Partitions=/) partitions = substr($i, 12)
  }
  if (arch != "") count[arch "|" partitions]++
}
END { for (key in count) print count[key] "|" key }'
"""
# What sbatch says of a job that it will never take. Other words may be about this minute only.
_NEVER = re.compile(
    r"invalid|specification|not available|limit|denied|violates|unrecognized option|not found|too many", re.IGNORECASE
)


def slurm_examination(profile: ClusterProfile, plan: Plan | None) -> Examination:
    """Everything that Slurm knows. A controller that hangs costs one wait of 10 seconds."""
    # Each client of a controller that hangs takes 10 s to say so: one is enough.
    if_it_answers = '[ "$rc_ping" -eq 0 ] && '
    partitions = [shell_join(["scontrol", "show", "partition", name]) for name in profile.partition.split(",")]
    commands = {
        "version": "sinfo --version",
        "ping": "limited 11 scontrol ping",
        "config": if_it_answers + CONFIG,
        "partition": if_it_answers + " && ".join(partitions),
        "nodes": if_it_answers + shell_join(["sinfo", "-h", "-o", SINFO_FORMAT]),
        "architectures": if_it_answers + _NODE_ARCHITECTURES,
        "machine": "uname -m",
        "who": "id -un; id -Gn",
        "associations": ASSOCIATIONS,
        "qos": QOS,
    }
    if profile.reservation is not None:
        commands["reservations"] = if_it_answers + "scontrol -o show reservation"
    if profile.exclude is not None:
        excluded = shell_join(["scontrol", "-o", "show", "node", profile.exclude])
        commands["exclude"] = f"{if_it_answers}{excluded} 2>&1 | grep -v '^NodeName='"
    commands |= slurm_plugin_commands(profile, if_it_answers)
    if plan is not None:
        commands["trial"] = if_it_answers + "limited 10 " + shell_join(_trial(profile, plan))
    return Examination(commands, lambda answers: slurm_checks(answers, profile, plan), deadline_s=25)


def slurm_checks(answers: Answers, profile: ClusterProfile, plan: Plan | None) -> Iterator[Check]:
    """All checks that the facts allow. Without Slurm, or while its controller is silent, the rest is left out."""
    scheduler = _scheduler(answers)
    yield scheduler
    if scheduler.status == "failed":
        return
    yield _controller(answers)
    config = parse_config(answers["config"].text)
    associations = parse_associations(answers["associations"].text, config.get("ClusterName", ""))
    yield _account(answers, profile, associations, config)
    if answers["ping"].exit_code == 0:
        settings = parse_settings(answers["partition"].text)
        checks = [
            *partition_checks(answers, profile, plan),
            *qos_check(answers, profile, plan, associations, settings),
            *request_checks(answers, profile, plan),
        ]
        yield from checks
        if plan is not None and all(check.status != "failed" for check in checks):
            yield from _trial_check(answers, all_is_well=all(check.status == "ok" for check in checks))
        yield from plugin_checks(answers)


def _scheduler(answers: Answers) -> Check:
    version = answers["version"]
    found = re.search(r"(\d+)\.(\d+)(?:\.\d+)*", version.text)
    needed = "Slurm {}.{:02} or newer".format(*_OLDEST_SLURM)
    if version.exit_code != 0 or found is None:
        mend = "Is this a login node? If so, make Slurm's commands known to non-interactive shells, in ~/.bashrc."
        if version.exit_code == -1:
            mend = f"The login node did not answer in time: Slurm or a file system there may hang. {ADMINISTRATORS}"
        return failed("scheduler", "Scheduler", said(version), needed, mend)
    if (int(found[1]), int(found[2])) < _OLDEST_SLURM:
        return warning("scheduler", "Scheduler", f"Slurm {found[0]}", needed, "It may work all the same.")
    return ok("scheduler", "Scheduler", f"Slurm {found[0]}", needed)


def _controller(answers: Answers) -> Check:
    ping = answers["ping"]
    if ping.exit_code == 0:
        return ok("controller", "Controller", "answers", "answers")
    mend = f"It is down or overloaded; running jobs go on. Try again in a minute. {ADMINISTRATORS}"
    return failed("controller", "Controller", said(ping), "answers", mend)


def _account(
    answers: Answers, profile: ClusterProfile, associations: list[Association], config: dict[str, str]
) -> Check:
    answer, account = answers["associations"], profile.account
    if accounting_is_off(answer):
        return ok("account", "Account", "this cluster keeps no accounts", account)
    if answer.exit_code != 0 or not associations:
        found = said(answer) if answer.exit_code else "none is listed for this user"
        mend = "The account cannot be checked; if it is wrong, Slurm refuses the job."
        return warning("account", "Account", found, account, mend)
    accounts = accounts_of(associations)
    if account not in accounts:
        found, mend = ", ".join(accounts), f"Set the cluster's account to one of: {', '.join(accounts)}."
        is_enforced = "associations" in config.get("AccountingStorageEnforce", "associations")
        return (failed if is_enforced else warning)("account", "Account", found, account, mend)
    only_in = {association.partition for association in associations if association.account == account}
    if "" not in only_in and not only_in & set(profile.partition.split(",")):
        found = f"{account}, only in partition {', '.join(sorted(only_in))}"
        mend = "Choose one of these partitions, or another account."
        return failed("account", "Account", found, f"{account} in {profile.partition}", mend)
    return ok("account", "Account", account, account)


def _trial(profile: ClusterProfile, plan: Plan) -> list[str]:
    """`sbatch --test-only`: the controller's own verdict on the job. It queues nothing."""
    gpus = {"gres": [f"--gres=gpu:{plan.gpus_per_node}"], "gpus-per-node": [f"--gpus-per-node={plan.gpus_per_node}"]}
    options = [f"--{name}" if value is None else f"--{name}={value}" for name, value in sbatch_options(profile)]
    return [
        *("sbatch", "--test-only", f"--account={profile.account}", f"--partition={profile.partition}"),
        *(f"--nodes={plan.nodes}", f"--ntasks-per-node={plan.gpus_per_node}", f"--time={plan.time_limit}"),
        *("--mem=0", "--exclusive", *gpus.get(profile.gpu_request, []), *options, "--output=/dev/null", "--wrap=true"),
    ]


def _trial_check(answers: Answers, *, all_is_well: bool) -> Iterator[Check]:
    """What Slurm makes of the very job; nothing where it did not say in time.

    A job that only has to wait, for nodes that are down, is refused here with the same words as an impossible one:
    where the other checks have warned already, it does not gate.
    """
    trial, needed = answers["trial"], "Slurm would take the job"
    start = re.search(r"to start at (\S+)", trial.text)
    if trial.exit_code == 0 and start is not None:
        yield ok("trial", "Trial of the job", f"could start at {start[1]}", needed)
    elif trial.exit_code not in (0, TIMED_OUT, -1):
        words = re.sub(r"(?m)^(?:sbatch: |error: |allocation failure: )+", "", trial.text).split("\n")
        found = " ".join(filter(None, map(str.strip, words))) or f"exit code {trial.exit_code}"
        mend = "These are Slurm's own words on a job like this one: change what they name, in the profile or the plan."
        gates = _NEVER.search(found) and (all_is_well or "not available" not in found)
        yield (failed if gates else warning)("trial", "Trial of the job", found, needed, mend)
