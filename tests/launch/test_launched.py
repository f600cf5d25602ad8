"""Jobs of a launch: named and confirmed, or excluded as other jobs of the same time."""

from __future__ import annotations

from typing import Any

import pytest

from llmb_tui.cluster.job import OwnJob
from llmb_tui.cluster.job_log import JobLog
from llmb_tui.launch.delivery import Jobs
from llmb_tui.launch.upstream.jobs import jobs_of_launch
from tests.launch.launched_cases import (
    BATCH,
    BEGAN,
    ENDED,
    NAME,
    NEMO_RUN,
    ROOT,
    batch_job,
    block,
    folder,
    found,
    job,
)

INDEX = f"index 5 = {folder()}/log*,{folder()},LocalTunnel,{{}}"
SAID = "Submitted batch job 5\n"
LOG = JobLog(f"{folder()}/log-{NAME}_%j_%r.out", (f"{folder()}/sbatch_{NAME}_%j.out",))


def test_a_task_that_slurm_confirms_is_the_runs_job_with_its_log() -> None:
    assert jobs_of_launch(NEMO_RUN, found(block(0, "5")), [job("5")]) == Jobs(("5",), LOG)


def test_the_plain_task_comes_last() -> None:
    text = block(0, "5") + block(1, "6", "_nsys") + block(2, "7", "_nccltrace")
    jobs = jobs_of_launch(NEMO_RUN, found(text), [job("5"), job("6", "_nsys"), job("7", "_nccltrace")])
    assert jobs.ids == ("7", "6", "5")
    assert jobs.log == LOG


def test_the_index_of_nemo_run_confirms_a_job_that_slurm_forgot() -> None:
    assert jobs_of_launch(NEMO_RUN, found(block(0, "5"), INDEX), []) == Jobs(("5",), LOG)


@pytest.mark.parametrize(
    ("index", "known"),
    [
        ("", [job("11"), job("12", "_nsys")]),
        ("", [job("11", script="", folder=ROOT), job("12", "_nsys")]),
        (INDEX.replace(" 5 ", " 11 "), [job("12", "_nsys")]),
    ],
    ids=["queue", "accounting", "index"],
)
@pytest.mark.parametrize("end", [block(1, "12", "_nsys"), "and much more"], ids=["one", "both"])
def test_a_task_whose_lines_were_cut_off_is_the_runs(index: str, known: list[OwnJob], end: str) -> None:
    assert jobs_of_launch(NEMO_RUN, found(end, index, "named 11 12 "), known).ids == ("12", "11")


@pytest.mark.parametrize(
    ("known", "words"),
    [([], "reported job 11, but Slurm knows no such job"), ([job("11", name="other")], "name in Slurm is 'other'")],
)
def test_a_number_alone_is_never_enough(known: list[OwnJob], words: str) -> None:
    jobs = jobs_of_launch(NEMO_RUN, found(block(1, "12", "_nsys"), "named 11 12 "), [*known, job("12", "_nsys")])
    assert jobs.ids == ()
    assert words in jobs.question


@pytest.mark.parametrize(
    ("known", "words"), [([], "knows no such job"), ([job("5", name="other")], "name in Slurm is 'other'")]
)
def test_a_line_alone_is_never_enough(known: list[object], words: str) -> None:
    jobs = jobs_of_launch(NEMO_RUN, found(block(0, "5")), known)  # type: ignore[arg-type] # jobs
    assert jobs.ids == ()
    assert words in jobs.question


def test_a_batch_job_is_confirmed_by_slurm_or_by_its_output() -> None:
    assert jobs_of_launch(BATCH, found(SAID), [batch_job("5")]) == Jobs(("5",))
    assert jobs_of_launch(BATCH, found(SAID, "file slurm-5.out"), []) == Jobs(("5",))
    assert "knows no such job" in jobs_of_launch(BATCH, found(SAID, "file slurm-6.out"), []).question
    assert "name in Slurm is 'x'" in jobs_of_launch(BATCH, found(SAID), [batch_job("5", name="x")]).question


def test_reported_jobs_are_taken_whatever_else_appeared() -> None:
    assert jobs_of_launch(BATCH, found(SAID), [batch_job("5"), batch_job("6")]).ids == ("5",)
    assert jobs_of_launch(NEMO_RUN, found(block(0, "5")), [job("5"), job("6")]).ids == ("5",)


@pytest.mark.parametrize("more", [(), (INDEX,)])
def test_a_job_that_was_not_named_is_found_by_its_name_and_script(more: tuple[str, ...]) -> None:
    jobs = jobs_of_launch(NEMO_RUN, found("", *more, "before 1 2", exit_code="137"), [job("5"), job("2")])
    assert (jobs.ids, jobs.log) == (("5",), LOG)
    assert "launch.sh reported no job; only 5 appeared while it was active" in jobs.note


def test_a_job_that_only_nemo_run_has_written_down_is_found() -> None:
    assert jobs_of_launch(NEMO_RUN, found("", INDEX, exit_code="1"), []).ids == ("5",)


def test_a_job_listed_only_by_accounting_is_found_without_its_folder() -> None:
    jobs = jobs_of_launch(NEMO_RUN, found("", exit_code="1"), [job("5", script="", folder=f"{ROOT}/NeMo")])
    assert (jobs.ids, jobs.log) == (("5",), None)


def test_until_the_launch_is_over_nothing_is_guessed() -> None:
    assert jobs_of_launch(NEMO_RUN, found("", exit_code=None), [job("5")]) == Jobs()
    assert jobs_of_launch(BATCH, found("", exit_code=None), [batch_job("5")]) == Jobs()


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "x"},
        {"name": f"{NAME}0"},
        {"script": "/home/me/x_sbatch.sh"},
        {"script": f"{folder(made_at=BEGAN - 5).rpartition('/')[0]}/{NAME.partition('.')[2]}_sbatch.sh"},
        {"script": f"{folder(made_at=ENDED + 60).rpartition('/')[0]}/{NAME.partition('.')[2]}_sbatch.sh"},
        {"script": "", "folder": "/home/me"},
    ],
)
def test_other_jobs_of_the_user_are_not_nemo_runs(changes: dict[str, Any]) -> None:
    assert jobs_of_launch(NEMO_RUN, found("", exit_code="1"), [job("5", **changes)]) == Jobs()


@pytest.mark.parametrize("changes", [{"name": "x"}, {"folder": "/home/me"}, {"submitted_at": ENDED + 3600}])
def test_other_jobs_of_the_user_are_not_the_batch_scripts(changes: dict[str, Any]) -> None:
    assert jobs_of_launch(BATCH, found("", exit_code="1"), [batch_job("5", **changes)]) == Jobs()


def test_the_folder_may_be_named_as_slurm_does() -> None:
    assert jobs_of_launch(BATCH, found("", "place /mnt/l", exit_code="1"), [batch_job("5", folder="/mnt/l")]).ids == (
        "5",
    )


def test_two_jobs_with_the_same_name_are_reported_and_not_adopted() -> None:
    jobs = jobs_of_launch(BATCH, found("", "before 4", exit_code="1"), [batch_job("4"), batch_job("5"), batch_job("6")])
    assert jobs.ids == ()
    assert jobs.question.startswith("Jobs 5 and 6 appeared while launch.sh was active, and have the same name")


def test_jobs_from_before_a_launch_do_not_belong_to_it() -> None:
    jobs = [batch_job("5"), batch_job("6")]
    assert jobs_of_launch(BATCH, found("", "next 5", exit_code="1"), jobs).ids == ("5",)
    assert jobs_of_launch(BATCH, found("", "next ", "other 6", exit_code="1"), jobs[1:]) == Jobs()


def test_a_job_that_was_accepted_late_is_not_the_job_of_a_later_launch() -> None:
    jobs = [batch_job("5"), batch_job("6")]
    assert jobs_of_launch(BATCH, found("", "next ", "other 6", exit_code="1"), jobs).ids == ("5",)


def test_while_a_later_launch_is_not_settled_its_jobs_are_not_taken() -> None:
    late = [batch_job("6")]
    assert jobs_of_launch(BATCH, found("", "next ", "last lost", exit_code="1"), late) == Jobs()
    waits = jobs_of_launch(BATCH, found("", "next ", "last working", exit_code="1"), late)
    assert (waits.ids, "is active" in waits.question) == ((), True)
    assert jobs_of_launch(BATCH, found("", "next 6", "last working", exit_code="1"), late).ids == ("6",)
