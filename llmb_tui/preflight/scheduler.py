"""Checks of the scheduler: its version, its controller, the account, the job, containers and PMIx. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from llmb_tui.cluster.batch import TIMED_OUT, Answer
from llmb_tui.cluster.quoting import shell_join
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.slurm.accounting import (
    ASSOCIATIONS,
    Association,
    accounts_of,
    parse_associations,
    qos_of,
    sacct,
)
from llmb_tui.cluster.slurm.errors import accounting_is_closed, explain, failure_kind
from llmb_tui.cluster.slurm.inventory import CONFIG, IF_IT_ANSWERS, parse_config
from llmb_tui.cluster.slurm.params import arguments_of, gpu_options, partition_options, sbatch_options
from llmb_tui.cluster.slurm.partition import SINFO_FORMAT, sinfo
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.plan.plan import Plan
from llmb_tui.preflight.check_group import ADMINISTRATORS, Answers, CommandChecks, failed, first_line, ok, warning
from llmb_tui.preflight.needs import Needs
from llmb_tui.preflight.partition import partition_checks, possible_partitions
from llmb_tui.preflight.report import Check
from llmb_tui.preflight.requests import QOS, qos_check, qos_of_job, request_checks

_OLDEST_SLURM = (20, 11)
_NO_COMMAND = 127
"""Exit code of a shell that does not find the command."""
PYXIS_OPTIONS = (
    *("--container-image", "--container-mounts", "--container-workdir", "--container-env", "--container-writable"),
    "--no-container-mount-home",
)
"""Options of Pyxis that the batch scripts use."""
RECIPES_MPI = "pmix"
"""MPI type of all recipes."""
_OTHER_MPI = (
    "Or set the cluster's MPI type to {} and use our script: ranks of PyTorch then start, but code that calls MPI may "
    "fail."
)

_PLUGSTACK = """
conf=$(scontrol show config | sed -n 's/^PlugStackConfig *= *//p')
case $conf in /*) ;; *) conf=${SLURM_CONF:-/etc/slurm/slurm.conf}; conf=${conf%/*}/plugstack.conf ;; esac
grep -hs '^[^#]*pyxis' "$conf" "$conf".d/*
"""

# Slurm refuses a plugin that was built for another version of Slurm.
_OTHER_SLURM = re.compile(r"(?m)^[^\n]*Incompatible (?:Slurm )?plugin (?:\S+ )?version[^\n]*")

# Messages of sbatch for a job that it will never accept. Other messages may be about the present moment only.
_NEVER = re.compile(
    r"invalid|specification|not available|limit|denied|violates|unrecognized option|not found|too many|no partition",
    re.IGNORECASE,
)


def slurm_group(needs: Needs) -> CommandChecks:
    """Make the checks of Slurm. A hanging controller costs one wait of 10 seconds.

    Their deadline is the sum of all time limits, because a slow answer is still an answer.
    """
    profile = needs.profile
    partitions = [shell_join(["scontrol", "-a", "show", "partition", name]) for name in profile.partitions]
    nodes, all_nodes = sinfo("-o", SINFO_FORMAT), sinfo("-a", "-o", SINFO_FORMAT)
    to = ("--test-only", f"--account={profile.account}", *arguments_of(partition_options(profile.partition)))
    mpi = shell_join(["srun", f"--mpi={mpi_type(profile)}", *to, "--nodes=1", "--time=1", "true"])
    commands = {
        "version": "sinfo --version",
        "ping": "limited 11 scontrol ping",
        "config": IF_IT_ANSWERS + CONFIG,
        "partition": IF_IT_ANSWERS + (" && ".join(partitions) or "scontrol show partition"),
        # Hidden partitions too if the profile names partitions, unless the user has to choose another one.
        "nodes": f'{IF_IT_ANSWERS}if [ "$rc_partition" -eq 0 ]; then {all_nodes}; else {nodes}; fi'
        if partitions
        else IF_IT_ANSWERS + nodes,
        "architectures": f"{IF_IT_ANSWERS}{{ {remote_text('architectures.sh')} }}",
        "machine": "uname -m",
        "who": "id -un; id -Gn",
        "associations": ASSOCIATIONS,
        "accounting": f'[ "$rc_associations" -ne {TIMED_OUT} ] && {sacct("-S", "now", limit_s=8)}',
        "qos": QOS,
        # On some sites clients read their configuration from the controller, and hang with it.
        "srun": f"{IF_IT_ANSWERS}limited 8 srun --help",
        "plugstack": f"{IF_IT_ANSWERS}{{ {_PLUGSTACK} }}",
        "mpi": f"{IF_IT_ANSWERS}limited 8 srun --mpi=list",
        # The list may name plugins that cannot be loaded; a test start loads them.
        "pmix": f"{IF_IT_ANSWERS}limited 8 {mpi}",
    }
    if profile.reservation is not None:
        commands["reservations"] = IF_IT_ANSWERS + "scontrol -o show reservation"
    if profile.exclude is not None:
        excluded = shell_join(["scontrol", "-a", "-o", "show", "node", profile.exclude])
        commands["exclude"] = f"{IF_IT_ANSWERS}{excluded} 2>&1 | grep -v '^NodeName='"
    if needs.plan is not None:
        trial = "limited 10 " + shell_join(["sbatch", *to, *_trial_options(profile, needs.plan)])
        if not needs.sbatch_variables:
            trial = f"(\n{remote_text('sbatch.sh')}no_sbatch_variables\n{trial}\n)"
        commands["trial"] = IF_IT_ANSWERS + trial
    return CommandChecks(commands, lambda answers: slurm_checks(answers, needs))


def slurm_checks(answers: Answers, needs: Needs) -> Iterator[Check]:
    """Make all possible checks. Without Slurm, or if its controller is silent, the others are left out."""
    scheduler = _scheduler(answers)
    yield scheduler
    if scheduler.status == "failed":
        return
    yield _controller(answers)
    config = parse_config(answers["config"].text)
    associations = parse_associations(answers["associations"].text, config.get("ClusterName", ""))
    needs = replace(needs, profile=_with_slurm_spelling(needs.profile, associations))
    yield from _accounting(answers, needs.profile)
    if _has_no_accounting(answers["associations"]) or not accounting_is_closed(answers["associations"]):
        yield _account(answers, needs.profile, associations, config)
    if answers["ping"].exit_code == 0:
        settings = possible_partitions(answers, needs.profile, config)
        qos = qos_of_job(answers, needs.profile, associations)
        checks = [
            *partition_checks(answers, needs, settings, qos.flags if qos is not None else frozenset()),
            *qos_check(answers, needs, associations, settings, config),
            *request_checks(answers, needs, settings),
        ]
        yield from checks
        if needs.known and all(check.status != "failed" for check in checks):
            yield from _trial_check(answers, all_is_well=all(check.status == "ok" for check in checks))
        yield _pyxis(answers)
        yield _mpi(answers, mpi_type(needs.profile))


def _with_slurm_spelling(profile: SlurmProfile, associations: list[Association]) -> SlurmProfile:
    """Return the profile with accounts and QOS in lower case, as Slurm stores them; it accepts any case."""

    def spelled(name: str, known: tuple[str, ...]) -> str:
        return name.lower() if name not in known and name.lower() in known else name

    qos = spelled(profile.qos, qos_of(associations)) if profile.qos is not None else None
    return replace(profile, account=spelled(profile.account, accounts_of(associations)), qos=qos)


def _scheduler(answers: Answers) -> Check:
    version = answers["version"]
    match = re.search(r"(?<!\d)(\d{1,4})\.(\d{1,4})(?:\.\d+)*", version.text)
    needed = "Slurm {}.{:02} or newer".format(*_OLDEST_SLURM)
    if version.exit_code != 0 or match is None:
        found, fix = (
            first_line(version),
            f"This is no version of Slurm: another program is named `sinfo`. {ADMINISTRATORS}",
        )
        if version.exit_code == -1:
            fix = f"The login node did not answer in time: Slurm or a file system there may hang. {ADMINISTRATORS}"
        elif version.exit_code != 0:
            found, fix = explain("sinfo --version", version).words, explain("sinfo --version", version).sentences
        return failed("scheduler", "Scheduler", found, needed, fix)
    if (int(match[1]), int(match[2])) < _OLDEST_SLURM:
        return warning("scheduler", "Scheduler", f"Slurm {match[0]}", needed, "It may still work.")
    return ok("scheduler", "Scheduler", f"Slurm {match[0]}", needed)


def _controller(answers: Answers) -> Check:
    ping = answers["ping"]
    if ping.exit_code == 0:
        return ok("controller", "Controller", "answers", "answers")
    failure = explain("scontrol ping", ping)
    return failed("controller", "Controller", failure.words, "answers", failure.sentences)


def _accounting(answers: Answers, profile: SlurmProfile) -> Iterator[Check]:
    """Make a check if the user cannot query the cluster's accounting, otherwise none."""
    closed = {
        command: answers[name]
        for command, name in (("sacct", "accounting"), ("sacctmgr", "associations"))
        if accounting_is_closed(answers[name]) and not _has_no_accounting(answers[name])
    }
    fixes = {
        "sacct": "The program works without it: runs end by the queue and their logs, without Slurm's exit code.",
        "sacctmgr": f"Account {profile.account} cannot be checked; if it is wrong, Slurm refuses the job.",
    }
    if closed:
        words = dict.fromkeys(explain(command, answer).words for command, answer in closed.items())
        fix = " ".join(fixes[command] for command in closed)
        yield warning("accounting", "Accounting", "; ".join(words), f"an answer of {' and '.join(closed)}", fix)


def _has_no_accounting(answer: Answer) -> bool:
    """Whether Slurm's command exists, and reports that the cluster has no accounting."""
    return failure_kind(answer) == "absent" and answer.exit_code != _NO_COMMAND


def _account(answers: Answers, profile: SlurmProfile, associations: list[Association], config: dict[str, str]) -> Check:
    answer, account = answers["associations"], profile.account
    if _has_no_accounting(answer):
        return ok("account", "Account", "this cluster has no accounting", account)
    if answer.exit_code != 0 or not associations:
        found = explain("sacctmgr", answer).words if answer.exit_code else "no account is listed for this user"
        fix = "The account cannot be checked; if it is wrong, Slurm refuses the job."
        return warning("account", "Account", found, account, fix)
    accounts = accounts_of(associations)
    if account not in accounts:
        found, fix = f"yours: {', '.join(accounts)}", f"Set the cluster's account to one of: {', '.join(accounts)}."
        is_enforced = "associations" in config.get("AccountingStorageEnforce", "associations")
        return (failed if is_enforced else warning)("account", "Account", found, account, fix)
    only_in = {association.partition for association in associations if association.account == account}
    if profile.partition and "" not in only_in and not only_in & set(profile.partitions):
        found = f"{account}, only in partition {', '.join(sorted(only_in))}"
        fix = "Choose one of these partitions, or another account."
        return failed("account", "Account", found, f"{account} in {profile.partition}", fix)
    return ok("account", "Account", account, account)


def _trial_options(profile: SlurmProfile, plan: Plan) -> list[str]:
    """Options of `sbatch --test-only`, by which the controller judges the job without queueing it."""
    options = (*gpu_options(profile, plan.gpus_per_node), *sbatch_options(profile))
    return [
        *(f"--nodes={plan.nodes}", f"--ntasks-per-node={plan.gpus_per_node}", f"--time={plan.time_limit}"),
        *(f"--mem={profile.memory}", "--exclusive", *arguments_of(options), "--output=/dev/null", "--wrap=true"),
    ]


def _trial_check(answers: Answers, *, all_is_well: bool) -> Iterator[Check]:
    """Check Slurm's answer to a test submission of the job; no check if it did not answer in time.

    Slurm refuses a job that must wait for broken nodes with the same message as an impossible one: if other checks have
    already warned, this one does not block.
    """
    trial, needed = answers["trial"], "Slurm accepts the job"
    start = re.search(r"to start at (\S+)", trial.text)
    if trial.exit_code == 0 and start is not None:
        yield ok("trial", "Test submission", f"could start at {start[1].replace('T', ' ')}", needed)
    elif trial.exit_code not in (0, TIMED_OUT, -1):
        words = re.sub(r"(?m)^(?:sbatch: |error: |allocation failure: )+", "", trial.text).split("\n")
        found = " ".join(filter(None, map(str.strip, words))) or f"exit code {trial.exit_code}"
        fix = "Slurm rejected a test job with this message: change what it names, in the profile or the plan."
        if failure_kind(trial) not in (None, "refused") and not _OTHER_SLURM.search(found):
            failure = explain("sbatch --test-only", trial)
            yield warning("trial", "Test submission", failure.words, needed, failure.sentences)
            return
        if _OTHER_SLURM.search(found):
            fix = _other_slurm(answers)
        gates = _NEVER.search(found) and (all_is_well or "not available" not in found)
        yield (failed if gates else warning)("trial", "Test submission", found, needed, fix)


def _pyxis(answers: Answers) -> Check:
    srun = answers["srun"]
    missing = [option for option in PYXIS_OPTIONS if option not in srun.text] if srun.exit_code == 0 else PYXIS_OPTIONS
    if srun.exit_code != 0 and (words := _first_error(srun)):
        fix = f"`srun` fails, and the recipes run in containers that it starts. {ADMINISTRATORS}"
        if _OTHER_SLURM.search(words):
            fix = _other_slurm(answers)
        return failed("pyxis", "Pyxis", words, "srun --container-image", fix)
    if "--container-image" in missing:
        fix = f"The recipes run in containers, which need the Slurm plugin Pyxis. {ADMINISTRATORS}"
        return failed("pyxis", "Pyxis", "srun does not have --container-image", "srun --container-image", fix)
    if missing:
        fix = f"This Pyxis is too old: the batch scripts need these options. {ADMINISTRATORS}"
        return failed("pyxis", "Pyxis", f"srun does not have {', '.join(missing)}", "srun --container-…", fix)
    settings = re.findall(r"(?<!\S)\w+=\S+", answers["plugstack"].text)
    found = "srun has --container-image" + (f"; {', '.join(settings)}" if settings else "")
    return ok("pyxis", "Pyxis", found, "srun --container-image")


def mpi_type(profile: SlurmProfile) -> str:
    """Type of `srun --mpi` with which the ranks start."""
    return profile.mpi or RECIPES_MPI


def _mpi(answers: Answers, wanted: str) -> Check:
    title, needed = "PMIx" if wanted == RECIPES_MPI else "MPI", f"srun --mpi={wanted}"
    plugins = dict.fromkeys(re.findall(r"\b(?:pmix(?:_v\d+)?|pmi2|none|cray_shasta|openmpi)\b", answers["mpi"].text))
    versions = [name for name in plugins if name == wanted or name.startswith(f"{wanted}_v")]
    others = [name for name in ("pmi2", "none") if name in plugins and name != wanted]
    another = f"{ADMINISTRATORS} {_OTHER_MPI.format(others[0])}" if others else ADMINISTRATORS
    if not versions:
        found = f"only {', '.join(plugins)}" if plugins else _first_error(answers["mpi"])
        fix = f"The recipes start their ranks with PMIx, but this Slurm has no PMIx plugin. {another}"
        if wanted != RECIPES_MPI:
            fix = "Set the cluster's MPI type to one of these, or remove it: the recipes use pmix."
        if not plugins:
            fix = _other_slurm(answers) if _OTHER_SLURM.search(found) else f"`srun --mpi=list` fails. {ADMINISTRATORS}"
        return failed("pmix", title, found, needed, fix)
    if other := _OTHER_SLURM.search(answers["pmix"].text):
        return failed("pmix", title, other[0].strip(), needed, _other_slurm(answers))
    fault = re.search(
        r"(?m)^[^\n]*(?:can ?not load PMIx|Invalid MPI type|Unable to load any plugin)[^\n]*", answers["pmix"].text
    )
    if fault is not None:
        fix = f"Slurm's plugin for {wanted} cannot be loaded."
        if "load PMIx" in fault[0]:
            fix = "Slurm's PMIx plugin does not find its library, such as libpmix2."
        return failed("pmix", title, fault[0].strip(), needed, f"{fix} {another}")
    return ok("pmix", title, ", ".join(versions), needed)


def _first_error(answer: Answer) -> str:
    """Message about a plugin that was built for another Slurm, or first line of an answer, without `srun: error: `."""
    other = _OTHER_SLURM.search(answer.text)
    return re.sub(r"^(?:srun: )?(?:error: |fatal: )?", "", other[0].strip() if other else first_line(answer))


def _other_slurm(answers: Answers) -> str:
    """Remedy for a plugin that was built for another version of Slurm."""
    version = re.search(r"(?<!\d)\d{1,4}\.\d[\w.]{0,20}", answers["version"].text)
    here = f"Slurm {version[0]}" if version else "the Slurm that is installed"
    return f"The plugin was built for another version of Slurm and has to be built for {here}. {ADMINISTRATORS}"
