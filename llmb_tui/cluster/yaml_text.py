"""`yaml_of` and `nodes_of`: YAML that somebody else wrote, as plain values or with its lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class NotYaml(ValueError):
    """A text that is no YAML."""

    def __init__(self, problem: str = "", line: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        """What is wrong, as PyYAML says it, which quotes a few characters; empty where it does not."""
        self.line = line
        """Where, from 1 on."""


def yaml_of(text: str | bytes) -> Any:
    """The value of a text. Raises NotYaml."""
    import yaml  # noqa: PLC0415 - the first frame needs none

    with _not_yaml():
        return yaml.safe_load(text)


def nodes_of(text: str) -> Any:
    """The node at its root, each of which knows its line; None of an empty text. Raises NotYaml."""
    import yaml  # noqa: PLC0415 - as above

    with _not_yaml():
        return yaml.compose(text, Loader=yaml.SafeLoader)


@contextmanager
def _not_yaml() -> Iterator[None]:
    import yaml  # noqa: PLC0415 - as above

    try:
        yield
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise NotYaml(error.problem or "it ends too early", line) from None
    # Its own conversions let through what they meet: KeyError of `!!bool maybe`, AttributeError of `!!timestamp x`.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, ArithmeticError, RecursionError):
        raise NotYaml from None
