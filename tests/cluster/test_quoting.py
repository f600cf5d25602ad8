from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llmb_tui.cluster.quoting import command_line, one_line, shell_join
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean, clean_line
from tests.conftest import NOT_RUN

SHELLS = ("sh", "bash", "zsh", "fish", "tcsh")

arguments = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
awkward = st.text("'\"\\!$`*?~#%=&|;<>(){}[] \n\té-", max_size=20)


def output_of(shell: str, command: str) -> str:
    if shutil.which(shell) is None:
        pytest.skip(f"{NOT_RUN}no {shell} is installed")
    result = subprocess.run([shell, "-c", command], capture_output=True, check=True, timeout=30)
    assert result.stderr == b""
    return result.stdout.decode()


def words(shell: str, command: str) -> list[str]:
    return output_of(shell, command).split("\0")[:-1]


@given(st.lists(arguments | awkward, max_size=4))
@example(["", "=ls", "~", "a'b", "\\", "\\\\", "\\'", "!!", "$HOME", "`id`", "a\nb\n", "-n", "%s%n"])
def test_any_text_comes_through_a_real_shell_as_it_was(argv: list[str]) -> None:
    assert words("sh", shell_join(["printf", r"%s\0", *argv])) == (argv or [""])


@pytest.mark.parametrize("shell", SHELLS)
@given(argv=st.lists(arguments | awkward, min_size=1, max_size=4))
@example(argv=["", "=ls", "~", "a'b", "\\", "\\\\", "\\'", "!!", "a!b", "a\nb\n", "-n", "%s%n"])
@example(argv=["", "=ls", "~", "a'b", "\\", "\\\\", "\\'", "!!", "a!b", "$HOME", "%d"])
def test_any_text_comes_through_any_login_shell(shell: str, argv: list[str]) -> None:
    assert words(shell, command_line(["printf", r"%s\0", *argv])) == argv


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_comes_through_any_login_shell(shell: str) -> None:
    script = """
for word; do
    printf '%s\\n' "got $word" | sed 's/got \\(.*\\)/\\1!/'
done
"""
    assert output_of(shell, command_line(["sh", "-c", script, "sh", "one", "it's\ntwo"])) == "one!\nit's!\ntwo\n"


def test_plain_words_stay_readable() -> None:
    assert shell_join(["squeue", "-h", "-j", "1,2", "/a/b.c"]) == "squeue -h -j 1,2 /a/b.c"


@pytest.mark.parametrize("argument", ["a\0b", "\udc80"])
def test_an_argument_that_no_command_can_receive_is_refused(argument: str) -> None:
    with pytest.raises(LlmbError) as caught:
        shell_join(["echo", argument])
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("value", ["batch", "a b", "größe", "x=1,y=2", ""])
def test_one_line_returns_printable_text(value: str) -> None:
    assert one_line(value, "the partition") == value


@pytest.mark.parametrize(
    "value", ["a\nb", "a\rb", "a\0b", "\x1b[31m", "tab\t", "\u2028", "a\u202eb", "a\u034fb", "\x85", "\udc80"]
)
def test_one_line_refuses_the_rest_and_names_the_value(value: str) -> None:
    with pytest.raises(LlmbError, match="the partition") as caught:
        one_line(value, "the partition")
    assert caught.value.exit_code == 1
    assert "\x1b" not in str(caught.value)
    assert value not in str(caught.value)


REPLACED = "\N{REPLACEMENT CHARACTER}"


@given(st.text())
def test_one_line_never_lets_a_second_line_through(value: str) -> None:
    try:
        accepted = one_line(value, "it")
    except LlmbError:
        return
    assert len(accepted.splitlines()) <= 1
    assert REPLACED not in clean_line(accepted.replace(REPLACED, ""))


@given(st.text() | st.text("\x1b[]0;mPX^_\\\x07\x9c\x9b\r\n\t", max_size=30))
def test_clean_text_has_no_control_characters_and_stays_clean(text: str) -> None:
    cleaned = clean(text)
    assert all(char in "\t\n" or not _is_control(char) for char in cleaned)
    assert clean(cleaned) == cleaned
    assert "\n" not in clean_line(text)


FILLERS = "\u115f\u1160\u3164\uffa0"
"""Invisible characters."""


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"], exclude_characters=FILLERS)))
def test_clean_leaves_ordinary_text_alone(text: str) -> None:
    assert clean(text) == text


def _is_control(char: str) -> bool:
    return ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0
