"""`in_daemon`: a blocking call in a thread that the program does not wait for when it ends.

Textual's own thread workers belong to an executor that Python joins at exit, so that a command on a dead link would
hold the terminal for its whole deadline. Use it inside an async worker:
`self.run_worker(in_daemon(call), exit_on_error=False)`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_daemon(call: Callable[[], T]) -> T:
    """Result of the call, or its exception. Cancelled, it returns at once and the thread's result is dropped."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: Exception | None) -> None:
        if outcome.done():
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(result)  # type: ignore[arg-type]  # None only where T is None

    def run() -> None:
        result, failure = None, None
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 - it is raised again where the call is awaited
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop has closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, daemon=True).start()
    return await outcome
