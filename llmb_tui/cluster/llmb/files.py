"""What the files of NVIDIA's own tools say on a cluster: several in one remote call, and YAML that is not trusted.

A file may hold tokens in clear text, and so may an error about it: nothing of a file's text comes into a `Trouble`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from llmb_tui.cluster import batch
from llmb_tui.cluster.yaml_text import NotYaml, yaml_of
from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean_line

if TYPE_CHECKING:
    from llmb_tui.cluster.session import Session

MOST_BYTES = 1 << 16
"""A longer file is none of theirs; they have one or two thousand bytes."""


def ask(
    session: Session, script: str, most: int, arguments: Sequence[str], deadline_s: float
) -> list[tuple[str, str, str]]:
    """Run a script with these further arguments: (kind, path, text) for each thing that it found, at most `most`.

    Raises Trouble where it fails, and what `Session.run_script` raises.
    """
    what = "It could not be looked for what NVIDIA's llmb-run has there."
    failed = partial(Trouble, what)
    return batch.ask(session, script, MOST_BYTES, most, *arguments, failed=failed, deadline_s=deadline_s)


def read_yaml(text: str, path: str) -> dict[str, Any]:
    """The mapping that a file holds. Raises Trouble, which names the file and the line but quotes neither."""
    if len(text.encode()) > MOST_BYTES:
        raise unreadable(path, f"It is longer than {MOST_BYTES // 1024} KiB.")
    try:
        content = yaml_of(text)
    except NotYaml as error:
        said = error.problem.partition(" '")[0].partition(' "')[0]  # without the part of the file that it quotes
        where = f", line {error.line}: {said}" if error.line else ""
        raise unreadable(path, f"It is not YAML{where}.") from None
    if not isinstance(content, dict):
        raise unreadable(path, "It holds no keys and values.")
    return content


def unreadable(path: str, why: str) -> Trouble:
    """A file that is not what it should be."""
    return Trouble(
        f"{clean_line(path)} cannot be used.",
        clean_line(why),
        "Nothing was changed. Mend the file there, or go on without it.",
    )
