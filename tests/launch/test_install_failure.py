"""Exact messages of programs when an install fails, and their explanations."""

from __future__ import annotations

from llmb_tui.launch.step_state import explain


def test_the_most_specific_line_is_quoted_at_any_position() -> None:
    text = "tar: usr/lib/x.so: Cannot write: No space left on device"
    failure = explain(["enroot made no image.", "Write failed because No space left on device", text, "Killed"])
    assert failure.line == text
    assert "temporary directory of enroot" in failure.reason


def test_an_unreachable_node_is_not_reported_as_a_wrong_account() -> None:
    silent = explain(
        ["srun: error: Task launch for StepId=17.0 failed on node cn003: Communication connection failure"]
    )
    assert "does not answer" in silent.reason
    refused = explain(
        ["srun: error: Unable to allocate resources: Invalid account or account/partition combination specified"]
    )
    assert "account" in refused.fix
    ended = explain(["bash: line 1: x: Exit 3", "srun: error: cn003: task 0: Exited with exit code 3"])
    assert (ended.line, ended.reason) == ("srun: error: cn003: task 0: Exited with exit code 3", "")
    assert "account" not in ended.fix


def test_an_import_that_fails_is_the_fault_of_the_module_that_lacks_the_name() -> None:
    trace = [
        "Traceback (most recent call last):",
        "ImportError: cannot import name '_type_utils' from 'torch.onnx' (/x)",
    ]
    assert (
        explain(trace).reason
        == "The environment has a version of torch.onnx without _type_utils, which the recipe needs."
    )
    assert "lacks leptonai.api" in explain(["ModuleNotFoundError: No module named 'leptonai.api'"]).reason


def test_another_users_checkout_is_not_reported_as_another_release() -> None:
    """A git older than 2.38 ignores our statement that the folder is safe."""
    for line in (
        "fatal: detected dubious ownership in repository at '/lustre/llmb/llmb_repo'",
        "fatal: unsafe repository ('/lustre/llmb/llmb_repo' is owned by someone else)",
    ):
        failure = explain([line, "/lustre/llmb/llmb_repo is no checkout of v25.12 but of something else."])
        assert failure.line == line
        assert "belongs to another user" in failure.reason
        assert "`git config --global --add safe.directory /lustre/llmb/llmb_repo`" in failure.fix


def test_a_program_that_is_not_there_is_named() -> None:
    failure = explain(["./setup.sh: line 51: huggingface-cli: command not found"])
    assert failure.reason == "The setup script needs the program huggingface-cli, which is not installed."
    assert "another version of the package" in failure.fix
    assert "needs is missing" in explain(["/lustre/step.sh: 7: enroot: not found"]).reason


def test_the_refusing_host_determines_the_needed_key() -> None:
    assert explain(["curl: (22) The requested URL returned error: 401"]).key_would_help == "ngc"
    assert explain(["There is no Hugging Face token on the cluster."]).key_would_help == "hugging-face"


def test_an_unknown_message_is_quoted_without_a_reason() -> None:
    failure = explain(["first", "the \x1b[31mlast\x07 words", "  "])
    assert failure.line == "the last\N{REPLACEMENT CHARACTER} words"
    assert failure.reason == ""
    assert "log" in failure.fix


def test_a_silent_failure_has_no_line() -> None:
    assert explain([]).line == ""
