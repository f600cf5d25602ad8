from __future__ import annotations

import pytest

from llmb_tui.launch.refusal import NEVER_SENT, may_have_been_accepted, reason, refusal


@pytest.mark.parametrize(
    ("words", "mend", "exit_code"),
    [
        ("Batch job submission failed: Invalid account or account/partition combination specified", "account", 1),
        (
            "invalid partition specified: nope\nBatch job submission failed: Invalid partition name specified",
            "sinfo",
            1,
        ),
        (
            "Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)",
            "time limit",
            1,
        ),
        (
            "Cannot find GPU specification, you may not submit a job not requesting GPUs, partition: batch",
            "requests GPUs",
            1,
        ),
        ("Batch job submission failed: Invalid generic resource (gres) specification", "requests GPUs", 1),
        ("Batch job submission failed: Requested node configuration is not available", "smaller scale", 1),
        ("Batch job submission failed: Node count specification invalid", "smaller scale", 1),
        ("Batch job submission failed: Job violates accounting/QOS policy (job submit limit)", "limit", 1),
        ("Batch job submission failed: Invalid qos specification", "QOS", 1),
        ("Batch job submission failed: Unable to contact slurm controller (connect failure)", "controller", 2),
        ("sh: 12: sbatch: not found", "PATH", 2),
        ("site policy 17b: ask before you run", "limit", 1),
        ("the moon is full", "administrators", 2),
    ],
)
def test_each_common_refusal_has_its_mend(words: str, mend: str, exit_code: int) -> None:
    trouble = refusal(reason(1, words))
    assert trouble.what == "Slurm refused the job."
    assert words.splitlines()[-1] in trouble.why
    assert mend in trouble.fix
    assert trouble.exit_code == exit_code


def test_slurms_words_lose_the_programs_name_and_keep_every_line() -> None:
    words = "sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed: Invalid x\n"
    assert reason(1, words) == "invalid partition specified: nope Batch job submission failed: Invalid x"
    assert reason(7, "") == "sbatch ended with exit code 7 and said nothing."


def test_a_submission_that_never_reached_slurm_was_not_refused_by_it() -> None:
    trouble = refusal(NEVER_SENT)
    assert trouble.what == "The job was not submitted."
    assert "again" in trouble.fix


@pytest.mark.parametrize(
    ("exit_code", "words", "may"),
    [
        (1, "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", True),
        (1, "sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received", True),
        (1, "sbatch: error: Slurm controller not responding, sleeping and retrying.", True),
        (137, "", True),
        (0, "", True),
        (1, "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)", False),
        (1, "sbatch: error: Batch job submission failed: Invalid account", False),
        (127, "sh: sbatch: not found", False),
    ],
)
def test_only_a_lost_conversation_leaves_open_whether_slurm_has_the_job(exit_code: int, words: str, may: bool) -> None:
    assert may_have_been_accepted(exit_code, words) is may
