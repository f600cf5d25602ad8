"""`background`: what a screen does beside its keys. `run_in_thread`: a blocking call of it, in a thread.

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
    """Something of ours is wrong."""


class WorkFailed(Message):
    """Trouble of a screen's work, for the app to show."""

    def __init__(self, error: LlmbError) -> None:
        super().__init__()
        self.error = error


def background(
    *, group: str = "default", exclusive: bool = False, description: str | None = None
) -> Callable[[Callable[Concatenate[N, P], Coroutine[Any, Any, None]]], Callable[Concatenate[N, P], Worker[None]]]:
    """Textual's worker, whose error is shown in a dialog where the method itself does not tell of it.

    So is a defect, and the screen stays usable: Textual would end the program, or say nothing.
    """

    def of(
        method: Callable[Concatenate[N, P], Coroutine[Any, Any, None]],
    ) -> Callable[Concatenate[N, P], Worker[None]]:
        @wraps(method)
        async def told(node: N, *args: P.args, **kwargs: P.kwargs) -> None:
            with errors_shown(node.app):
                try:
                    await method(node, *args, **kwargs)
                except NoMatches:
                    if node.display:
                        raise
                    # It is being closed: what it would show itself with is gone already.

        return work(group=group, exclusive=exclusive, exit_on_error=False, description=description)(told)

    return of


async def run_in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Result of the call. Cancelled, it returns at once and the thread's result is dropped.

    The program does not wait for the thread when it ends. Textual's own belong to an executor that Python joins at
    exit, so that a command on a dead link would hold the terminal for its whole deadline.
    Raises the error of the call, or `InternalError`.
    """
    outcome: Future[T] = Future()
    outcome.set_running_or_notify_cancel()

    def run() -> None:
        try:
            outcome.set_result(call(*args, **kwargs))
        except LlmbError as failure:
            outcome.set_exception(failure)
        except OSError as error:
            outcome.set_exception(error_with_remedy(error) or _defect(error))
        except Exception as error:  # noqa: BLE001 - a defect is told where the call is awaited; the screen stays usable
            outcome.set_exception(_defect(error))

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(outcome)


def run_detached(app: App[Any], agreed: Coroutine[Any, Any, None]) -> None:
    """Do what a person has said yes to: it goes on, and its outcome is told, when its screen is left meanwhile."""

    async def told() -> None:
        with errors_shown(app):
            await agreed

    app.run_worker(told(), name="agreed", group="agreed", description="agreed", exit_on_error=False)


@contextmanager
def errors_shown(app: App[Any]) -> Iterator[None]:
    """Trouble within, and a defect, is shown in a dialog, and what follows it there is left out."""
    try:
        yield
    except LlmbError as failure:
        show_failure(app, failure)
    except Exception as error:  # noqa: BLE001 - a defect
        show_failure(app, _defect(error))


def show_failure(app: App[Any], error: LlmbError) -> None:
    """Have the app show the error in a dialog."""
    app.post_message(WorkFailed(error))


def _defect(error: Exception) -> InternalError:
    defect = InternalError("This should not have happened.", place_of(error))
    defect.__cause__ = error
    return defect
