"""`Bound`, `Quantity`, `Spelled`: what a number or text of a file must keep to: `Annotated[int, Bound(ge=1)]`."""

from __future__ import annotations

import re
from typing import Any


class Bound:
    """`gt`, `ge`, `le`, which pydantic checks. Its own classes for that take longer to import than a plan."""

    def __init__(self, **bounds: float) -> None:
        self._bounds = bounds

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """The number's own schema, with the bounds."""
        return {**handler(source), **self._bounds}


class Quantity(Bound):
    """The same for a number that may come as a text too, of a variable: pydantic would take `true` for 1 there."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """The number's own schema, with the bounds, and this check before it."""
        from pydantic_core import PydanticCustomError, core_schema  # noqa: PLC0415 - only who checks a file needs it

        def check(value: object) -> object:
            if isinstance(value, bool):
                raise PydanticCustomError("number", "Input should be a valid number")
            return value

        return core_schema.no_info_before_validator_function(
            check, super().__get_pydantic_core_schema__(source, handler)
        )


class Spelled:
    """A regular expression for the whole of a text, and what is wrong with another text, which is its `{!r}`."""

    def __init__(self, pattern: str, otherwise: str = "{!r} cannot be used here") -> None:
        self._pattern = pattern
        self._otherwise = otherwise

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """The text's own schema, and this check after it."""
        from pydantic_core import PydanticCustomError, core_schema  # noqa: PLC0415 - only who checks a file needs it

        def check(text: str) -> str:
            if not re.fullmatch(self._pattern, text, re.ASCII):
                raise PydanticCustomError("spelling", "{words}", {"words": self._otherwise.format(text)})
            return text

        return core_schema.no_info_after_validator_function(check, handler(source))
