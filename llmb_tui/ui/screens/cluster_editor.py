"""`ClusterEditor`: enter a cluster or change a saved one. What the cluster can say itself is offered, not typed."""

from __future__ import annotations

import shutil
from typing import Any, ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input, Static

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.errors import LlmbError
from llmb_tui.services import Services
from llmb_tui.ui.background import background, run_in_thread
from llmb_tui.ui.dialogs import Confirm
from llmb_tui.ui.forms.form import ProfileForm
from llmb_tui.ui.forms.forms import FORMS
from llmb_tui.ui.key_order import KeyOrder
from llmb_tui.ui.text import ERROR_MARK, MUTED, error_content, line, lines
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.ui.widgets.texts import Scroller
from llmb_tui.wizard.choices import Choice

_NOT_A_LOGIN_NODE = "no sbatch here"
_OTHER_KIND = "n enters another kind"


class ClusterEditor(Screen[ClusterProfile]):
    """One profile. Its answer is the saved profile, or None. No secret is in it: the connection asks for one."""

    HELP = """Where runs go: of which kind the cluster is, how to reach it, and what a job must ask for there.
Of Slurm, host may be a name of your ssh configuration: port, user, keys and jump hosts are then taken from it.
Of Run:ai, fields begin with what the recipe's variables say (BASE_URL, APP_ID, PROJECT_NAME and so on).
Once the cluster was read, what it has is offered below the fields: accounts, partitions and directories, what the
configuration of NVIDIA's llmb-run says, or node pools, claims and credentials. Nothing that you entered is changed."""
    CSS_PATH = "cluster_editor.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "read", "Connect and read", id="editor.read", tooltip="Ask the cluster what it offers"),
        Binding("ctrl+s", "save", "Save", id="editor.save", tooltip="Save the cluster and check it"),
        Binding("q,escape", "leave", "Leave", key_display="esc", id="editor.leave", tooltip="Leave without saving"),
    ]

    app = getters.app(KeyOrder)

    def __init__(self, services: Services, prompter: Prompter, base: ClusterProfile | None) -> None:
        super().__init__()
        self._services = services
        self._prompter = prompter
        self._read_before = base
        self._kinds = ChoiceList(self._choose_kind, id="transport")
        self._forms: dict[str, ProfileForm[Any, Any]] = {}
        self._is_saving = False
        for make_form in FORMS.values() if base is None else (FORMS[base.kind],):
            form = make_form(base)
            self._forms |= dict.fromkeys(form.ROUTES, form)
        self._kind = next(iter(self._forms.values())).route

    @property
    def form(self) -> ProfileForm[Any, Any]:
        """The one that is shown."""
        return self._forms[self._kind]

    def compose(self) -> ComposeResult:
        yield Static(line((" Cluster", "bold"), ("   ctrl+r reads it, ctrl+s saves", MUTED)), id="title", markup=False)
        with Scroller(id="editor", can_focus=False):
            yield self._kinds
            yield self.form
        yield Static(id="fault", markup=False)
        yield KeyBar(show_command_palette=True)

    def on_mount(self) -> None:
        self._choose_kind(self._kind)
        if self._read_before is None:
            self._kinds.focus()
        else:
            self.form.fields["name"].focus_first()

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        """Enter goes to the next field; after the last one that a connection needs it connects."""
        event.stop()
        if event.input.id == f"profile-{self.form.REACH[-1].name}":
            self.action_read()
        else:
            self.focus_next()

    @on(ChoiceList.Taken)
    def _taken(self, event: ChoiceList.Taken) -> None:
        event.stop()
        self.focus_next()

    def action_read(self) -> None:
        form = self.form
        try:
            profile = form.reachable()
        except LlmbError as error:
            self._blame(error)
            return
        self._blame(None)
        form.say(line(("◐ connecting …", "$text-warning")))
        self._read(form, profile, form.reach)

    @background(group="save")
    async def action_save(self) -> None:
        """Once, however often the key comes meanwhile."""
        if self._is_saving:
            return
        self._is_saving = True
        try:
            profile = self.form.profile()
            await run_in_thread(self._services.clusters.change, self._read_before, profile)
        except LlmbError as error:
            self._blame(error)
        else:
            self.dismiss(profile)
        finally:
            self._is_saving = False

    @background(group="leave", exclusive=True)
    async def action_leave(self) -> None:
        """What was entered is lost then: that takes a second key."""
        if self._is_saving:
            return
        lost = any(form.is_mounted and form.has_changed for form in self._forms.values())
        question = line("What you entered here is not saved, and is lost when you leave.")
        if not lost or await self.app.push_screen_wait(Confirm("Leave", question, "Leave", "Stay")):
            self.dismiss(None)

    @background(group="read", exclusive=True)
    async def _read(self, form: ProfileForm[Any, Any], profile: ClusterProfile, asked: tuple[str, ...]) -> None:
        """What comes of a cluster that is not the entered one any more is dropped; the form has said so."""
        focused = self.focused
        try:
            offers = await run_in_thread(form.read, self._services, profile, self._prompter)
        except LlmbError as error:
            if form.reach == asked:
                form.say(lines(line(("✗ it could not be read", "$text-error")), error_content(error)))
            return
        if form.reach != asked:
            return
        form.say(form.take(offers))
        has_waited = self.focused is focused and not self.app.types_for_s
        if has_waited and any(form.fields[field.name].has_focus_within for field in form.REACH):
            form.fields[form.USE[0].name].focus_first()

    def _choose_kind(self, kind: str) -> None:
        before, self._kind = self.form, kind
        if not self.form.is_attached:
            self.query_one("#editor").mount(self.form)
        before.display, self.form.display = False, True
        self.form.choose_transport(kind)
        words = {key: text for form in FORMS.values() for key, text in form.ROUTES.items()}
        no_sbatch = None if shutil.which("sbatch") or kind == "local" else _NOT_A_LOGIN_NODE
        reasons = {one: None if one in self._forms else _OTHER_KIND for one in words}
        reasons["local"] = reasons["local"] or no_sbatch
        rows = (Choice(one, text, disabled_reason=reasons[one]) for one, text in words.items())
        self._kinds.show(tuple(rows), kind)

    def _blame(self, error: LlmbError | None) -> None:
        """Show what is wrong below the form, and put the focus where it can be mended."""
        fault = self.query_one("#fault", Static)
        fault.update(line(ERROR_MARK) + error_content(error) if error else "")
        field = self.form.at_fault(error) if error else None
        if field is not None:
            field.focus_first()
