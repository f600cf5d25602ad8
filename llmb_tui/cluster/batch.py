"""Several commands in one remote call, each with its own output and exit code.

A command costs two round trips (80 ms each on a slow line) and the start of the login shell. A batch pays that once.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean

if TYPE_CHECKING:
    from llmb_tui.cluster.link import Completed
    from llmb_tui.cluster.session import Session

_LIMITED = 'limited() { if command -v timeout >/dev/null 2>&1; then timeout "$@"; else shift; "$@"; fi; }'


# Words of sshd, and of PAM modules for Unix, LDAP and SSSD.
_PASSWORD_EXPIRED = re.compile(
    r"password (has|is) expired|password change required|(must|required to) change your password", re.IGNORECASE
)
_LONGEST_WORDS = 1000


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of one command of a batch."""

    exit_code: int
    text: str
    """Stdout and stderr in one: remote text, not cleaned."""


_HAS_BEGUN = """printf '\\036%s\\n' "$1\""""
"""First line of a script that may print nothing else: it proves that the login node ran the script."""
TIMED_OUT = 124
"""Exit code of a program that `limited` ended because its time was up."""
NO_ANSWER = Answer(-1, "")
"""Result of a command that the batch did not reach."""


def run_batch(session: Session, commands: Mapping[str, str], deadline_s: float) -> dict[str, Answer]:
    """Run read-only sh snippets one after the other, and return their results by name.

    A snippet finds the exit code of an earlier one in `$rc_NAME`, and runs a program that could hang as
    `limited SECONDS PROGRAM ARGUMENT…`. Quote the values in a snippet with `shell_join`. A session that caches answers
    (`with_answer_cache`) runs each snippet only once.
    Raises LlmbError if another program answers in place of the script, and the errors of `Session.run`.
    """
    cache = {} if session.answers is None else session.answers
    known: dict[str, Answer] = {name: cache[snippet] for name, snippet in commands.items() if snippet in cache}
    unknown = {name: snippet for name, snippet in commands.items() if name not in known}
    if commands and not unknown:
        return known
    token = secrets.token_hex(8)
    script = batch_script(unknown, token, {name: answer.exit_code for name, answer in known.items()})
    result = session.run_script(script, deadline_s=deadline_s, only_looks=True)
    if unknown and token not in result.stdout:
        raise _not_run(session, result)
    answers = batch_answers(result.stdout, unknown, token)
    cache.update((unknown[name], answer) for name, answer in answers.items() if answer is not NO_ANSWER)
    return known | answers


def _not_run(session: Session, result: Completed) -> LlmbError:
    """Make the error for an answer that another program gave in place of the script, such as `nologin`."""
    words = clean(f"{result.stdout}\n{result.stderr}".strip())
    if _PASSWORD_EXPIRED.search(words):
        return LlmbError(
            "The password of this account has expired.",
            f"The login node answered: {words[:_LONGEST_WORDS]}",
            "Log in once with `ssh` in a terminal, and change the password there.",
        )
    answer = (
        f"It answered: {words.splitlines()[0]}"
        if words
        else f"It returned exit code {result.exit_code} and no message."
    )
    if _stdin_is_run(session):
        return LlmbError(
            "The login node ran another shell in place of the command.",
            f"{answer} A start-up file of the login shell, such as ~/.bashrc, replaces the shell, for example by "
            "`exec zsh`. The new shell does not get the command.",
            "Let the file do so only in interactive shells: `[[ $- == *i* ]] && exec zsh -l`.",
        )
    return LlmbError(
        "The login node runs no commands for this account.",
        answer,
        "Ask the cluster's administrators for an account with a shell, or for a host that runs commands.",
    )


def _stdin_is_run(session: Session) -> bool:
    """Whether a shell reads commands from stdin in place of the command that it was given."""
    first, second = secrets.token_hex(8), secrets.token_hex(8)
    command = f'echo {first}"{second}"\n'  # a program that only repeats its input would print the quotation marks
    try:
        return first + second in session.run(["true"], stdin=command.encode()).stdout
    except LlmbError:
        return False


def batch_script(commands: Mapping[str, str], token: str, known: Mapping[str, int] | None = None) -> str:
    """Make one script of all snippets. `token` frames their outputs, and must not occur in them.

    `known`: exit codes, by name, of snippets that are not run again.
    """
    lines = ["LC_ALL=C; export LC_ALL", _LIMITED, *(f"rc_{name}={code}" for name, code in (known or {}).items())]
    for name, snippet in commands.items():
        lines += [
            f"printf '\\036{token} {name}\\n'",
            f"{{ {snippet}\n}} 2>&1 </dev/null; rc_{name}=$?",
            f"printf '\\036{token} = %s\\n' \"$rc_{name}\"",
        ]
    return "\n".join(lines)


def batch_answers(output: str, commands: Mapping[str, str], token: str) -> dict[str, Answer]:
    """Parse the output of a `batch_script`. Output outside of its frames belongs to no snippet, and is ignored."""
    answers = dict.fromkeys(commands, NO_ANSWER)
    name = text = ""
    for head, rest in frames(output, token):
        if not head.startswith("= "):
            name, text = head, rest
        elif name in answers:
            answers[name] = Answer(int(head[2:]), text)
    return answers


def ask(
    session: Session, script: str, *arguments: object, failed: Callable[[str], LlmbError], deadline_s: float
) -> list[tuple[str, str, str]]:
    """Run a read-only script, and return (kind, name, text) of each part that it prints.

    The script gets a token as its first argument, and frames each part with it (see `frames`).
    Raises `failed(reason)` if the script fails, LlmbError if another program answers in place of the script, and the
    errors of `Session.run_script`.
    """
    token = session.once("token", lambda: secrets.token_hex(8))
    words = [token, *map(str, arguments)]
    result = session.run_script(f"{_HAS_BEGUN}\n{script}", words, deadline_s=deadline_s, only_looks=True)
    if token not in result.stdout:
        raise _not_run(session, result)
    if result.exit_code != 0:
        raise failed(clean(result.stderr.strip()) or f"The command returned exit code {result.exit_code}.")
    parts = ((head.partition(" "), text) for head, text in frames(result.stdout, token))
    return [(kind, name, text) for (kind, _, name), text in parts]


def frames(output: str, token: str) -> list[tuple[str, str]]:
    """Split output into (head, text) of each part, which begins with a line of a record separator, token and head."""
    parts = (part.partition("\n") for part in output.split(f"\x1e{token} ")[1:])
    return [(head, text) for head, _, text in parts]
