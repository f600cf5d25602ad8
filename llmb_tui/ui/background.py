"""`background`: work of a screen that does not block its keys. `run_in_thread`: a blocking call, in a thread.

Every screen uses them in the same way:

    @background(group="read", exclusive=True)
    async def _read(self) -> None:
        answer = await run_in_thread(call, argument)
        ...
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from textual import work
from textual.app import App
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.message import Message
from textual.worker import Worker

from llmb_tui.crash import place_of
from llmb_tui.errors import LlmbError, error_with_remedy

P = ParamSpec("P")
T = TypeVar("T")
N = TypeVar("N", bound=DOMNode)


class InternalError(LlmbError):
    """A fault of this program."""


class WorkFailed(Message):
    """Background work of a screen failed; the app shows the error."""

    def __init__(self, error: LlmbError) -> None:
        super().__init__()
        self.error = error


def background(
    *, group: str = "default", exclusive: bool = False, description: str | None = None
) -> Callable[[Callable[Concatenate[N, P], Coroutine[Any, Any, None]]], Callable[Concatenate[N, P], Worker[None]]]:
    """Run a method as a Textual worker, and show each error that it does not handle in a dialog.

    This includes internal errors. The screen stays usable; Textual would end the program, or show nothing.
    """

    def decorate(
        method: Callable[Concatenate[N, P], Coroutine[Any, Any, None]],
    ) -> Callable[Concatenate[N, P], Worker[None]]:
        @wraps(method)
        async def wrapper(node: N, *args: P.args, **kwargs: P.kwargs) -> None:
            with errors_shown(node.app):
                try:
                    await method(node, *args, **kwargs)
                except NoMatches:
                    if node.display:
                        raise
                    # The node is being closed, and its children are already removed.

        return work(group=group, exclusive=exclusive, exit_on_error=False, description=description)(wrapper)

    return decorate


async def run_in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of a call in a new thread. If cancelled, return at once and drop the result of the thread.

    The thread is a daemon, so the program can end before it. Threads of Textual belong to an executor that Python
    joins at exit: a command on a dead connection would block the terminal until its deadline.
    Raises the LlmbError of the call, or InternalError.
    """
    outcome: Future[T] = Future()
    outcome.set_running_or_notify_cancel()

    def run() -> None:
        try:
            outcome.set_result(call(*args, **kwargs))
        except LlmbError as failure:
            outcome.set_exception(failure)
        except OSError as error:
            outcome.set_exception(error_with_remedy(error) or _internal_error(error))
        except Exception as error:  # noqa: BLE001 - the awaiting code handles an internal error; the screen stays usable
            outcome.set_exception(_internal_error(error))

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(outcome)


def run_detached(app: App[Any], action: Coroutine[Any, Any, None]) -> None:
    """Run an action that the user confirmed. It continues, and shows its errors, if the user leaves the screen."""

    async def wrapper() -> None:
        with errors_shown(app):
            await action

    app.run_worker(wrapper(), name="confirmed", group="confirmed", description="confirmed", exit_on_error=False)


@contextmanager
def errors_shown(app: App[Any]) -> Iterator[None]:
    """Show an error or internal error of the block in a dialog; the rest of the block is skipped."""
    try:
        yield
    except LlmbError as failure:
        show_failure(app, failure)
    except Exception as error:  # noqa: BLE001 - an internal error
        show_failure(app, _internal_error(error))


def show_failure(app: App[Any], error: LlmbError) -> None:
    """Make the app show an error in a dialog."""
    app.post_message(WorkFailed(error))


def _internal_error(error: Exception) -> InternalError:
    internal = InternalError("Internal error (please report).", place_of(error))
    internal.__cause__ = error
    return internal
