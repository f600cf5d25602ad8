"""`Bound`: what a number of a file must keep to, in its type, such as `Annotated[int, Bound(ge=1)]`."""

from __future__ import annotations

from typing import Any


class Bound:
    """`gt`, `ge`, `le`, which pydantic checks. Its own classes for that take longer to import than a plan."""

    def __init__(self, **bounds: float) -> None:
        self._bounds = bounds

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """The number's own schema, with the bounds."""
        return {**handler(source), **self._bounds}
