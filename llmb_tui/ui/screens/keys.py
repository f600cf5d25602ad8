"""`KeysDialog`: the keys that a plan may need: why, where to get one, where it lies, and a masked field to give it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, Static
from textual.worker import Worker, WorkerState

from llmb_tui.errors import Trouble
from llmb_tui.plan.plan import Plan
from llmb_tui.services import Services
from llmb_tui.ui.daemon import in_daemon
from llmb_tui.ui.dialogs import Dialog
from llmb_tui.ui.text import MUTED, line, lines, told
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.wizard.choices import Choice

if TYPE_CHECKING:
    from llmb_tui.launch.secret import SecretId, SecretNeed
    from llmb_tui.launch.secrets import SecretState
    from llmb_tui.plan.selection import Procedure

_KEEPING = (
    Choice("cluster", "keep it on the cluster only"),
    Choice("keyring", "keep it in this computer's keyring too"),
)


class KeysDialog(Dialog[None]):
    """What is typed goes over the connection into a file for the operator alone, and is forgotten here."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+t", "try", "Test", id="keys.test", tooltip="Ask whether the key that is on the cluster opens it"),
        Binding("ctrl+o", "fetch", "From the keyring", id="keys.keyring", tooltip="Use the key that the keyring keeps"),
        Binding("ctrl+x", "forget", "Remove", id="keys.forget", tooltip="Remove it from the cluster and the keyring"),
    ]

    def __init__(
        self,
        services: Services,
        profile_name: str,
        plan: Plan,
        procedure: Procedure = "direct",
        wanted: SecretId | None = None,
    ) -> None:
        super().__init__("Keys")
        self._wanted = wanted
        self._services = services
        self._profile_name = profile_name
        self._plan = plan
        self._procedure = procedure
        self._needs: tuple[SecretNeed, ...] = ()
        self._states: dict[str, SecretState] = {}
        self._chosen = ""
        self._list = ChoiceList(self._choose, id="needs")
        self._keeping = ChoiceList(self._keep, id="keep")

    def body(self) -> ComposeResult:
        """The keys; about the chosen one; the field for it; what came of it."""
        yield self._list
        yield Static(id="about-key", markup=False)
        yield Input(
            password=True, compact=True, placeholder="paste it here; enter tests it and puts it there", id="key"
        )
        yield self._keeping
        yield Static(id="said", markup=False)

    def on_mount(self) -> None:
        """Which keys matter is known at once; where they are is asked."""
        self._needs = self._services.secrets_needed(self._plan, self._procedure)
        first = self._needs[0].id if self._needs else ""
        self._choose(next((need.id for need in self._needs if need.id == self._wanted), first))
        self._keep("cluster")
        self._work(lambda: "")
        self.query_one("#key").focus()

    @on(Input.Submitted, "#key")
    def _given(self, event: Input.Submitted) -> None:
        """Test it, and put it on the cluster unless it is refused."""
        event.stop()
        need, value, keep = self._need(), event.value, self._keeping.chosen == "keyring"
        event.input.value = ""
        services, name = self._services, self._profile_name
        if need is None or not value.strip():
            return

        def give() -> str:
            test = services.test_secret(name, need, value)
            if test.result == "refused":
                return f"{test.words} It was not put on the cluster. {test.fix}".rstrip()
            said = services.give_secret(name, need.id, value, keep=keep)
            return f"{test.words} {said} {test.fix}".rstrip()

        self._work(give)

    def action_try(self) -> None:
        """Test what is on the cluster."""
        need = self._need()
        if need is not None:
            self._work(lambda: self._services.test_secret(self._profile_name, need).words)

    def action_fetch(self) -> None:
        """Put the keyring's key on the cluster."""
        self._act(lambda need: self._services.give_secret(self._profile_name, need.id, None))

    def action_forget(self) -> None:
        """Remove the key everywhere."""
        self._act(lambda need: self._services.forget_secret(self._profile_name, need.id))

    def _act(self, act: Callable[[SecretNeed], str]) -> None:
        need = self._need()
        if need is not None:
            self._work(lambda: act(need))

    def _work(self, call: Callable[[], str]) -> None:
        """Do it in a thread, then look where the keys are now."""
        self._say(line(("◐ asking the cluster …", MUTED)))
        services, name = self._services, self._profile_name
        self.run_worker(in_daemon(lambda: (call(), services.secret_states(name))), exclusive=True, exit_on_error=False)

    @on(Worker.StateChanged)
    def _worked(self, event: Worker.StateChanged) -> None:
        event.stop()
        if event.state is WorkerState.ERROR:
            error = event.worker.error
            trouble = error if isinstance(error, Trouble) else Trouble("This should not have happened.", repr(error))
            self._say(told(trouble))
        elif event.state is WorkerState.SUCCESS and event.worker.result is not None:
            said, states = event.worker.result
            self._states = {state.id: state for state in states}
            self._say(line(said))
            self._choose(self._chosen)

    def _need(self) -> SecretNeed | None:
        return next((need for need in self._needs if need.id == self._chosen), None)

    def _choose(self, secret_id: str) -> None:
        self._chosen = secret_id
        rows = tuple(Choice(need.id, need.title, self._where(need)) for need in self._needs)
        self._list.show(rows, secret_id)
        need = self._need()
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
    return lines(rows)
