"""Explanations of a launch script's last output, and whether Slurm may have a job nevertheless."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.errors import LlmbError
from llmb_tui.launch.run import Run
from llmb_tui.launch.upstream.output import launch_failure, launch_reason, may_have_been_submitted
from tests.kit.runs import delivery_of
from tests.launch.launch_cases import MakeRun
from tests.launch.launched_cases import NEMO_RUN

REFUSED = """\
╭─ Traceback (most recent call last) ─╮
│ raise UnexpectedExit(result)        │
╰─────────────────────────────────────╯
UnexpectedExit: Encountered a bad command exit code!
Command: 'sbatch --requeue --parsable /lustre/x_sbatch.sh'
Exit code: 1
Stderr:
sbatch: error: Batch job submission failed: {}
"""
SECRETIVE = "Command: 'sbatch --requeue --parsable /lustre/x_sbatch.sh'\nExit code: -9\n"


@pytest.mark.parametrize(
    ("exit_code", "words", "may"),
    [
        (0, "", True),
        (137, "", True),
        (1, "", False),
        (1, "./launch.sh: line 6: HF_TOKEN: Required variable HF_TOKEN", False),
        (1, "the script is x_sbatch.sh\nImportError: no", False),
        (1, SECRETIVE, True),
        (1, REFUSED.format("Invalid account or account/partition combination specified"), False),
        (1, REFUSED.format("Socket timed out on send/recv operation"), True),
        (1, REFUSED.format("Unable to contact slurm controller (connect failure)"), False),
        (255, "sbatch: unrecognized option '--segment=4'", False),
    ],
)
def test_may_have_been_submitted_depends_on_exit_code_and_message(exit_code: int, words: str, may: bool) -> None:
    assert may_have_been_submitted(exit_code, words) is may


@pytest.mark.parametrize(
    ("exit_code", "words", "reason"),
    [
        (1, REFUSED.format("Invalid account"), "sbatch: Batch job submission failed: Invalid account"),
        (1, "one\ntwo\n\nthree\nfour\n", "two three four"),
        (
            1,
            'Traceback (most recent call last):\n  File "x.py", line 1\n    import y\nImportError: no',
            "ImportError: no",
        ),
        (3, "", "launch.sh ended with exit code 3 and printed no message."),
        (None, " \n", "launch.sh was killed from outside and printed no message."),
    ],
)
def test_the_stored_reason_of_a_failed_launch(exit_code: int | None, words: str, reason: str) -> None:
    assert launch_reason("launch.sh", exit_code, words) == reason


@pytest.mark.parametrize(
    ("note", "what", "fix"),
    [
        ("./launch.sh: line 6: HF_TOKEN: Required variable HF_TOKEN", "no Hugging Face token", "hugging-face"),
        (
            "./launch.sh: line 9: STAGE_PATH: Required variable STAGE_PATH",
            "needs the variable STAGE_PATH",
            "our script",
        ),
        ("./launch.sh: line 9: GPU_TYPE: GPU_TYPE is a required variable.", "the variable GPU_TYPE", "our script"),
        ("./launch.sh: line 30: TP: unbound variable", "it has no TP", "another size"),
        ("ImportError: this release does not work with pyarrow 23.0", "a version of pyarrow", "Install"),
        ("ModuleNotFoundError: No module named 'nemo_run'", "lacks nemo_run", "Remove"),
        (
            "ImportError: cannot import name '_type_utils' from 'torch.onnx' (/lustre/x/torch/onnx/__init__.py)",
            "a version of torch.onnx without _type_utils",
            "Remove",
        ),
        ("./launch.sh: line 30: bc: command not found", "needs the program bc", "PATH"),
        ("main.py: error: unrecognized arguments: --num_layers 32", "the option --num_layers", "Remove"),
        ("a100 is unsupported for this workload.", "does not support a100", "GPU type"),
        ("sh: 1: cd: can't cd to /lustre/x", "is missing", "Install"),
        ("OSError: [Errno 28] No space left on device", "is full", "Free"),
        ("bash: ./launch.sh: Permission denied", "permissions of a recipe's file", "permissions"),
        ("something else {braces}", "the launch script failed", "yourself"),
    ],
)
def test_explanations_of_a_failed_launch(note: str, what: str, fix: str) -> None:
    error = launch_failure(note)
    assert error.what.startswith("The job was not submitted: ")
    assert what in error.what
    assert fix in error.fix
    assert note in error.why


def test_the_message_of_sbatch_is_explained_as_with_our_script(make_run: MakeRun) -> None:
    run = _refused(make_run(), "sbatch: Batch job submission failed: Invalid qos specification")
    error = explained(run)
    assert error.what.startswith("Slurm rejected the job: account `research_llm_bench` may not use its default QOS")
    assert error.why == "sbatch said: Batch job submission failed: Invalid qos specification"
    assert explained(_refused(run, "TP: unbound variable")).what.startswith("The job was not submitted: ")


def explained(run: Run) -> LlmbError:
    return delivery_of(run).refusal(run)


def _refused(run: Run, note: str) -> Run:
    return replace(run, spec=NEMO_RUN, procedure="upstream", submission="refused", note=note)
