"""`refusal`: explain sbatch's message about a job that Slurm did not accept, and what to do about it.

Known are the messages of Slurm 20.11 to 26.05 (`slurm_errno.c`, `slurm_opt.c`, `job_state_reason.c`) and of some sites.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from llmb_tui.cluster.slurm.params import arguments_of, gpu_request_options
from llmb_tui.cluster.slurm.partition import Partition, parse_time
from llmb_tui.cluster.validation import is_all_memory
from llmb_tui.diagnosis.rules import rules
from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import duration
from llmb_tui.language.text import plural, quotation
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import SlurmSpec

PartitionLookup = Callable[[], Sequence[Partition]]
"""Returns the partitions of the cluster."""
NOT_SUBMITTED = "The job was not submitted: "
SBATCH = "sbatch: "
"""Prefix of a launch's reason that quotes sbatch."""

NEXT_STEPS = "`llmb-tui submit --resume {0}` submits it, `llmb-tui cancel {0}` withdraws it."
"""Choices for a run of which nothing was sent; the run id is inserted."""
NEVER_SENT = "It never reached Slurm: the connection broke, and the submission was withdrawn."
NEVER_TAKEN = "Slurm did not accept it: {} ended without an answer, and Slurm knows no job of this name."

# sbatch lost the controller during the conversation: the job may have been accepted nevertheless. A failure to connect
# is not in this list.
_LOST = re.compile(
    r"timed out|timeout|zero (?:bytes|length)|message length|entire message|header lengths|connection reset|"
    r"broken pipe|transport endpoint|unexpected message|message (?:send|receive) failure|"
    r"\((?:send|receive|shutdown) failure\)|"
    r"communication (?:connection|shutdown) failure|controller not responding|delayed socket error|would block|"
    r"connection (?:rejected|forced)|shutting down|incompatible versions|resource temporarily unavailable|"
    r"operation now in progress|interrupted system call|authentication (?:error|credential)",
    re.IGNORECASE,
)
# sbatch failed before the conversation began.
_OPTION = (
    r"(?:unrecognized|ambiguous|invalid) option|Invalid directive|option '[^']*' (?:requires|doesn't allow) an argument"
)
SIGNALS = range(128, 193)
"""Exit codes after a signal; for an unknown option sbatch exits with 255."""
_VERDICT = re.compile(r"Batch job submission failed: (.*)")


def may_have_been_accepted(exit_code: int, words: str) -> bool:
    """True if it is open whether Slurm accepted the job, by the way in which sbatch ended."""
    if exit_code == 0:
        return True
    verdicts = _VERDICT.findall(words)
    if verdicts:
        return _LOST.search(verdicts[-1]) is not None
    return not re.search(_OPTION, words) and (exit_code in SIGNALS or _LOST.search(words) is not None)


def reason(exit_code: int, words: str) -> str:
    """Slurm's message without the program name in front of each line; the exit code if there is no message."""
    lines = [line.removeprefix("sbatch: ").removeprefix("error: ").strip() for line in words.splitlines()]
    return " ".join(line for line in lines if line) or f"sbatch ended with exit code {exit_code} and no message."


def refusal(run: Run, spec: SlurmSpec, partitions: PartitionLookup = tuple) -> LlmbError:
    """The error for the user, from the `reason` in the record of a rejected run.

    `partitions` looks up the cluster's partitions, to name limits and alternatives; it is called only if Slurm answers.
    """
    words = run.note.removeprefix(SBATCH)
    quote = f"sbatch said: {quotation(words)}"
    match = rules("submit").match(words)
    if match is None:
        return LlmbError("Slurm rejected the job.", quote, "Show this message to the cluster's administrators.")
    rule = match.rule
    diagnosis = match.diagnosis(facts_of(run, spec, () if rule.unreachable else partitions()))
    what = NOT_SUBMITTED if rule.unreachable else "Slurm rejected the job: "
    return LlmbError(f"{what}{diagnosis.reason}", quote, diagnosis.fix, rule.exit_code)


def withdrawal(run: Run) -> LlmbError:
    """The error for the user, about a run that was withdrawn."""
    return LlmbError("The job was not submitted.", quotation(run.note), "Submit the same selection again.")


def facts_of(run: Run, spec: SlurmSpec, partitions: Sequence[Partition]) -> Mapping[str, str]:
    """Values for the rules' placeholders: the run's request and, if known, the cluster's limits."""
    options = dict(spec.options)
    partition = next((known for known in partitions if known.name == spec.partition), None)
    asked_s = parse_time(spec.time_limit)
    limit_s = partition.time_limit_s if partition else None
    longer = [
        other.name
        for other in partitions
        if asked_s and (other.time_limit_s or asked_s) >= asked_s and other != partition
    ]
    in_words = {name: f"{name} `{value}`" if (value := options.get(name)) else f"its {name}" for name in options}
    asked_gpus = arguments_of(gpu_request_options(spec.gpu_request, spec.tasks_per_node))
    return {
        "account": spec.account,
        "partition": spec.partition or "(not named)",
        "nodes": plural(spec.nodes, "node"),
        "gpus": plural(spec.tasks_per_node, "GPU"),
        "gpu_request": f"`{asked_gpus[0]}`" if asked_gpus else "jobs that ask for no GPUs",
        "time": duration(asked_s) if asked_s else spec.time_limit,
        "most_time": f"gives at most {duration(limit_s)}" if limit_s else "does not give that much time",
        "needed": _needed(run),
        "longer": f", or choose partition {_comma_list(longer)}" if longer else ", or choose another partition",
        "has": f"; it has {plural(partition.nodes, 'node')}" if partition else "",
        "partitions": f" There are {_comma_list([known.name for known in partitions])}." if partitions else "",
        "qos": f"QOS `{options['qos']}`" if options.get("qos") else "its default QOS",
        "reservation": in_words.get("reservation", "the reservation"),
        "constraint": f"`{options['constraint']}`" if options.get("constraint") else "that it asks for",
        "segment": options.get("segment") or "that size",
        "memory": f"{spec.memory} of memory" if not is_all_memory(spec.memory) else "the memory that it asks for",
    }


def _needed(run: Run) -> str:
    """Expected duration of the steps alone, if known."""
    estimate = run.plan.estimate
    return f" (the steps take about {duration(estimate.step_time_s * run.plan.steps)})" if estimate else ""


def _comma_list(names: Sequence[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
