"""Slurm's texts. Those of 22.05 were printed by Slurm 22.05.8; the others follow the changes in its manuals."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.cluster.batch import NO_ANSWER, Answer, batch_answers, batch_script
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.partition import Gpus, NodeGroup, Partition, parse_count, parse_gres, parse_partitions, parse_time
from llmb_tui.cluster.slurm import (
    SlurmTrouble,
    parse_accounts,
    parse_sacct,
    parse_scontrol,
    parse_squeue,
    pending_reason,
    read_jobs,
)


def squeue(*rows: tuple[str, str, str, str, str, str, str]) -> str:
    widths = (24, 24, 160, 12, 20, 12, 512)
    return "".join("".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + "\n" for row in rows)


SQUEUE_22_05 = squeue(
    ("7", "CANCELLED", "Resources", "1", "0:00", "0", "kill"),
    ("1", "COMPLETED", "None", "2", "0:01", "0", "ok job|with pipe"),
    ("2", "FAILED", "NonZeroExitCode", "1", "0:01", "0", "fails"),
    ("4", "PENDING", "Resources", "4", "0:00", "0", "waits"),
    ("5", "PENDING", "JobHeldUser", "4", "0:00", "0", "held"),
    ("3", "RUNNING", "None", "4", "0:09", "0", "grö ße"),
)
SACCT_22_05 = """\
1|COMPLETED|0:0|2|1|ok job|with pipe
2|FAILED|3:0|1|1|fails
3|RUNNING|0:0|4|9|grö ße
4|PENDING|0:0|4|0|waits
7|CANCELLED by 1001|0:0|1|0|kill
"""
SCONTROL_22_05 = """\
JobId=1 JobName=ok job|with pipe
   UserId=operator(1001) GroupId=users(100) MCS_label=N/A
   Priority=4294901759 Nice=0 Account=llmbench QOS=normal
   JobState=COMPLETED Reason=None Dependency=(null)
   Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 ExitCode=0:0
   RunTime=1-00:00:01 TimeLimit=01:00:00 TimeMin=N/A
   SubmitTime=2026-11-21T08:48:00 EligibleTime=2026-11-21T08:48:00
   Partition=batch AllocNode:Sid=localhost:0
   NodeList=cn[001-002]
   NumNodes=2 NumCPUs=2 NumTasks=2 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   Command=/tmp/sl/j.sh 1 0

JobId=12 ArrayJobId=11 ArrayTaskId=3 JobName=waits JobState=FAILED
   JobState=PENDING Reason=Resources Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   NumNodes=4-4 NumCPUs=4

slurm_load_jobs error: Invalid job id specified
"""
OFF = Answer(1, "Slurm accounting storage is disabled\n")


def answers(squeue: str = "", sacct: str | Answer = "", scontrol: str = "") -> dict[str, Answer]:
    accounting = sacct if isinstance(sacct, Answer) else Answer(0, sacct)
    return {"squeue": Answer(0, squeue), "sacct": accounting, "scontrol": Answer(0, scontrol)}


def test_the_queue() -> None:
    jobs = parse_squeue(SQUEUE_22_05)
    assert [(job.id, job.state, job.reason) for job in jobs] == [
        ("7", "CANCELLED", ""),
        ("1", "COMPLETED", ""),
        ("2", "FAILED", "NonZeroExitCode"),
        ("4", "PENDING", "Resources"),
        ("5", "PENDING", "JobHeldUser"),
        ("3", "RUNNING", ""),
    ]
    assert jobs[1] == Job("1", "ok job|with pipe", "COMPLETED", nodes=2, elapsed_s=1)
    assert jobs[5] == Job("3", "grö ße", "RUNNING", nodes=4, elapsed_s=9)


def test_the_queue_of_a_big_requeued_job_with_a_long_reason() -> None:
    reason = "ReqNodeNotAvail, UnavailableNodes:cn[0001-2048]," + "x" * 200
    row = ("91_2", "PENDING", reason[:160], "2K", "1-02:03:04", "3", "a")
    assert parse_squeue(squeue(row)) == [Job("91_2", "a", "PENDING", reason[:160], 2048, 93784, restarts=3)]


def test_other_lines_among_the_queue_are_left_out() -> None:
    noise = "Loading modules\nsqueue: warning: something\n\n12 is a number\n"
    assert parse_squeue(noise + SQUEUE_22_05) == parse_squeue(SQUEUE_22_05)


def test_accounting() -> None:
    assert parse_sacct("a login message | with bars\n" + SACCT_22_05) == [
        Job("1", "ok job|with pipe", "COMPLETED", "", 2, 1, "0:0"),
        Job("2", "fails", "FAILED", "", 1, 1, "3:0"),
        Job("3", "grö ße", "RUNNING", "", 4, 9),
        Job("4", "waits", "PENDING", "", 4, 0),
        Job("7", "kill", "CANCELLED", "CANCELLED by 1001", 1, 0, "0:0"),
    ]


def test_the_controllers_own_record() -> None:
    first, second = parse_scontrol(SCONTROL_22_05)
    assert first == Job("1", "ok job|with pipe", "COMPLETED", "", 2, 86401, "0:0", 2)
    assert (second.id, second.state, second.reason, second.nodes, second.exit_code) == (
        "12",
        "PENDING",
        "Resources",
        4,
        None,
    )


def test_both_together_tell_how_a_job_ended() -> None:
    jobs = read_jobs(answers(SQUEUE_22_05, SACCT_22_05))
    assert jobs["2"] == Job("2", "fails", "FAILED", "NonZeroExitCode", 1, 1, "3:0")
    assert jobs["7"].reason == "CANCELLED by 1001"
    assert jobs["3"].state == "RUNNING"


def test_the_controller_knows_a_present_state_first() -> None:
    running = squeue(("3", "RUNNING", "None", "4", "0:09", "1", "a"))
    assert read_jobs(answers(running, "3|NODE_FAIL|0:0|4|100|a\n"))["3"].state == "RUNNING"
    ended = squeue(("3", "COMPLETED", "None", "4", "0:09", "0", "a"))
    assert read_jobs(answers(ended, "3|RUNNING|0:0|4|5|a\n"))["3"].state == "COMPLETED"


def test_a_job_that_left_the_queue_is_in_accounting() -> None:
    assert read_jobs(answers("", SACCT_22_05))["2"].exit_code == "3:0"


def test_without_accounting_the_controller_is_asked_alone() -> None:
    jobs = read_jobs(answers("", OFF, SCONTROL_22_05), ["1", "999"])
    assert jobs["1"].state == "COMPLETED"
    assert "999" not in jobs


def test_a_queue_that_fails_says_nothing_about_any_job() -> None:
    said = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
    with pytest.raises(SlurmTrouble) as caught:
        read_jobs({**answers("", SACCT_22_05), "squeue": Answer(1, said)}, ["2"])
    assert "Unable to contact" in caught.value.why
    assert "controller" in caught.value.fix


def test_accounting_that_fails_matters_only_for_jobs_that_left_the_queue() -> None:
    failed = Answer(1, "sacct: error: Problem talking to the database: Connection refused\n")
    assert read_jobs(answers(SQUEUE_22_05, failed), ["3", "4"])["3"].state == "RUNNING"
    with pytest.raises(SlurmTrouble):
        read_jobs(answers(SQUEUE_22_05, failed), ["3", "999"])
    with pytest.raises(SlurmTrouble):
        read_jobs(answers(SQUEUE_22_05, failed))


def test_a_batch_that_was_cut_short_is_a_failure_of_slurm() -> None:
    with pytest.raises(SlurmTrouble):
        read_jobs({"squeue": NO_ANSWER, "sacct": NO_ANSWER})


def test_what_slurm_said_is_clean() -> None:
    with pytest.raises(SlurmTrouble) as caught:
        read_jobs({**answers(), "squeue": Answer(127, "sh: squeue: not \x1b[31mfound\x07\n")})
    assert "\x1b" not in str(caught.value)
    assert "module load slurm" in caught.value.fix


@given(st.text(max_size=300))
def test_no_text_breaks_a_reader(text: str) -> None:
    for parse in (parse_squeue, parse_sacct, parse_scontrol, parse_partitions, parse_gres):
        parse(text)
    for job in (*parse_squeue(text), *parse_sacct(text)):
        assert job.id[0].isdigit()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("4:00:00", 14400),
        ("30:00", 1800),
        ("1-00:00:00", 86400),
        ("0:09", 9),
        ("15", 15),
        ("100-01:02:03", 8643723),
        ("infinite", None),
        ("UNLIMITED", None),
        ("n/a", None),
        ("INVALID", None),
        ("", None),
    ],
)
def test_times(text: str, seconds: float | None) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    ("text", "number"), [("8", 8), ("2K", 2048), ("1.5K", 1536), ("2-4", 2), ("", None), ("N/A", None)]
)
def test_counts(text: str, number: int | None) -> None:
    assert parse_count(text) == number


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("gpu:h100:8", (Gpus("h100", 8),)),
        ("gpu:8", (Gpus(None, 8),)),
        ("gpu:h100:8(S:0-1)", (Gpus("h100", 8),)),
        ("gpu:a100:4(S:0,2),gpu:v100:2(S:1)", (Gpus("a100", 4), Gpus("v100", 2))),
        ("gpu:nvidia_h100_80gb_hbm3:8(S:0-1),nvme:1", (Gpus("nvidia_h100_80gb_hbm3", 8),)),
        ("gres:gpu:gb200:4", ()),
        ("(null)", ()),
        ("", ()),
    ],
)
def test_gres(text: str, gpus: tuple[Gpus, ...]) -> None:
    assert parse_gres(text) == gpus


def test_partitions() -> None:
    text = (
        "batch|batch*|up|4:00:00|4|allocated|gpu:h100:8\n"
        "batch|batch*|up|4:00:00|2|down*|gpu:h100:8\n"
        "cpu|cpu|inact|infinite|1K|idle~|(null)\n"
    )
    h100 = (Gpus("h100", 8),)
    batch, cpu = parse_partitions("motd\n" + text)
    assert batch == Partition(
        "batch", True, True, 14400, (NodeGroup(4, "allocated", h100), NodeGroup(2, "down*", h100))
    )
    assert cpu == Partition("cpu", False, False, None, (NodeGroup(1024, "idle~", ()),))
    assert batch.nodes == 6
    assert [group.works for group in (*batch.groups, *cpu.groups)] == [True, False, True]


@pytest.mark.parametrize("state", ["drained", "draining", "down", "idle*", "maint", "fail", "unknown*", "inval"])
def test_nodes_that_do_not_work(state: str) -> None:
    assert not NodeGroup(1, state, ()).works


def test_accounts_are_named_once() -> None:
    assert parse_accounts(Answer(0, "llmbench\nroot\nllmbench\n")) == ["llmbench", "root"]
    assert parse_accounts(Answer(1, "You are not running a supported accounting_storage plugin\n")) == []


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Resources", "enough nodes are free"),
        ("(Priority)", "before it"),
        ("ReqNodeNotAvail, UnavailableNodes:cn[1-3]", "down, drained or reserved"),
        ("Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions", "drained"),
        ("QOSMaxGRESPerUser", "GPUs"),
        ("AssocGrpGRES", "GPUs"),
        ("AssocGrpGRESMinutes", "time"),
        ("QOSMaxJobsPerUserLimit", "jobs"),
        ("AssocMaxWallDurationPerJobLimit", "time"),
        ("QOSGrpNodeLimit", "nodes"),
        ("AssocGrpBillingRunMinutes", "time"),
        ("QOSSomethingNew", "limit"),
    ],
)
def test_reasons_in_plain_words(reason: str, words: str) -> None:
    assert words in pending_reason(reason)
    assert pending_reason(reason).endswith(".")


def test_an_unknown_reason_is_given_as_it_is_but_clean() -> None:
    assert pending_reason("Something\x1b[31mNew\n") == "SomethingNew"


def test_a_batch_is_taken_apart_by_its_token_only() -> None:
    commands = {"one": "x", "two": "y", "three": "z"}
    output = (
        "motd\n\x1eT one\nfirst\nline\x1eother = 5\n\x1eT = 0\n"
        "\x1eT two\nno newline at end\x1eT = 127\n\x1eT three\nhalf"
    )
    assert batch_answers(output, commands, "T") == {
        "one": Answer(0, "first\nline\x1eother = 5\n"),
        "two": Answer(127, "no newline at end"),
        "three": NO_ANSWER,
    }


def test_the_script_of_a_batch_gives_what_is_taken_apart() -> None:
    commands = {"out": "echo out; echo err >&2; exit_code=1; false", "code": 'echo "$rc_out"', "in": "cat"}
    done = subprocess.run(
        ["sh", "-c", batch_script(commands, "T")], capture_output=True, text=True, check=True, timeout=30
    )
    assert batch_answers(done.stdout, commands, "T") == {
        "out": Answer(1, "out\nerr\n"),
        "code": Answer(0, "1\n"),
        "in": Answer(0, ""),
    }
