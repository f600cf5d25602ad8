"""`Bound`, `Quantity`, `Spelled`: constraints on numbers and texts of a file, as in `Annotated[int, Bound(ge=1)]`."""

from __future__ import annotations

import re
from typing import Any


class Bound:
    """The limits `gt`, `ge` and `le` for pydantic, whose own classes take longer to import than a plan to make."""

    def __init__(self, **bounds: float) -> None:
        self._bounds = bounds

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Schema of the number with the limits."""
        return {**handler(source), **self._bounds}


class Quantity(Bound):
    """Limits of a number that a variable may hold as text; pydantic alone would accept `true` as 1 there."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Schema of the number with the limits, after a check that the value is not a truth value."""
        from pydantic_core import PydanticCustomError, core_schema  # noqa: PLC0415 - needed only to check a file

        def check(value: object) -> object:
            if isinstance(value, bool):
                raise PydanticCustomError("number", "Input should be a valid number")
            return value

        return core_schema.no_info_before_validator_function(
            check, super().__get_pydantic_core_schema__(source, handler)
        )


class Spelled:
    """A regular expression that a text must match as a whole, and the message for one that does not (as `{!r}`)."""

    def __init__(self, pattern: str, message: str = "{!r} cannot be used here") -> None:
        self._pattern = pattern
        self._message = message

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Schema of the text, followed by the match."""
        from pydantic_core import PydanticCustomError, core_schema  # noqa: PLC0415 - needed only to check a file

        def check(text: str) -> str:
            if not re.fullmatch(self._pattern, text, re.ASCII):
                raise PydanticCustomError("spelling", "{words}", {"words": self._message.format(text)})
            return text

        return core_schema.no_info_after_validator_function(check, handler(source))
