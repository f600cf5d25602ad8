"""`yaml_of` and `nodes_of`: parsers of foreign YAML, to plain values or to nodes with line numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_MOST_MARKS = 100_000
_MOST_VALUES = 100_000
_LONGEST_NUMBER = 100


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
        loader = yaml.SafeLoader(_bounded(text))
        try:
            root = loader.get_single_node()
            _check(root)
            return loader.construct_document(root) if root is not None else None
        finally:
            loader.dispose()


def nodes_of(text: str) -> Any:
    """Parse a text to its root node, with line numbers; None for an empty text. Raises YamlError."""
    import yaml  # noqa: PLC0415 - as above

    with _not_yaml():
        return yaml.compose(_bounded(text), Loader=yaml.SafeLoader)


def _bounded(text: str | bytes) -> str | bytes:
    """The text, unless it may have so many values that parsing takes longer than some seconds."""
    data = text.encode(errors="replace") if isinstance(text, str) else text
    if sum(map(data.count, (b"\n", b",", b":", b"-", b"?", b"[", b"{"))) > _MOST_MARKS:
        raise YamlError("it has too many values")
    return text


def _check(root: Any) -> None:
    """Raise YamlError for too many values, where an alias counts as all to which it refers, and for long numbers."""
    waiting, count = [root] if root is not None else [], 0
    while waiting:
        node, count = waiting.pop(), count + 1
        if count > _MOST_VALUES:
            raise YamlError("it has too many values")
        if node.id == "mapping":
            waiting += [part for pair in node.value for part in pair]
        elif node.id == "sequence":
            waiting += node.value
        elif node.tag.endswith((":int", ":float")) and len(node.value) > _LONGEST_NUMBER:
            raise YamlError("it has a number of too many digits", node.start_mark.line + 1)


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
