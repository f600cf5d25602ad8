"""Several commands in one remote call, each with its own output and exit code.

At 80 ms to the cluster a command costs two round trips and the login shell's start; ten cost ten times that.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean

if TYPE_CHECKING:
    from llmb_tui.cluster.link import Completed
    from llmb_tui.cluster.session import Session

_LIMITED = 'limited() { if command -v timeout >/dev/null 2>&1; then timeout "$@"; else shift; "$@"; fi; }'


@dataclass(frozen=True, slots=True)
class Answer:
    """What one command of a batch said."""

    exit_code: int
    text: str
    """Its stdout, and its stderr among it: remote text, not cleaned."""


TIMED_OUT = 124
"""Exit code of what `limited` had to end."""
NO_ANSWER = Answer(-1, "")
"""Of a command that the batch did not come to."""


def run_batch(session: Session, commands: Mapping[str, str], deadline_s: float) -> dict[str, Answer]:
    """Run sh snippets, which only look, one after the other; their answers by name.

    A snippet finds the exit code of an earlier one in `$rc_NAME`, and may run a program that could hang as
    `limited SECONDS PROGRAM ARGUMENT…`. Values in it were quoted by `shell_join`. A session that is `asking_once` is
    asked for those that it has not run yet.
    Raises Trouble where something else than the script answers, and what `Session.run` raises.
    """
    kept = {} if session.answers is None else session.answers
    known: dict[str, Answer] = {name: kept[snippet] for name, snippet in commands.items() if snippet in kept}
    asked = {name: snippet for name, snippet in commands.items() if name not in known}
    if commands and not asked:
        return known
    token = secrets.token_hex(8)
    script = batch_script(asked, token, {name: answer.exit_code for name, answer in known.items()})
    result = session.run_script(script, deadline_s=deadline_s, only_looks=True)
    if asked and token not in result.stdout:
        raise _not_run(result)
    answers = batch_answers(result.stdout, asked, token)
    kept.update((asked[name], answer) for name, answer in answers.items() if answer is not NO_ANSWER)
    return known | answers


def _not_run(result: Completed) -> Trouble:
    """Of an answer that is not even the beginning of the script's: something else answered, such as `nologin`."""
    said = clean(f"{result.stdout}\n{result.stderr}".strip()).split("\n")[0]
    return Trouble(
        "The login node runs no commands for this account.",
        f"It said: {said}" if said else f"It ended with exit code {result.exit_code} and no word.",
        "Ask the cluster's administrators for an account with a shell, or for the host where commands may be run.",
    )


def batch_script(commands: Mapping[str, str], token: str, known: Mapping[str, int] | None = None) -> str:
    """One script of all snippets. `token` is no part of any output: it frames them.

    `known`: exit codes of earlier ones that are not run again.
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
    """Take the output of a `batch_script` apart; what is outside of its frames is not the commands'."""
    answers = dict.fromkeys(commands, NO_ANSWER)
    name = text = ""
    for head, rest in frames(output, token):
        if not head.startswith("= "):
            name, text = head, rest
        elif name in answers:
            answers[name] = Answer(int(head[2:]), text)
    return answers


def ask(
    session: Session, script: str, *arguments: object, failed: Callable[[str], Trouble], deadline_s: float
) -> list[tuple[str, str, str]]:
    """(kind, name, text) of each part that a script prints, which only looks, and frames them by its first argument.

    Where it fails what `failed` makes of the reason is raised; and what `Session.run_script` raises.
    """
    token = session.once("token", lambda: secrets.token_hex(8))
    words = [token, *map(str, arguments)]
    result = session.run_script(script, words, deadline_s=deadline_s, only_looks=True)
    if result.exit_code != 0:
        raise failed(clean(result.stderr.strip()) or f"The command there ended with {result.exit_code}.")
    parts = ((head.partition(" "), text) for head, text in frames(result.stdout, token))
    return [(kind, name, text) for (kind, _, name), text in parts]


def frames(output: str, token: str) -> list[tuple[str, str]]:
    """Head and text of each part that a script framed by a line of a record separator, the token and the head."""
    parts = (part.partition("\n") for part in output.split(f"\x1e{token} ")[1:])
    return [(head, text) for head, _, text in parts]
