"""`KeysDialog`: the keys that a plan may need: why, where to get one, where it lies, and a masked field to give it."""

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
    Choice("cluster", "keep it on the cluster only"),
    Choice("keyring", "keep it in this computer's keyring too"),
)
_KEYS = "ctrl+t tests it, ctrl+o takes the keyring's, ctrl+r removes it"


class KeysDialog(Dialog[None]):
    """What is typed goes over the connection into a file for the operator alone, and is forgotten here."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+t", "try", "Test", id="keys.test", tooltip="Ask whether the key that is on the cluster opens it"),
        Binding("ctrl+o", "fetch", "From the keyring", id="keys.keyring", tooltip="Use the key that the keyring keeps"),
        # Not ctrl+x, which cuts in the field: nobody is asked before a key is removed.
        Binding("ctrl+r", "forget", "Remove", id="keys.forget", tooltip="Remove it from the cluster and the keyring"),
    ]

    def __init__(
        self, services: Services, prompter: Prompter, request: RunRequest, wanted: SecretId | None = None
    ) -> None:
        super().__init__("Keys")
        self._wanted = wanted
        self._services = services
        self._prompter = prompter
        self._request = request
        self._needs: dict[str, SecretNeed] = {need.id: need for need in secrets_of(request)}
        self._states: dict[str, SecretState] = {}
        self._chosen = ""
        self._acting = False
        self._list = ChoiceList(self._choose, id="needs")
        self._keeping = ChoiceList(self._keep, id="keep")

    def body(self) -> ComposeResult:
        yield self._list
        with Scroller():
            yield Static(id="about-key", markup=False)
        yield Input(
            password=True, compact=True, placeholder="paste it here; enter tests it and puts it there", id="key"
        )
        yield Static(line((_KEYS, MUTED)), markup=False)
        yield self._keeping
        yield Static(id="said", markup=False)

    def on_mount(self) -> None:
        self._choose(self._wanted if self._wanted in self._needs else next(iter(self._needs), ""))
        self._keep("cluster")
        self._look()
        self.query_one("#key").focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 (Textual's)
        """One thing is done at a time: what is said is of that."""
        return None if self._acting and action in ("try", "fetch", "forget") else True

    @on(Input.Submitted, "#key")
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        if self._acting:
            return
        value, keep = event.value, self._keeping.chosen == "keyring"
        event.input.value = ""

        def give(session: Session, need: SecretNeed) -> str:
            test = try_secret(session, need, secret_of(need.id, value), self._services.sources)
            if test.result == "refused":
                return f"{test.words} It was not put on the cluster. {test.fix}".rstrip()
            said = give_secret(session, need.id, value, keep=keep)
            return f"{test.words} {said} {test.fix}".rstrip()

        if value.strip():
            self._act(give)

    def action_try(self) -> None:
        self._act(lambda session, need: try_secret(session, need, None, self._services.sources).words)

    def action_fetch(self) -> None:
        self._act(lambda session, need: give_secret(session, need.id, None, keep=False))

    def action_forget(self) -> None:
        self._act(lambda session, need: forget_secret(session, need.id))

    def _act(self, act: Callable[[Session, SecretNeed], str]) -> None:
        need = self._needs.get(self._chosen)
        if need is not None:
            self.workers.cancel_group(self, "look")
            self._set_acting(True)
            run_detached(self.app, self._do(lambda session: act(session, need)))

    async def _do(self, act: Callable[[Session], str]) -> None:
        """Also when the dialog is left meanwhile: what became of it is told then."""
        try:
            said = await self._ask(act)
        except LlmbError as error:
            if self.is_attached:
                self._say(error_content(error))
            else:
                show_failure(self.app, error)
        else:
            if not self.is_attached:
                notify(self.app, said)
        finally:
            self._set_acting(False)

    @background(group="look")
    async def _look(self) -> None:
        try:
            await self._ask(lambda _: "")
        except LlmbError as error:
            self._say(error_content(error))

    async def _ask(self, act: Callable[[Session], str]) -> str:
        """Do it in a thread, and look where the keys are then. Raises LlmbError."""
        self._say(line(("◐ asking the cluster …", MUTED)))

        def ask() -> tuple[str, tuple[SecretState, ...]]:
            session = self._services.clusters.login_node(self._request.profile)
            session.connect(self._prompter)
            return act(session), secret_states(session, keyring=True)

        said, states = await run_in_thread(ask)
        if self.is_attached:
            self._states = {state.id: state for state in states}
            self._say(line(said))
            self._choose(self._chosen)
        return said

    def _set_acting(self, acting: bool) -> None:
        self._acting = acting
        if self.is_attached:
            self.refresh_bindings()

    def _choose(self, secret_id: str) -> None:
        self._chosen = secret_id
        rows = tuple(Choice(need.id, need.title, self._where(need)) for need in self._needs.values())
        self._list.show(rows, secret_id)
        need = self._needs.get(secret_id)
        self.query_one("#about-key", Static).update(about(need) if need else line("This plan needs no key."))

    def _keep(self, where: str) -> None:
        self._keeping.show(_KEEPING, where)

    def _where(self, need: SecretNeed) -> str:
        state = self._states.get(need.id)
        kind = "needed" if need.required else "optional"
        if state is None:
            return kind
        places = [
            "on the cluster" if state.on_cluster else "",
            "one of your own is there" if state.own else "",
            "in the keyring" if state.in_keyring else "",
        ]
        return f"{kind}; {', '.join(place for place in places if place) or 'none is given'}"

    def _say(self, text: Content) -> None:
        self.query_one("#said", Static).update(text)


def about(need: SecretNeed) -> Content:
    """Why it matters, where to get one, how long that takes, and what becomes of it."""
    rows = [line(need.why), line(("get one   ", MUTED), need.where)]
    if need.how_long:
        rows.append(line(("takes     ", MUTED), need.how_long))
    rows.append(line(("It goes over the connection into a file that only you can read there.", MUTED)))
    return lines(*rows)
