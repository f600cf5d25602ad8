"""Jobs in the output of a launch: accepted and ignored lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.cluster.validation import PATH, matches
from llmb_tui.launch.upstream.output import Task, batch_job, indexed_tasks, last_line, task_from_script, tasks
from tests.launch.launched_cases import EXPERIMENT, EXPERIMENTS, block, folder, found


def test_one_task() -> None:
    words = f"Experiment Status for {EXPERIMENT}_1763712005\n{block(0, '48123')}\n# The experiment was run\n"
    assert tasks(words, EXPERIMENTS) == (Task(EXPERIMENT, "48123", folder()),)


def test_three_tasks() -> None:
    words = "".join(block(n, str(48123 + n), mark) for n, mark in enumerate(("", "_nsys", "_nccltrace")))
    text = tasks(words, EXPERIMENTS)
    assert [(task.name, task.job_id) for task in text] == [
        (EXPERIMENT, "48123"),
        (f"{EXPERIMENT}_nsys", "48124"),
        (f"{EXPERIMENT}_nccltrace", "48125"),
    ]
    assert text[1].folder == folder("_nsys")


def test_a_number_of_another_cluster_is_the_number() -> None:
    assert tasks(block(0, "48123;eos"), EXPERIMENTS)[0].job_id == "48123"


def test_lines_that_end_as_on_windows_or_a_terminal_are_lines() -> None:
    text = block(0, "48123")
    for ending in ("\r\n", "\r"):
        assert tasks(found(text.replace("\n", ending)).output, EXPERIMENTS) == tasks(text, EXPERIMENTS)


def test_colours_do_not_matter() -> None:
    words = block(0, "48123").replace("Task 0", "\x1b[1;32mTask 0\x1b[0m").replace("- Job id", "- \x1b[1mJob id\x1b[0m")
    assert len(tasks(found(words).output, EXPERIMENTS)) == 1


@pytest.mark.parametrize(
    "words",
    [
        "",
        "Task 0: ",
        block(0, ""),
        block(0, "48123").replace("- Local Directory", "- Directory"),
        block(0, "48123", where="/etc/passwd"),
        block(0, "48123", where=f"{EXPERIMENTS}/../../x/{EXPERIMENT}"),
        block(0, "48123", where=f"{EXPERIMENTS}/a/b/$(id)/{EXPERIMENT}"),
        block(0, "48123", where=f"{EXPERIMENTS}/{EXPERIMENT}"),
        block(0, "48123", where=folder("_nsys")),
        block(0, "48123").replace("48123", "٤٨"),
        block(0, "9" * 40),
        "Experiment Status\n- Job id: 48123\n- Local Directory: /x",
    ],
)
def test_incomplete_task_lines_are_ignored(words: str) -> None:
    assert tasks(words, EXPERIMENTS) == ()


def test_a_task_without_a_job_does_not_get_the_job_of_the_next_task() -> None:
    words = block(0, "48123").replace("- Job id: 48123\n", "") + block(1, "48124", "_nsys")
    assert [task.job_id for task in tasks(words, EXPERIMENTS)] == ["48124"]


@given(st.text(alphabet=st.sampled_from("Task 0:-Jobid LocalDirectory/\n.x$(1"), max_size=300))
def test_only_paths_below_the_experiments_are_accepted(words: str) -> None:
    for task in tasks(f"Task 0: x\n- Job id: 1\n- Local Directory: {words}\n{words}", EXPERIMENTS):
        assert matches(PATH, task.folder)
        assert task.folder.startswith(f"{EXPERIMENTS}/")


@pytest.mark.parametrize(
    ("words", "job_id"),
    [
        ("Submitted batch job 48123", "48123"),
        ("sbatch: note\nSubmitted batch job 48123 on cluster eos\n", "48123"),
        ("Submitted batch job 48123\nSubmitted batch job 48123\n", "48123"),
        ("Submitted batch job 1\nSubmitted batch job 2\n", ""),
        ("not Submitted batch job 48123", ""),
        ("Submitted batch job x", ""),
        ("", ""),
    ],
)
def test_the_job_of_a_batch_script(words: str, job_id: str) -> None:
    assert batch_job(words) == job_id


def test_the_index_of_nemo_run_gives_jobs_and_folders() -> None:
    lines = [
        f"48123 = {folder()}/log*,{folder()},LocalTunnel,{{}}",
        f"48124;eos = {folder('_nsys')}/log*,x,LocalTunnel,{{}}",
        "48125 = /etc/log*,/etc,LocalTunnel,{}",
        "nonsense",
        "",
    ]
    assert [(task.job_id, task.folder) for task in indexed_tasks(lines, EXPERIMENTS)] == [
        ("48123", folder()),
        ("48124", folder("_nsys")),
    ]


def test_the_task_of_a_batch_script_that_nemo_run_wrote() -> None:
    above = folder().rpartition("/")[0]
    assert task_from_script("48123", f"{above}/{EXPERIMENT}_sbatch.sh", EXPERIMENTS) == Task(
        EXPERIMENT, "48123", folder()
    )
    for path in ("", "/tmp/x_sbatch.sh", f"{above}/{EXPERIMENT}.sh", f"{above}/../x_sbatch.sh"):
        assert task_from_script("48123", path, EXPERIMENTS) is None


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("Importing NeMo\n\n  ───────\n", "Importing NeMo"),
        ("[10:00:00] Launching job x\n# The experiment\nnemo experiment status x\n", "[10:00:00] Launching job x"),
        ("", ""),
        ("\x1b[31mred\x07", "red\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_the_last_line_skips_lines_without_content(words: str, line: str) -> None:
    assert last_line(words) == line
