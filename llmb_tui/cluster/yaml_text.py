"""`yaml_of` and `nodes_of`: parsers of foreign YAML, to plain values or to nodes with line numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class YamlError(ValueError):
    """A text is not valid YAML."""

    def __init__(self, problem: str = "", line: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        """Problem in PyYAML's words, which quote a few characters of the text; may be empty."""
        self.line = line
        """Line number, from 1."""


def yaml_of(text: str | bytes) -> Any:
    """Parse a text to plain values. Raises YamlError."""
    import yaml  # noqa: PLC0415 - the first frame needs no YAML

    with _not_yaml():
        return yaml.safe_load(text)


def nodes_of(text: str) -> Any:
    """Parse a text to its root node, with line numbers; None for an empty text. Raises YamlError."""
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
        raise YamlError(error.problem or "it ends too early", line) from None
    # PyYAML does not catch errors of its conversions: `!!bool maybe` is a KeyError, `!!timestamp x` an AttributeError.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, ArithmeticError, RecursionError):
        raise YamlError from None
