"""Files of NVIDIA's own tools on a cluster: several in one remote call, and their YAML, which is not trusted.

A file may contain tokens in clear text, and so may an error about it: no `LlmbError` quotes the text of a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from llmb_tui.cluster import batch
from llmb_tui.cluster.yaml_text import YamlError, yaml_of
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line

if TYPE_CHECKING:
    from llmb_tui.cluster.session import Session

MOST_BYTES = 1 << 16
"""Longest file; files of these tools have one or two thousand bytes."""


def ask(
    session: Session, script: str, most: int, arguments: Sequence[str], deadline_s: float
) -> list[tuple[str, str, str]]:
    """Run a script with these arguments, and return (kind, path, text) of its findings, at most `most`.

    Raises LlmbError if the script fails, and the errors of `Session.run_script`.
    """
    what = "Could not search for installations of NVIDIA's llmb-run on the cluster."
    failed = partial(LlmbError, what)
    return batch.ask(session, script, MOST_BYTES, most, *arguments, failed=failed, deadline_s=deadline_s)


def read_yaml(text: str, path: str) -> dict[str, Any]:
    """Parse the mapping in a file. Raises LlmbError, which names file and line but does not quote the text."""
    if len(text.encode()) > MOST_BYTES:
        raise unreadable(path, f"It is longer than {MOST_BYTES // 1024} KiB.")
    try:
        content = yaml_of(text)
    except YamlError as error:
        problem = error.problem.partition(" '")[0].partition(' "')[0]  # without the quoted text
        where = f", line {error.line}: {problem}" if error.line else ""
        raise unreadable(path, f"It is not YAML{where}.") from None
    if not isinstance(content, dict):
        raise unreadable(path, "It contains no keys and values.")
    return content


def unreadable(path: str, why: str) -> LlmbError:
    """Make the error for a file that cannot be used."""
    return LlmbError(
        f"{clean_line(path)} cannot be used.",
        clean_line(why),
        "Nothing was changed. Fix the file on the cluster, or continue without it.",
    )
