"""`refusal`: what sbatch's words mean when Slurm did not take a job, and what to do about it.

The words are those of Slurm 20.11 to 26.05 (`slurm_errno.c`, `slurm_opt.c`, `job_state_reason.c`), and a few of sites.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from llmb_tui.cluster.slurm.partition import Partition, parse_time
from llmb_tui.errors import Trouble
from llmb_tui.launch.published.launch_failure import SBATCH, launch_failure, sbatch_said
from llmb_tui.launch.published.spec import PublishedSpec
from llmb_tui.launch.run import Run

NEVER_SENT = "It never reached Slurm: the connection broke, and the submission was withdrawn."
NEVER_TAKEN = "Slurm did not take it: {} ended without an answer, and Slurm knows no job of its name."

# sbatch lost the controller while it was talking to it: the job may have been accepted nevertheless. A failure to
# connect is not among them.
_LOST = re.compile(
    r"timed out|timeout|zero (?:bytes|length)|message length|entire message|header lengths|connection reset|"
    r"broken pipe|transport endpoint|unexpected message|message (?:send|receive) failure|"
    r"\((?:send|receive|shutdown) failure\)|"
    r"communication (?:connection|shutdown) failure|controller not responding|delayed socket error|would block|"
    r"connection (?:rejected|forced)|shutting down|incompatible versions|resource temporarily unavailable|"
    r"operation now in progress|interrupted system call|authentication (?:error|credential)",
    re.IGNORECASE,
)
# sbatch did not even begin the conversation.
_OPTION = (
    r"(?:unrecognized|ambiguous|invalid) option|Invalid directive|option '[^']*' (?:requires|doesn't allow) an argument"
)
_SIGNALS = range(128, 193)  # of an option that it does not know sbatch says 255
_VERDICT = re.compile(r"Batch job submission failed: (.*)")


@dataclass(frozen=True, slots=True)
class _Meaning:
    pattern: str
    what: str
    """After `Slurm refused the job: `; names in braces are those of `_names`."""
    fix: str
    exit_code: int = 1


# First match wins.
_MEANINGS = (
    _Meaning(
        _OPTION,
        "sbatch on this cluster does not know {option}.",
        "Take it out of the cluster's profile: it belongs to a later Slurm, or to a plugin that is not there.",
    ),
    _Meaning(
        r"\w*(?:Assoc|QOS)\w*Wall\w*|AssociationTimeLimit|QOSTimeLimit",
        "account `{account}` or its QOS gives less time than the {time} that the run asks for.",
        "Lower the time limit, or choose another QOS.",
    ),
    _Meaning(
        r"(?:Assoc|QOS)\w*(?:Submit|Jobs)\w*|MaxSubmitJobsPerAccount",
        "account `{account}` or its QOS allows no further job of yours.",
        "Submit again when one of your jobs has ended, or choose another QOS.",
    ),
    _Meaning(
        r"(?:Assoc|QOS)\w*Minutes\w*",
        "account `{account}` or its QOS has not that much time left.",
        "Choose a smaller scale, fewer steps or another account: `sshare` shows what is left.",
    ),
    _Meaning(
        r"(?:Assoc|QOS)(?:Grp|Max|Min)\w+",
        "account `{account}` or its QOS does not allow {nodes} with {gpus} each.",
        "Choose a smaller scale or another QOS: `sacctmgr show qos` lists their limits.",
    ),
    _Meaning(
        r"accounting/QOS policy",
        "a limit of account `{account}` or its QOS is in the way.",
        "Choose a smaller scale, a lower time limit or another account.",
    ),
    _Meaning(
        r"qos specification|qos usage threshold|invalid qos|QOSNotAllowed",
        "account `{account}` may not use {qos} in partition `{partition}`.",
        "Change the QOS in the cluster's profile: `sacctmgr show assoc user=$USER format=account,qos` lists yours.",
    ),
    _Meaning(
        r"segment",
        "it cannot have its nodes in segments of {segment}.",
        "Change the segment in the cluster's profile: the run has {nodes}, and they are divided by it.",
    ),
    _Meaning(
        r"gpu specification|generic resource|\bgres\b|trackable resource|RestrictedCoresPerGPU",
        "it does not take {gpu_request}.",
        "Change how the cluster's profile requests GPUs: gres, gpus-per-node or none. Sites accept different ones.",
    ),
    _Meaning(
        r"reservation",
        "it cannot use {reservation} now.",
        "Change the reservation in the cluster's profile: `scontrol show reservation` lists them and who may use them.",
    ),
    _Meaning(
        r"feature",
        "no node of partition `{partition}` has the features {constraint}.",
        "Change the constraint in the cluster's profile: `sinfo -o '%P %f'` lists what nodes have.",
    ),
    _Meaning(
        r"account",
        "account `{account}` is not one of yours, or may not use partition `{partition}`.",
        "Correct the account in the cluster's profile: `sacctmgr show assoc user=$USER` lists yours.",
    ),
    _Meaning(
        r"not available \(inactive or drain\)|partition in down state",
        "partition `{partition}` takes no jobs at the moment.",
        "Choose another partition: `sinfo` lists them.{partitions}",
        2,
    ),
    _Meaning(
        r"group not permitted|access/permission denied",
        "you may not use partition `{partition}`.",
        "Choose another partition: `sinfo` lists them.{partitions}",
    ),
    _Meaning(
        r"not in this partition|invalid node name|invalid node list|required node not available",
        "partition `{partition}` cannot give the nodes that the cluster's profile names or leaves.",
        "Correct the nodes in the cluster's profile: `sinfo -N` lists those of each partition.",
    ),
    _Meaning(
        r"invalid partition|no partition specified",
        "there is no partition `{partition}`.",
        "Choose another partition: `sinfo` lists them.{partitions}",
    ),
    _Meaning(
        r"time ?limit|time limit specification|--time specification|time-min",
        "partition `{partition}` {most_time}, the run asks for {time}.",
        "Lower the time limit{needed}{longer}.",
    ),
    _Meaning(
        r"node count|more processors|PartitionNodeLimit|number of nodes",
        "partition `{partition}` does not give {nodes} to one job{has}.",
        "Choose a smaller scale or another partition: `scontrol show partition {partition}` shows its limits.",
    ),
    _Meaning(
        r"memory specification",
        "no node of partition `{partition}` has {memory}.",
        "Lower the memory in the cluster's profile: 0 is all that a node has.",
    ),
    _Meaning(
        r"configuration is not available|configuration not available|can ?not be satisfied|topology",
        "partition `{partition}` cannot give {nodes} with {gpus} each{has}.",
        "Choose a smaller scale or another partition, or change how the profile requests GPUs.",
    ),
    _Meaning(
        r"too long",
        "the paths of the run are too long for it.",
        "Choose an install directory with a shorter path.",
    ),
    _Meaning(
        r"MaxJobCount|job queue full|unable to create job record",
        "its queue is full.",
        "Submit again later; the cluster's administrators can raise MaxJobCount.",
        2,
    ),
    _Meaning(
        r"submissions? disabled|presently disabled|temporarily disabled|rate limit|standby mode",
        "it takes no jobs at the moment.",
        "Wait until its administrators let it, and submit again.",
        2,
    ),
)

_UNASKED = (
    _Meaning(
        r"contact slurm controller|connection refused|no route to host",
        "The job was not submitted: Slurm's controller cannot be reached from the login node.",
        "Wait until the controller answers (`scontrol ping`), and submit again.",
        2,
    ),
    _Meaning(
        r"sbatch: (?:command )?not found",
        "The job was not submitted: there is no `sbatch` on the login node.",
        "Make it known to shells that are not interactive (PATH, or `module load slurm`, in ~/.bashrc).",
        2,
    ),
)


def may_have_been_accepted(exit_code: int, words: str) -> bool:
    """True when sbatch ended in a way that leaves open whether Slurm has the job."""
    if exit_code == 0:
        return True
    verdicts = _VERDICT.findall(words)
    if verdicts:
        return _LOST.search(verdicts[-1]) is not None
    return not re.search(_OPTION, words) and (exit_code in _SIGNALS or _LOST.search(words) is not None)


def may_have_been_submitted(exit_code: int, words: str) -> bool:
    """The same of a launch script, from its whole output: True unless sbatch was not called, or was refused."""
    said = sbatch_said(words)
    if exit_code == 0 or exit_code in _SIGNALS or said == ():
        return True
    return said is not None and may_have_been_accepted(exit_code, "\n".join(said))


def reason(exit_code: int, words: str) -> str:
    """Slurm's words without the program's name in front of each line; the exit code where it said nothing."""
    lines = [line.removeprefix("sbatch: ").removeprefix("error: ").strip() for line in words.splitlines()]
    return " ".join(line for line in lines if line) or f"sbatch ended with exit code {exit_code} and said nothing."


def refusal(run: Run, partitions: Callable[[], Sequence[Partition]] = tuple) -> Trouble:
    """The error for a person, from the `reason` that a refused run remembers.

    `partitions` looks up the cluster's, so that limits and alternatives can be named; it is called where Slurm answers.
    """
    if isinstance(run.spec, PublishedSpec) and not run.note.startswith(SBATCH):
        return launch_failure(run.note)
    words = run.note.removeprefix(SBATCH)
    said = f"sbatch said: {words}"
    for meaning in _UNASKED:
        if re.search(meaning.pattern, words, re.IGNORECASE):
            return Trouble(meaning.what, said, meaning.fix, meaning.exit_code)
    names = _names(run, partitions())
    for meaning in _MEANINGS:
        if re.search(meaning.pattern, words, re.IGNORECASE):
            what = "Slurm refused the job: " + meaning.what.format_map(names)
            return Trouble(what, said, meaning.fix.format_map(names), meaning.exit_code)
    return Trouble("Slurm refused the job.", said, "Show these words to the cluster's administrators.")


def withdrawal(run: Run) -> Trouble:
    """The error for a person, of a run that was withdrawn."""
    return Trouble("The job was not submitted.", run.note, "Submit the same selection again.")


def _names(run: Run, partitions: Sequence[Partition]) -> Mapping[str, str]:
    """What the run asked for and, where it is known, what there is."""
    spec = run.spec if isinstance(run.spec, PublishedSpec) else run.direct
    options = dict(spec.options)
    own = next((one for one in partitions if one.name == spec.partition), None)
    asked_s = parse_time(spec.time_limit)
    limit_s = own.time_limit_s if own else None
    longer = [one.name for one in partitions if asked_s and (one.time_limit_s or asked_s) >= asked_s and one != own]
    named = {name: f"{name} `{value}`" if (value := options.get(name)) else f"its {name}" for name in options}
    unknown = re.search(r"option '(--[\w-]+)", run.note)
    by_gres = {"gres": f"`--gres=gpu:{spec.tasks_per_node}`", "none": "jobs that ask for no GPUs"}
    return {
        "account": spec.account,
        "partition": spec.partition,
        "nodes": _count(spec.nodes, "node"),
        "gpus": _count(spec.tasks_per_node, "GPU"),
        "gpu_request": by_gres.get(spec.gpu_request, f"`--gpus-per-node={spec.tasks_per_node}`"),
        "time": _duration(asked_s) if asked_s else spec.time_limit,
        "most_time": f"gives at most {_duration(limit_s)}" if limit_s else "does not give that much time",
        "needed": _needed(run),
        "longer": f", or choose partition {_listed(longer)}" if longer else ", or choose another partition",
        "has": f"; it has {_count(own.nodes, 'node')}" if own else "",
        "partitions": f" There are {_listed([one.name for one in partitions])}." if partitions else "",
        "option": f"option `{unknown[1]}`" if unknown else "an option that it was given",
        "qos": f"QOS `{options['qos']}`" if options.get("qos") else "its default QOS",
        "reservation": named.get("reservation", "the reservation"),
        "constraint": f"`{options['constraint']}`" if options.get("constraint") else "that it asks for",
        "segment": options.get("segment") or "that size",
        "memory": f"{spec.memory} of memory" if spec.memory != "0" else "the memory that it asks for",
    }


def _needed(run: Run) -> str:
    """How long the steps alone should take, where that is known."""
    estimate = run.plan.estimate
    return f" (the steps take about {_duration(estimate.step_time_s * run.plan.steps)})" if estimate else ""


def _listed(names: Sequence[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _duration(seconds: float) -> str:
    """`4 hours`, `6.5 hours`, `20 minutes`: as long as it is, in one unit."""
    minutes = max(1, round(seconds / 60))
    if minutes < 100 and minutes % 60:
        return _count(minutes, "minute")
    hours = round(seconds / 3600, 1)
    if hours < 72:
        return _count(int(hours), "hour") if hours == int(hours) else f"{hours} hours"
    days = round(seconds / 86400, 1)
    return f"{days:g} days"
