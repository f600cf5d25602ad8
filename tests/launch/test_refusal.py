"""Messages of sbatch from Slurm 20.11 to 26.05, and their explanations for the user."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.cluster.slurm.partition import Partition, parse_partitions
from llmb_tui.diagnosis.load import builtin_rules_dir, load_rules
from llmb_tui.diagnosis.rule import FACTS, Rule
from llmb_tui.errors import LlmbError
from llmb_tui.launch.refusal import (
    NEVER_SENT,
    PartitionLookup,
    facts_of,
    may_have_been_accepted,
    reason,
    refusal,
    withdrawal,
)
from llmb_tui.launch.run import Run
from tests.kit.runs import direct_spec
from tests.launch.launch_cases import MakeRun

FAILED = "sbatch: error: Batch job submission failed: "
POLICY = FAILED + "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
OPTIONS = (("qos", "short"), ("reservation", "bench"), ("constraint", "h100&ib"), ("segment", "3"))


@pytest.fixture(scope="module")
def run(make_run: MakeRun) -> Run:
    """8 nodes with 8 GPUs each for 6 hours, in partition batch."""
    run = make_run()
    return replace(run, spec=replace(direct_spec(run), time_limit="06:00:00", memory="9000G", options=OPTIONS))


def _refused(run: Run, words: str, exit_code: int = 1) -> Run:
    return replace(run, submission="refused", note=reason(exit_code, words))


def explained(run: Run, words: str, exit_code: int = 1, partitions: PartitionLookup = tuple) -> LlmbError:
    """Explanation of a message for the user."""
    return refusal(_refused(run, words, exit_code), direct_spec(run), partitions)


# Message of sbatch; words of the explanation; words of the fix; exit code (1: wrong request, 2: cluster).
CASES = [
    # account
    (
        f"{FAILED}Invalid account or account/partition combination specified",
        "account `research_llm_bench` is not one of yours, or may not use partition `batch`",
        "sacctmgr show assoc",
        1,
    ),
    # partition
    (
        f"sbatch: error: invalid partition specified: batch\n{FAILED}Invalid partition name specified",
        "there is no partition `batch`",
        "There are `batch`, `debug` or `long`",
        1,
    ),
    (f"{FAILED}No partition specified or system default partition", "names no partition", "Name a partition", 1),
    (f"{FAILED}User's group not permitted to use this partition", "may not use partition `batch`", "another", 1),
    (f"{FAILED}Access/permission denied", "may not use partition `batch`", "another", 1),
    (f"{FAILED}Required partition not available (inactive or drain)", "accepts no jobs at the moment", "another", 2),
    (f"{FAILED}Partition in DOWN state", "accepts no jobs at the moment", "another", 2),
    # QOS and limits
    (f"{FAILED}Invalid qos specification", "may not use QOS `short` in partition `batch`", "QOS in the cluster's", 1),
    (f"{FAILED}Requested account has breached requested QOS usage threshold", "QOS `short`", "QOS in the", 1),
    (
        f"sbatch: error: QOSMaxNodePerJobLimit\n{POLICY}",
        "does not allow 8 nodes with 8 GPUs each",
        "smaller scale",
        1,
    ),
    (f"sbatch: error: QOSMaxGRESPerJob\n{POLICY}", "does not allow 8 nodes", "smaller scale", 1),
    (f"sbatch: error: QOSMaxSubmitJobPerUserLimit\n{POLICY}", "no further job of yours", "one of your jobs", 1),
    (f"sbatch: error: AssocMaxSubmitJobLimit\n{POLICY}", "no further job of yours", "one of your jobs", 1),
    (f"sbatch: error: QOSMaxWallDurationPerJobLimit\n{POLICY}", "less time than the 6 h", "Lower the time", 1),
    (f"sbatch: error: AssocGrpGRESMinutes\n{POLICY}", "not have enough time left", "sshare", 1),
    (POLICY, "a limit of account `research_llm_bench` or its QOS", "smaller scale", 1),
    # time
    (
        f"{FAILED}Requested time limit is invalid (missing or exceeds some limit)",
        "partition `batch` gives at most 4 h, the run asks for 6 h",
        "or choose partition `long`",
        1,
    ),
    (f"{FAILED}Time limit specification required, but not provided", "at most 4 h", "Lower", 1),
    ("sbatch: error: Invalid --time specification", "the run asks for 6 h", "Lower", 1),
    # nodes
    (f"{FAILED}Node count specification invalid", "does not give 8 nodes to one job; it has 4 nodes", "smaller", 1),
    (f"{FAILED}More processors requested than permitted", "does not give 8 nodes", "smaller scale", 1),
    (
        f"{FAILED}Requested node configuration is not available",
        "partition `batch` cannot give 8 nodes with 8 GPUs each; it has 4 nodes",
        "requests GPUs",
        1,
    ),
    (f"{FAILED}Requested partition configuration not available now", "cannot give 8 nodes", "smaller scale", 1),
    (f"{FAILED}Requested topology configuration is not available", "cannot give 8 nodes", "smaller scale", 1),
    (
        f"sbatch: error: Memory specification can not be satisfied\n{FAILED}Requested node configuration is not "
        "available",
        "no node of partition `batch` has 9000G of memory",
        "Lower the memory in the cluster's profile",
        1,
    ),
    (f"{FAILED}Requested nodes not in this partition", "cannot give the nodes that", "sinfo -N", 1),
    (f"{FAILED}Invalid node name specified", "cannot give the nodes that", "sinfo -N", 1),
    (f"{FAILED}Required node not available (down, drained or reserved)", "cannot give the nodes", "sinfo -N", 1),
    # GPUs
    ("sbatch: error: Invalid generic resource (gres) specification", "`--gpus-per-node=8`", "requests GPUs", 1),
    (f"{FAILED}Invalid GRES specification (with and without type identification)", "gpus-per-node", "requests", 1),
    (f"{FAILED}Requested GRES option unsupported by configured SelectType plugin", "gpus-per-node", "requests", 1),
    (f"{FAILED}Invalid Trackable RESource (TRES) specification", "gpus-per-node", "requests", 1),
    (f"{FAILED}RestrictedCoresPerGPU: Not enough unique cores per GPU", "gpus-per-node", "requests", 1),
    (
        "sbatch: error: Cannot find GPU specification, you may not submit a job not requesting GPUs, partition: batch\n"
        f"{FAILED}Unspecified error",
        "gpus-per-node",
        "requests GPUs",
        1,
    ),
    # options that profiles may add
    (f"{FAILED}Requested reservation is invalid", "cannot use reservation `bench` now", "scontrol show res", 1),
    (f"{FAILED}Access denied to requested reservation", "cannot use reservation `bench` now", "scontrol", 1),
    (f"{FAILED}Requested reservation not usable now", "cannot use reservation `bench` now", "scontrol", 1),
    (f"{FAILED}Invalid feature specification", "has the features `h100&ib`", "constraint", 1),
    # canu#2350
    (
        f"sbatch: error: memory limit must be provided for shared jobs\n{FAILED}Invalid feature specification",
        "requires a job to request an amount of memory",
        "memory to an amount",
        1,
    ),
    ("sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.", "two ways", "in one way", 1),
    (f"{FAILED}No suitable topology unit found for segment", "segments of 3", "divided", 1),
    (
        "sbatch: error: --segment=3 does not fit the job size (8): node count must be evenly divisible by segment size",
        "segments of 3",
        "8 nodes",
        1,
    ),
    (
        "sbatch: unrecognized option '--segment=3'\nTry \"sbatch --help\" for more information",
        "does not know option `--segment`",
        "later Slurm",
        1,
    ),
    (
        "sbatch: unrecognized option '--container-image=x'\nTry \"sbatch --help\" for more information",
        "does not know option `--container-image`",
        "plugin",
        1,
    ),
    ("sbatch: error: Invalid directive found in batch script: mine", "does not know one of its options", "profile", 1),
    # problems of the cluster
    (f"{FAILED}Unable to create job record, try again", "its queue is full", "later", 2),
    (f"{FAILED}MaxJobCount limit reached", "its queue is full", "later", 2),
    (f"{FAILED}System submissions disabled", "accepts no jobs at the moment", "Wait", 2),
    (f"{FAILED}Rate limit exceeded, please retry later", "accepts no jobs at the moment", "Wait", 2),
    (f"{FAILED}Pathname of a file, directory or other parameter too long", "too long", "shorter", 1),
]


@pytest.mark.parametrize(("words", "what", "fix", "exit_code"), CASES)
def test_each_refusal_has_a_message(run: Run, words: str, what: str, fix: str, exit_code: int) -> None:
    there = [_partition("batch", 4, 4), _partition("debug", 2, 0.5), _partition("long", 4, None)]
    error = explained(run, words, partitions=lambda: there)
    assert error.what.startswith("Slurm rejected the job: ")
    assert what in error.what
    assert fix in error.fix
    assert error.exit_code == exit_code
    assert not may_have_been_accepted(255, words)


@pytest.mark.parametrize("words", [case[0] for case in CASES])
def test_the_message_of_sbatch_is_quoted(run: Run, words: str) -> None:
    """The quotation omits the program's name at the start of each line."""
    text = explained(run, words).why
    assert text.startswith("sbatch said: ")
    for line in words.splitlines():
        assert line.removeprefix("sbatch: ").removeprefix("error: ") in text


def test_an_unknown_message_may_be_the_clusters_fault(run: Run) -> None:
    """Exit code 1 is only for messages that are certainly about the request."""
    error = explained(run, "sbatch: error: Batch job submission failed: The moon is in the wrong house")
    assert (error.what, error.exit_code) == ("Slurm rejected the job.", 2)
    assert explained(run, "sbatch: error: Batch job submission failed: Partition in DOWN state").exit_code == 2


@pytest.mark.parametrize(
    "words",
    [
        "Job request does not match any supported policy for cori",  # e3sm_diags#284
        "You are requesting 2048000 MiB of RAM, which exceeds the maximum allowed of 1000000 MiB",  # RC-Docs#562
    ],
)
def test_the_words_of_a_sites_own_rules_are_quoted_without_a_guess(run: Run, words: str) -> None:
    error = explained(run, f"sbatch: error: {words}\n{FAILED}Unspecified error")
    assert error.what == "Slurm rejected the job."
    assert words in error.why


@pytest.mark.parametrize("rule", [rule for file in load_rules([builtin_rules_dir()]) for rule in file.rules.submit])
def test_every_rule_continues_the_sentence_about_the_rejection(run: Run, rule: Rule) -> None:
    for words in rule.examples:
        error = explained(run, words)
        who, _, reason_of_it = error.what.partition(": ")
        assert who == ("The job was not submitted" if rule.unreachable else "Slurm rejected the job")
        assert reason_of_it
        assert error.exit_code == rule.exit_code


def test_the_facts_of_a_run_are_those_that_rules_may_use(run: Run) -> None:
    assert set(facts_of(run, direct_spec(run), ())) == FACTS["submit"]


def _partition(name: str, nodes: int, hours: float | None) -> Partition:
    limit_s = None if hours is None else hours * 3600
    text = f"{name}|{name}|up|infinite|{nodes}|idle|gpu:h100:8"
    (partition,) = parse_partitions(text)
    return replace(partition, time_limit_s=limit_s)


def test_a_rejection_is_explained_even_without_partitions(run: Run) -> None:
    words = f"{FAILED}Requested time limit is invalid (missing or exceeds some limit)"
    error = explained(run, words)
    assert error.what == (
        "Slurm rejected the job: partition `batch` does not give that much time, the run asks for 6 h."
    )
    assert "or choose another partition" in error.fix


def test_a_rejection_names_the_defaults_of_unset_options(make_run: MakeRun) -> None:
    error = explained(make_run(), f"{FAILED}Invalid qos specification")
    assert "may not use its default QOS" in error.what


@pytest.mark.parametrize(
    ("words", "exit_code", "what", "fix"),
    [
        (f"{FAILED}Unable to contact slurm controller (connect failure)", 1, "controller cannot be reached", "ping"),
        ("submit.sh: 24: sbatch: not found", 127, "`sbatch` is not installed", "PATH"),
        ("submit.sh: line 24: sbatch: command not found", 127, "`sbatch` is not installed", "PATH"),
    ],
)
def test_a_failure_before_slurm_is_reported_as_not_submitted(
    run: Run, words: str, exit_code: int, what: str, fix: str
) -> None:
    error = explained(run, words, exit_code)
    assert error.what.startswith("The job was not submitted: ")
    assert what in error.what
    assert fix in error.fix
    assert error.exit_code == 2
    assert not may_have_been_accepted(exit_code, words)


def test_an_unknown_message_is_passed_on(run: Run) -> None:
    error = explained(run, "sbatch: error: the moon is full")
    assert (error.what, error.why) == ("Slurm rejected the job.", "sbatch said: the moon is full")
    assert "administrators" in error.fix
    assert explained(run, "", 7).why == "sbatch said: sbatch ended with exit code 7 and no message."


def test_a_withdrawn_submission_was_not_refused(run: Run) -> None:
    error = withdrawal(replace(run, submission="withdrawn", note=NEVER_SENT))
    assert error.what == "The job was not submitted."
    assert "again" in error.fix


# Slurm's words for a broken connection, after which the controller may have the request.
LOST = [
    "Socket timed out on send/recv operation",
    "Zero Bytes were transmitted or received",
    "Unexpected message received",
    "Communication connection failure",
    "Message send failure",
    "Message receive failure",
    "Communication shutdown failure",
    "Unable to contact slurm controller (send failure)",
    "Unable to contact slurm controller (receive failure)",
    "Unable to contact slurm controller (shutdown failure)",
    "Header lengths are longer than data received",
    "Insane message length",
    "Received zero length message",
    "Failed to send entire message",
    "Incompatible versions of client and server code",
    "Protocol authentication error",
    "Invalid authentication credential",
    "Connection timed out reading",
    "Kernel reported delayed socket error after successful write(), client side likely closed",
    "Connection forced closed by quiesce timeout",
    "Connection reset by peer",
    "Broken pipe",
    "Transport endpoint is not connected",
    "Resource temporarily unavailable",
]


@pytest.mark.parametrize("words", LOST)
def test_a_lost_conversation_leaves_open_whether_slurm_has_the_job(words: str) -> None:
    assert may_have_been_accepted(1, FAILED + words)


@pytest.mark.parametrize(
    ("exit_code", "words", "may"),
    [
        (0, "", True),
        (0, "sbatch: error: Invalid directive found in batch script: mine", True),
        (137, "", True),  # killed by a signal
        (143, "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying", True),
        (1, f"sbatch: error: Slurm controller not responding, sleeping and retrying\n{FAILED}Invalid account", False),
        (1, f"{FAILED}Unspecified error", False),  # refused by a site's own rules
        (255, "sbatch: unrecognized option '--timeout=3'", False),
    ],
)
def test_only_a_lost_conversation_does(exit_code: int, words: str, may: bool) -> None:
    assert may_have_been_accepted(exit_code, words) is may


def test_an_sbatch_without_a_configuration_is_no_rejection(run: Run) -> None:
    words = "sbatch: error: fetch_config: DNS SRV lookup failed\n"
    words += "sbatch: fatal: Could not establish a configuration source"
    error = explained(run, words)
    assert (error.what, error.exit_code) == ("The job was not submitted.", 2)
    assert "Could not establish a configuration source" in error.why
    assert "SLURM_CONF" in error.fix


@pytest.mark.parametrize(
    ("gpu_request", "option"),
    [
        ("gpus-per-node:h100", "`--gpus-per-node=h100:8`"),
        ("gres:h100", "`--gres=gpu:h100:8`"),
        ("gres", "`--gres=gpu:8`"),
        ("none", "jobs that ask for no GPUs"),
    ],
)
def test_the_request_for_gpus_is_named_as_it_was_sent(run: Run, gpu_request: str, option: str) -> None:
    spec = replace(direct_spec(run), gpu_request=gpu_request)
    refused = _refused(run, "sbatch: error: Invalid generic resource (gres) specification")
    assert option in refusal(refused, spec).what


def test_a_run_that_names_no_partition_is_not_said_to_name_one(run: Run) -> None:
    refused = _refused(run, f"{FAILED}Invalid account or account/partition combination specified")
    assert "partition `(not named)`" in refusal(refused, replace(direct_spec(run), partition="")).what


def test_sites_words_about_gpus_mention_the_type(run: Run) -> None:
    words = f"sbatch: error: Untyped GPU requests are rejected (invalid gres)\n{FAILED}Unspecified error"
    assert "GPU type" in explained(run, words).fix
