"""Slurm's texts of several versions; slurm_texts/README.md has the origin of each."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.cluster.batch import NO_ANSWER, Answer, ask, batch_answers, batch_script, run_batch
from llmb_tui.cluster.cluster import AnswerCache
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.job_words import pending_reason, words_of_job
from llmb_tui.cluster.link import Completed
from llmb_tui.cluster.slurm.accounting import STORED_COLUMNS, complete_records, parse_sacct, unless_it_hangs
from llmb_tui.cluster.slurm.client import look_commands, parse_bad_nodes, read_jobs
from llmb_tui.cluster.slurm.errors import AccountingError, SlurmError
from llmb_tui.cluster.slurm.partition import (
    Gpus,
    NodeGroup,
    Partition,
    parse_count,
    parse_gres,
    parse_partitions,
    parse_time,
)
from llmb_tui.cluster.slurm.queue import SEPARATOR, parse_squeue
from llmb_tui.errors import LlmbError

if TYPE_CHECKING:
    from llmb_tui.cluster.slurm.cluster import SlurmCluster


def text_of(name: str) -> str:
    return (Path(__file__).parent / "slurm_texts" / f"{name}.txt").read_text()


def row(*cells: str) -> str:
    return SEPARATOR.join(cells) + "\n"


def squeue(job_id: str, state: str, reason: str = "None", name: str = "a", restarts: str = "0") -> str:
    return row(job_id, state, reason, "4", "0:09", restarts, "0", "1795261240", "cn[001-004]", name, "")


SQUEUE_22_05 = text_of("squeue-22.05")
SACCT_22_05 = text_of("sacct-22.05")
OWNER = Answer(0, "4100\n")
OFF = Answer(1, "Slurm accounting storage is disabled\n")


def answers(squeue: str = "", sacct: str | Answer = "") -> dict[str, Answer]:
    accounting = sacct if isinstance(sacct, Answer) else Answer(0, sacct)
    return {"squeue": Answer(0, squeue), "sacct": accounting, "owner": OWNER}


def test_the_queue() -> None:
    jobs = {job.id: job for job in parse_squeue(SQUEUE_22_05)}
    assert {job_id: (job.state, job.reason) for job_id, job in jobs.items()} == {
        "9": ("CANCELLED", ""),
        "10": ("CANCELLED", ""),
        "1": ("COMPLETED", ""),
        "4_0": ("COMPLETED", ""),
        "4_1": ("COMPLETED", ""),
        "2": ("FAILED", "NonZeroExitCode"),
        "3": ("FAILED", "JobLaunchFailure"),
        "5": ("NODE_FAIL", "NodeDown"),
        "6": ("PENDING", "BeginTime"),
        "12": ("PENDING", "Resources"),
        "14": ("PENDING", "Dependency"),
        "15": ("PENDING", "DependencyNeverSatisfied"),
        "16": ("PENDING", "Priority"),
        "17+0": ("PENDING", "Resources"),
        "17+1": ("PENDING", "Resources"),
        "13": ("PENDING", "JobHeldUser"),
        "11": ("RUNNING", ""),
        "7": ("TIMEOUT", "TimeLimit"),
    }
    assert jobs["1"] == Job(
        "1", "ok job|with pipe", "COMPLETED", nodes=2, elapsed_s=0, exit_code="0:0", node_list="cn[001-002]"
    )
    assert jobs["11"] == Job("11", "grö ße", "RUNNING", nodes=3, elapsed_s=12, node_list="cn[001-003]")
    assert jobs["6"].restarts == 1
    assert (jobs["12"].starts_at, jobs["14"].starts_at, jobs["11"].starts_at) == (1795263298, None, None)
    assert (jobs["2"].exit_code, jobs["3"].exit_code) == ("3:0", "0:9")


@pytest.mark.parametrize("version", ["20.11", "23.02", "26.05"])
def test_the_queue_of_other_versions(version: str) -> None:
    done, failed, starved, waits, runs = parse_squeue(text_of(f"squeue-{version}"))[:5]
    assert (done.state, done.exit_code, done.elapsed_s) == ("COMPLETED", "0:0", 64)
    assert (failed.state, failed.exit_code) == ("FAILED", "3:0")
    assert (starved.state, starved.exit_code) == ("OUT_OF_MEMORY", "125:0")
    assert waits == Job(
        "44",
        "llmb-a.waits",
        "PENDING",
        "ReqNodeNotAvail, UnavailableNodes:dgx[004-019]",
        128,
        elapsed_s=0,
        starts_at=1795300000,
    )
    assert runs == Job("45", "llmb-a.runs", "RUNNING", nodes=2, elapsed_s=93784, restarts=2, node_list="dgx[001,003]")


def test_a_state_that_only_newer_versions_have() -> None:
    job = parse_squeue(text_of("squeue-26.05"))[5]
    assert (job.state, job.waiting, job.finished, job.starts_at) == ("EXPEDITING", True, False, None)
    assert "IMEX" in pending_reason(job.reason)


def test_nothing_is_cut_however_long() -> None:
    reason = f"ReqNodeNotAvail, UnavailableNodes:{','.join(f'cn{number:04}' for number in range(0, 2048, 2))}"
    line = row("91_2", "PENDING", reason, "2K", "1-02:03:04", "3", "0", "N/A", "", "a" * 1000, "")
    assert parse_squeue(line) == [Job("91_2", "a" * 1000, "PENDING", reason, 2048, 93784, restarts=3)]


def test_other_lines_among_the_queue_are_left_out() -> None:
    noise = "Loading modules\nsqueue: warning: something\n\n12 is a number\nCLUSTER: other\n"
    assert parse_squeue(noise + SQUEUE_22_05) == parse_squeue(SQUEUE_22_05)


def test_accounting() -> None:
    jobs = {job.id: job for job in parse_sacct("a login message | with bars\n" + SACCT_22_05, "4100")}
    assert jobs["1"] == Job("1", "ok job|with pipe", "COMPLETED", "", 2, 0, "0:0", node_list="cn[001-002]")
    assert (jobs["2"].state, jobs["2"].exit_code) == ("FAILED", "3:0")
    assert jobs["11"] == Job("11", "grö ße", "RUNNING", "", 3, 12, node_list="cn[001-003]")
    assert jobs["12"] == Job("12", "next", "PENDING", "", 3, 0)
    assert (jobs["9"].reason, jobs["10"].reason) == (
        "cancelled by its owner",
        "cancelled by an administrator (root)",
    )
    assert {job.reason for job in parse_sacct(SACCT_22_05, "1") if job.id == "9"} == {"cancelled by user 4100"}


def test_squeue_and_sacct_together_give_the_end_of_a_job() -> None:
    jobs = read_jobs(answers(SQUEUE_22_05, SACCT_22_05))
    assert (jobs["2"].reason, jobs["2"].exit_code) == ("NonZeroExitCode", "3:0")
    assert jobs["9"].reason == "cancelled by its owner"
    assert jobs["11"].state == "RUNNING"


def test_a_state_in_squeue_takes_precedence_over_sacct() -> None:
    """Accounting reports NODE_FAIL for a job that is in the queue again."""
    assert "\n6\x1fNODE_FAIL" in SACCT_22_05
    assert read_jobs(answers(SQUEUE_22_05, SACCT_22_05))["6"].state == "PENDING"
    ended = read_jobs(answers(squeue("3", "COMPLETED"), row("3", "RUNNING", "0:0", "4", "5", "cn1", "a")))["3"]
    assert (ended.state, ended.exit_code) == ("COMPLETED", "0:0")


def test_a_job_that_left_the_queue_is_in_accounting() -> None:
    assert read_jobs(answers("", SACCT_22_05))["2"].exit_code == "3:0"


def test_accounting_that_lags_behind_the_queue_is_reported() -> None:
    job = read_jobs(answers("", row("3", "RUNNING", "0:0", "4", "100", "cn1", "a")))["3"]
    assert job.state == "RUNNING"
    assert "no longer has it" in job.reason


def test_without_accounting_the_queue_is_enough() -> None:
    jobs = read_jobs(answers(SQUEUE_22_05, OFF), ["1", "999"])
    assert (jobs["1"].state, jobs["1"].exit_code) == ("COMPLETED", "0:0")
    assert "999" not in jobs


def test_a_failed_squeue_raises_even_if_sacct_lists_the_job() -> None:
    message = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
    with pytest.raises(SlurmError) as caught:
        read_jobs({**answers("", SACCT_22_05), "squeue": Answer(1, message)}, ["2"])
    assert "Unable to contact" in caught.value.why
    assert "controller" in caught.value.fix


@pytest.mark.parametrize("answer", [Answer(124, ""), Answer(1, "sacct: error: a\nsacct: error: Connection refused\n")])
def test_the_error_for_failed_accounting_mentions_that_the_controller_answers(answer: Answer) -> None:
    with pytest.raises(AccountingError) as caught:
        read_jobs(answers("", answer), ["1"])
    assert "slurmdbd" in caught.value.why
    assert "Slurm's controller answers" in caught.value.why
    assert "\n" not in caught.value.why
    assert ("Connection refused" in caught.value.why) == (answer.exit_code == 1)


def test_a_query_waits_a_few_seconds_for_accounting() -> None:
    commands = look_commands(["1"])
    assert "limited 40 squeue" in commands["squeue"]
    assert "limited 8 sacct" in commands["sacct"]


# Debian always has mawk.
@pytest.mark.parametrize("awk", [*filter(shutil.which, ("mawk", "gawk")), "no-such-awk"])
def test_sacct_is_queried_for_all_jobs_that_left_the_queue(awk: str, tmp_path: Path) -> None:
    states = {
        f"{n}_{n}" if n % 7 == 0 else str(n): ("PENDING", "RUNNING", "COMPLETED", None)[n % 4] for n in range(500)
    }
    lines = ["a banner", *(f"9000{job_id}\x1fRUNNING\x1fand 1\x1fRUNNING\x1f" for job_id in states)]
    lines += [f"{job_id}\x1f{state}\x1f\xe4 'name\x1f" for job_id, state in states.items() if state]
    lines += ["3\x1fRUNNING", "\x1f\x1f\x1f", "", "11\x1fPENDINGX\x1fname\x1f"]
    (tmp_path / "queue").write_text("\n".join(lines), encoding="latin-1")
    calls = tmp_path / "calls"
    programs = {"squeue": f"cat {tmp_path}/queue", "sacct": 'eval "echo \\"\\${$#}\\""', "awk": f'exec {awk} "$@"'}
    for name, does in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} >> {calls}\n{does}\n")
        (tmp_path / name).chmod(0o755)
    result = subprocess.run(
        ["sh", "-c", batch_script(look_commands(list(states)), "T")],
        capture_output=True,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check=True,
        timeout=60,
    )
    asked = batch_answers(result.stdout.decode("latin-1"), {"squeue": "", "sacct": ""}, "T")["sacct"].text.split()[-1]
    left = [job_id for job_id, state in states.items() if state in ("COMPLETED", None)]
    assert asked.split(",") == (left if awk != "no-such-awk" else list(states))
    assert calls.read_text().split() == ["squeue", "awk", "sacct"]


def test_another_program_in_place_of_the_shell_is_quoted() -> None:
    class Nologin(AnswerCache):
        def run_script(self, *_: object, **__: object) -> Completed:
            return Completed(1, "This account is currently not available.\n", "")

        run = run_script

    session = cast("SlurmCluster", Nologin())
    for use in (
        lambda: run_batch(session, {"id": "id"}, 1.0),
        lambda: ask(session, "true", failed=LlmbError, deadline_s=1.0),
    ):
        with pytest.raises(LlmbError, match="runs no commands") as caught:
            use()
        assert "This account is currently not available." in caught.value.why


def test_a_job_reports_why_it_waits_and_how_it_ended() -> None:
    assert "held" in words_of_job(Job("1", "x", "PENDING", "JobHeldUser"))
    assert words_of_job(Job("1", "x", "FAILED", "NonZeroExitCode", exit_code="3:0")) == "exit 3:0 · NonZeroExitCode"
    assert words_of_job(Job("1", "x", "COMPLETED", exit_code="0:0")) == ""


def test_accounting_that_fails_matters_only_for_jobs_that_left_the_queue() -> None:
    failed = Answer(1, "sacct: error: Problem talking to the database: Connection refused\n")
    assert read_jobs(answers(SQUEUE_22_05, failed), ["11", "12"])["11"].state == "RUNNING"
    with pytest.raises(AccountingError, match="sacct") as caught:
        read_jobs(answers(SQUEUE_22_05, failed), ["11", "999"])
    assert caught.value.queued["11"].state == "RUNNING"
    with pytest.raises(SlurmError):
        read_jobs(answers(SQUEUE_22_05, failed))


def test_a_batch_that_was_cut_short_is_a_failure_of_slurm() -> None:
    with pytest.raises(SlurmError):
        read_jobs({"squeue": NO_ANSWER, "sacct": NO_ANSWER})


def test_a_command_that_was_ended_at_its_limit_reports_it() -> None:
    with pytest.raises(SlurmError, match="did not answer in time") as caught:
        read_jobs({**answers(), "squeue": Answer(124, "")})
    assert "hangs" in caught.value.why


def test_nodes_that_do_not_work_are_named_once_with_slurms_reason() -> None:
    text = row("cn001", "idle", "none") + 2 * row("cn002", "down*", "Not responding") + row("cn003", "drained", "xid79")
    assert parse_bad_nodes("motd\n" + text) == ("cn002 is down: Not responding", "cn003 is drained: xid79")


def test_a_message_of_slurm_is_clean() -> None:
    with pytest.raises(SlurmError) as caught:
        read_jobs({**answers(), "squeue": Answer(127, "sh: squeue: not \x1b[31mfound\x07\n")})
    assert "\x1b" not in str(caught.value)
    assert "module load slurm" in caught.value.fix


@given(st.text(max_size=300))
def test_no_text_breaks_a_reader(text: str) -> None:
    for parse in (parse_squeue, parse_sacct, parse_bad_nodes, parse_partitions, parse_gres):
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


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Resources", "enough nodes are free"),
        ("launch failed requeued held", "scontrol release"),
        ("Reservation bench was deleted", "reservation"),
        ("Job's QOS not permitted to use this partition (batch allows long not short)", "QOS"),
        ("ReqNodeNotAvail, May be reserved for other job", "reserved"),
        ("MaxGRESPerAccount", "Its account uses all its GPUs."),
        ("QOSMaxNodePerJobLimit", "more nodes"),
        ("QOSMaxGRESMinutesPerJob", "time on GPUs"),
        ("(Priority)", "higher priority"),
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


def test_every_reason_of_slurms_tables_has_words() -> None:
    of_ended_jobs = {"InvalidReason", "NonZeroExitCode", "OutOfMemory", "RaisedSignal"}
    reasons = set(text_of("reasons").split())
    assert {reason for reason in reasons if pending_reason(reason) == reason} == of_ended_jobs


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


def test_the_script_of_a_batch_prints_parsable_answers() -> None:
    commands = {"out": "echo out; echo err >&2; exit_code=1; false", "code": 'echo "$rc_out"', "in": "cat"}
    result = subprocess.run(
        ["sh", "-c", batch_script(commands, "T")], capture_output=True, text=True, check=True, timeout=30
    )
    assert batch_answers(result.stdout, commands, "T") == {
        "out": Answer(1, "out\nerr\n"),
        "code": Answer(0, "1\n"),
        "in": Answer(0, ""),
    }


@pytest.mark.parametrize(("code", "found"), [(124, "124 "), (0, "0 found"), (1, "0 found"), (127, "0 found")])
def test_a_search_in_accounting_is_not_started_if_accounting_hangs(code: int, found: str) -> None:
    programs = f'limited() {{ shift; "$@"; }}; sacctmgr() {{ return {code}; }}; sacct() {{ printf found; }}'
    script = f'{programs}\nanswer=$({{ {unless_it_hangs("limited 40 sacct")}\n}}); echo $? "$answer"'
    assert subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout == f"{found}\n"


def test_records_of_jobs_wait_for_the_end_of_each() -> None:
    heading = "|".join(STORED_COLUMNS) + "\n"

    def line(job_id: str, state: str) -> str:
        return "|".join({**dict.fromkeys(STORED_COLUMNS, "x"), "JobID": job_id, "State": state}.values()) + "\n"

    requeued, running = line("12", "NODE_FAIL"), line("12", "RUNNING")
    ended, output_text = line("12", "CANCELLED by 1001"), line("13", "COMPLETED")
    noise = "sacct: warning: something\n"
    assert (
        complete_records(noise + heading + requeued + ended + output_text, ["12", "13"])
        == heading + requeued + ended + output_text
    )
    for text in (heading + requeued + running + output_text, heading + ended, heading, noise, ""):
        assert complete_records(text, ["12", "13"]) == ""
    assert not {"SubmitLine", "Comment", "AdminComment"} & set(STORED_COLUMNS)
