"""`KeysDialog`: the API keys of a plan: purpose, source, places of storage, and a masked field to enter one."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, Static

from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.session import Session
from llmb_tui.errors import LlmbError
from llmb_tui.launch.procedure_loader import secrets_of
from llmb_tui.launch.secrets import forget_secret, give_secret
from llmb_tui.preflight.access import SecretState, secret_states, try_secret
from llmb_tui.preflight.secret import SecretId, SecretNeed, secret_of
from llmb_tui.request import RunRequest
from llmb_tui.services import Services
from llmb_tui.ui.background import background, run_detached, run_in_thread, show_failure
from llmb_tui.ui.dialogs import Dialog
from llmb_tui.ui.text import MUTED, error_content, line, lines, notify
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.texts import Scroller
from llmb_tui.wizard.choices import Choice

_KEEPING = (
    Choice("cluster", "store on the cluster only"),
    Choice("keyring", "store in this computer's keyring too"),
)
_KEYS = "ctrl+t: test · ctrl+o: use the keyring's · ctrl+r: remove"


class KeysDialog(Dialog[None]):
    """Sends the typed API key to a file on the cluster that only the operator can read, and keeps no copy."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+t", "test", "Test", id="keys.test", tooltip="Test the API key on the cluster"),
        Binding("ctrl+o", "use_keyring", "Use keyring", id="keys.keyring", tooltip="Use the API key from the keyring"),
        # Not ctrl+x, which cuts text in the field: an API key is removed without a question.
        Binding("ctrl+r", "remove", "Remove", id="keys.forget", tooltip="Remove the API key from cluster and keyring"),
    ]

    def __init__(
        self, services: Services, prompter: Prompter, request: RunRequest, wanted: SecretId | None = None
    ) -> None:
        super().__init__("API keys")
        self._first_need = wanted
        self._services = services
        self._prompter = prompter
        self._request = request
        self._needs: dict[str, SecretNeed] = {need.id: need for need in secrets_of(request)}
        self._states: dict[str, SecretState] = {}
        self._chosen = ""
        self._is_busy = False
        self._list = ChoiceList(self._choose, id="needs")
        self._keeping = ChoiceList(self._keep, id="keep")

    def body(self) -> ComposeResult:
        yield self._list
        with Scroller():
            yield Static(id="about-key", markup=False)
        hint = "paste the API key here · enter: test and store"
        yield Input(password=True, compact=True, placeholder=hint, id="key")
        yield Static(line((_KEYS, MUTED)), markup=False)
        yield self._keeping
        yield Static(id="key-status", markup=False)

    def on_mount(self) -> None:
        self._choose(self._first_need if self._first_need in self._needs else next(iter(self._needs), ""))
        self._keep("cluster")
        self._refresh()
        self.query_one("#key").focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 (Textual's)
        """One action at a time, so that the message belongs to it."""
        return None if self._is_busy and action in ("test", "use_keyring", "remove") else True

    @on(Input.Submitted, "#key")
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        if self._is_busy:
            return
        value, keep = event.value, self._keeping.chosen == "keyring"
        event.input.value = ""

        def give(session: Session, need: SecretNeed) -> str:
            test = try_secret(session, need, secret_of(need.id, value), self._services.sources)
            if test.result == "refused":
                return f"{test.words} It was not stored on the cluster. {test.fix}".rstrip()
            message = give_secret(session, need.id, value, keep=keep)
            return f"{test.words} {message} {test.fix}".rstrip()

        if value.strip():
            self._start(give)

    def action_test(self) -> None:
        self._start(lambda session, need: try_secret(session, need, None, self._services.sources).words)

    def action_use_keyring(self) -> None:
        self._start(lambda session, need: give_secret(session, need.id, None, keep=False))

    def action_remove(self) -> None:
        self._start(lambda session, need: forget_secret(session, need.id))

    def _start(self, act: Callable[[Session, SecretNeed], str]) -> None:
        need = self._needs.get(self._chosen)
        if need is not None:
            self.workers.cancel_group(self, "look")
            self._set_busy(True)
            run_detached(self.app, self._run_action(lambda session: act(session, need)))

    async def _run_action(self, act: Callable[[Session], str]) -> None:
        """Run an action; if the dialog has been closed, report the result over the screen below."""
        try:
            message = await self._run_and_refresh(act)
        except LlmbError as error:
            if self.is_attached:
                self._show_status(error_content(error))
            else:
                show_failure(self.app, error)
        else:
            if not self.is_attached:
                notify(self.app, message)
        finally:
            self._set_busy(False)

    @background(group="look")
    async def _refresh(self) -> None:
        try:
            await self._run_and_refresh(lambda _: "")
        except LlmbError as error:
            self._show_status(error_content(error))

    async def _run_and_refresh(self, act: Callable[[Session], str]) -> str:
        """Run an action in a thread, then show where the API keys are. Raises LlmbError."""
        self._show_status(line(("◐ asking the cluster …", MUTED)))

        def ask() -> tuple[str, tuple[SecretState, ...]]:
            session = self._services.clusters.login_node(self._request.profile)
            session.connect(self._prompter)
            return act(session), secret_states(session, keyring=True)

        message, states = await run_in_thread(ask)
        if self.is_attached:
            self._states = {state.id: state for state in states}
            self._show_status(line(message))
            self._choose(self._chosen)
        return message

    def _set_busy(self, acting: bool) -> None:
        self._is_busy = acting
        if self.is_attached:
            self.refresh_bindings()

    def _choose(self, secret_id: str) -> None:
        self._chosen = secret_id
        rows = tuple(Choice(need.id, need.title, self._place_words(need)) for need in self._needs.values())
        self._list.show(rows, secret_id)
        need = self._needs.get(secret_id)
        self.query_one("#about-key", Static).update(about(need) if need else line("This plan needs no API key."))

    def _keep(self, where: str) -> None:
        self._keeping.show(_KEEPING, where)

    def _place_words(self, need: SecretNeed) -> str:
        state = self._states.get(need.id)
        kind = "needed" if need.required else "optional"
        if state is None:
            return kind
        places = [
            "on the cluster" if state.on_cluster else "",
            "your own file on the cluster" if state.own else "",
            "in the keyring" if state.in_keyring else "",
        ]
        return f"{kind}; {', '.join(place for place in places if place) or 'not set'}"

    def _show_status(self, text: Content) -> None:
        self.query_one("#key-status", Static).update(text)


def about(need: SecretNeed) -> Content:
    """Purpose of an API key, its source, the time to get one, and its place on the cluster."""
    rows = [line(need.why), line(("get it    ", MUTED), need.where)]
    if need.how_long:
        rows.append(line(("takes     ", MUTED), need.how_long))
    rows.append(line(("It is stored in a file on the cluster that only you can read.", MUTED)))
    return lines(*rows)
