"""`yaml_of`: YAML that somebody else wrote, as plain values."""

from __future__ import annotations

from typing import Any


class NotYaml(ValueError):
    """A text that is no YAML."""

    def __init__(self, problem: str = "", line: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        """What is wrong, without the text; empty where PyYAML does not say it."""
        self.line = line
        """Where, from 1 on."""


def yaml_of(text: str | bytes) -> Any:
    """The value of a text. Raises NotYaml."""
    import yaml  # noqa: PLC0415 - the first frame needs none

    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        # PyYAML quotes a part of the text at the end.
        problem = (error.problem or "it ends too early").partition(" '")[0].partition(' "')[0]
        raise NotYaml(problem, error.problem_mark.line + 1 if error.problem_mark else None) from None
    # Its own conversions let through what they meet: KeyError of `!!bool maybe`, AttributeError of `!!timestamp x`.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, ArithmeticError, RecursionError):
        raise NotYaml from None
