"""A secret in the words of a server or of a program there reaches no message."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import llmb_tui
from llmb_tui.cluster.batch import Answer
from llmb_tui.cluster.failures import AuthenticationError
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.job_words import words_of_job
from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.cluster.slurm.client import parse_bad_nodes
from llmb_tui.cluster.slurm.errors import slurm_error
from llmb_tui.cluster.slurm.queue import SEPARATOR
from llmb_tui.cluster.ssh.connect import connect
from llmb_tui.errors import LlmbError
from tests.cluster.login_node import LoginNode, Person

CANARY = "canary7Qz93817"
SAID = f"denied: token={CANARY}"
HIDDEN = "denied: token=[hidden]"


def test_a_banner_and_a_failed_command(node: LoginNode) -> None:
    node.banner = f"  Welcome,\n  {SAID}\n"
    connection = connect(node.profile(), NonInteractivePrompter())
    assert connection.banner == f"  Welcome,\n  {HIDDEN}\n"
    with pytest.raises(LlmbError) as caught:
        connection.write_file(f"/dev/null/token={CANARY}", b"x")
    assert "token=[hidden]" in caught.value.why
    assert CANARY not in caught.value.why
    connection.close()


def test_a_password_that_the_server_repeats(node: LoginNode) -> None:
    node.factors = ("keyboard-interactive",)
    node.rounds = ((f"Password, after {CANARY}: ",),)
    node.instructions = f"you typed {CANARY}"
    person = Person([CANARY, CANARY, CANARY])
    with pytest.raises(AuthenticationError) as caught:
        connect(node.profile(), person)
    (first, _), *others = person.prompts
    assert CANARY in first, "the server knew it before it was typed"
    assert others
    assert all(CANARY not in prompt for prompt, _ in others)
    assert CANARY not in str(caught.value)


def test_words_of_slurm() -> None:
    assert slurm_error("squeue", Answer(1, SAID)).why == f"{HIDDEN}."
    assert slurm_error("sacct", Answer(1, SAID)).why.startswith(HIDDEN)
    assert words_of_job(Job("1", "a", "PENDING", reason=SAID)) == HIDDEN
    assert parse_bad_nodes(SEPARATOR.join(("cn1", "down*", SAID))) == (f"cn1 is down: {HIDDEN}",)


ROOMS = ("cluster", "preflight", "launch", "watch", "cluster_files")
_CLEANERS = ("clean", "clean_line", "short_line")
_FROM_SERVERS = ("stderr", "banners", "str(error)", "answer.text", "result.stdout")


def cleaned_only(source: str) -> Iterator[str]:
    """Calls that clean words of a server, and leave secrets in them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CLEANERS:
            call = ast.unparse(node)
            if "_secrets(" not in call and "server_words(" not in call and any(part in call for part in _FROM_SERVERS):
                yield call


def test_all_rooms_remove_secrets_from_what_servers_print() -> None:
    package = Path(llmb_tui.__file__).parent
    files = [file for room in ROOMS for file in (package / room).rglob("*.py")]
    found = {str(file.relative_to(package)): calls for file in files if (calls := [*cleaned_only(file.read_text())])}
    assert list(cleaned_only("clean(result.stderr).strip()")) == ["clean(result.stderr)"]
    assert found == {}
