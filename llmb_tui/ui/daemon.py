"""`in_daemon`: a blocking call in a thread that the program does not wait for when it ends.

Textual's own thread workers belong to an executor that Python joins at exit, so that a command on a dead link would
hold the terminal for its whole deadline. Every screen uses it in the same way, inside an async worker:

    @work(group="read", exclusive=True, exit_on_error=False)
    async def _read(self) -> None:
        with trouble_shown(self.app):
            answer = await in_daemon(call, argument)
            ...
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from textual.app import App

from llmb_tui.crash import place_of
from llmb_tui.errors import Trouble, trouble_of

if TYPE_CHECKING:
    from llmb_tui.ui.key_order import KeyOrder

P = ParamSpec("P")
T = TypeVar("T")


class Defect(Trouble):
    """Something of ours is wrong."""


async def in_daemon(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Result of the call. Cancelled, it returns at once and the thread's result is dropped.

    Raises Trouble: that of the call, or `Defect`.
    """
    outcome: Future[T] = Future()
    outcome.set_running_or_notify_cancel()

    def run() -> None:
        try:
            outcome.set_result(call(*args, **kwargs))
        except Trouble as trouble:
            outcome.set_exception(trouble)
        except OSError as error:
            outcome.set_exception(trouble_of(error) or _defect(error))
        except Exception as error:  # noqa: BLE001 - a defect is told where the call is awaited; the screen stays usable
            outcome.set_exception(_defect(error))

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(outcome)


def go_on(app: App[Any], agreed: Coroutine[Any, Any, None]) -> None:
    """Do what a person has said yes to: it goes on, and its outcome is told, when its screen is left meanwhile."""
    app.run_worker(agreed, name="agreed", group="agreed", description="agreed", exit_on_error=False)


@contextmanager
def trouble_shown(app: App[Any]) -> Iterator[None]:
    """Trouble within is shown in a dialog, and what follows it there is left out."""
    try:
        yield
    except Trouble as trouble:
        show_failure(app, trouble)


def show_failure(app: App[Any], trouble: Trouble) -> None:
    """In a dialog, which waits for who types: by now a person may be elsewhere."""
    from llmb_tui.ui.dialogs import Failure  # not needed for the first frame

    cast("KeyOrder", app).push_between_words(lambda: Failure(trouble), lambda _: None)


def _defect(error: Exception) -> Defect:
    defect = Defect("This should not have happened.", place_of(error))
    defect.__cause__ = error
    return defect
