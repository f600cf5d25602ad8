"""`ClusterEditor`: add a cluster or change a saved one, with values that are read from the cluster."""

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
from llmb_tui.ui.dialogs import ConfirmDialog
from llmb_tui.ui.forms.form import ProfileForm
from llmb_tui.ui.forms.forms import FORMS
from llmb_tui.ui.key_order import KeyOrder
from llmb_tui.ui.text import ERROR_MARK, MUTED, error_content, line, lines
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.ui.widgets.texts import Scroller
from llmb_tui.wizard.choices import Choice

_NOT_A_LOGIN_NODE = "no sbatch on this machine"
_OTHER_KIND = "only for a new cluster"


class ClusterEditor(Screen[ClusterProfile]):
    """Form of one profile; dismisses with the saved profile, or None. A profile contains no secrets."""

    HELP = """A cluster: its kind, how to reach it, and the options that its jobs need.
Slurm: the host may be a name from your ssh configuration, which then supplies port, user, keys and jump hosts.
Run:ai: the fields start with the recipe's environment variables (BASE_URL, APP_ID, PROJECT_NAME and others).
ctrl+r reads the cluster and lists its values below the fields, such as accounts, partitions and directories.
Values that you entered are kept."""
    CSS_PATH = "cluster_editor.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "read", "Connect and read", id="editor.read", tooltip="Connect and list its values"),
        Binding("ctrl+s", "save", "Save", id="editor.save", tooltip="Save the cluster and check it"),
        Binding("q,escape", "leave", "Leave", key_display="esc", id="editor.leave", tooltip="Leave without saving"),
    ]

    app = getters.app(KeyOrder)

    def __init__(self, services: Services, prompter: Prompter, base: ClusterProfile | None) -> None:
        super().__init__()
        self._services = services
        self._prompter = prompter
        self._saved_profile = base
        self._kinds = ChoiceList(self._choose_kind, id="transport")
        self._forms: dict[str, ProfileForm[Any, Any]] = {}
        self._is_saving = False
        for make_form in FORMS.values() if base is None else (FORMS[base.kind],):
            form = make_form(base)
            self._forms |= dict.fromkeys(form.ROUTES, form)
        self._kind = next(iter(self._forms.values())).route

    @property
    def form(self) -> ProfileForm[Any, Any]:
        """The visible form."""
        return self._forms[self._kind]

    def compose(self) -> ComposeResult:
        yield Static(line((" Cluster", "bold"), ("   ctrl+r: read · ctrl+s: save", MUTED)), id="title", markup=False)
        with Scroller(id="editor", can_focus=False):
            yield self._kinds
            yield self.form
        yield Static(id="fault", markup=False)
        yield KeyBar(show_command_palette=True)

    def on_mount(self) -> None:
        self._choose_kind(self._kind)
        if self._saved_profile is None:
            self._kinds.focus()
        else:
            self.form.fields["name"].focus_first()

    @on(Input.Submitted)
    def _field_submitted(self, event: Input.Submitted) -> None:
        """Go to the next field; after the last field of a connection, connect."""
        event.stop()
        if event.input.id == f"profile-{self.form.REACH[-1].name}":
            self.action_read()
        else:
            self.focus_next()

    @on(ChoiceList.Confirmed)
    def _choice_taken(self, event: ChoiceList.Confirmed) -> None:
        event.stop()
        self.focus_next()

    def action_read(self) -> None:
        form = self.form
        try:
            profile = form.reachable()
        except LlmbError as error:
            self._show_fault(error)
            return
        self._show_fault(None)
        form.show_status(line(("◐ connecting …", "$text-warning")))
        self._read(form, profile, form.connection)

    @background(group="save")
    async def action_save(self) -> None:
        """Save the profile; further key presses meanwhile have no effect."""
        if self._is_saving:
            return
        self._is_saving = True
        try:
            profile = self.form.profile()
            await run_in_thread(self._services.clusters.change, self._saved_profile, profile)
        except LlmbError as error:
            self._show_fault(error)
        else:
            self.dismiss(profile)
        finally:
            self._is_saving = False

    @background(group="leave", exclusive=True)
    async def action_leave(self) -> None:
        """Leave; unsaved changes need a confirmation."""
        if self._is_saving:
            return
        has_changed = any(form.is_mounted and form.has_changed for form in self._forms.values())
        question = line("Your changes are not saved. Leave without saving?")
        if not has_changed or await self.app.push_screen_wait(ConfirmDialog("Leave", question, "Leave", "Stay")):
            self.dismiss(None)

    @background(group="read", exclusive=True)
    async def _read(self, form: ProfileForm[Any, Any], profile: ClusterProfile, connection: tuple[str, ...]) -> None:
        """Read a cluster and offer its values, unless the fields of its connection have changed meanwhile."""
        focused = self.focused
        try:
            offers = await run_in_thread(form.read, self._services, profile, self._prompter)
        except LlmbError as error:
            if form.connection == connection:
                form.show_status(lines(line(("✗ could not read the cluster", "$text-error")), error_content(error)))
            return
        if form.connection != connection:
            return
        form.show_status(form.show_offers(offers))
        has_waited = self.focused is focused and not self.app.remaining_typing_s
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
        reasons = {key: None if key in self._forms else _OTHER_KIND for key in words}
        reasons["local"] = reasons["local"] or no_sbatch
        rows = (Choice(key, text, disabled_reason=reasons[key]) for key, text in words.items())
        self._kinds.show(tuple(rows), kind)

    def _show_fault(self, error: LlmbError | None) -> None:
        """Show an error below the form, and focus the field that causes it."""
        fault = self.query_one("#fault", Static)
        fault.update(line(ERROR_MARK) + error_content(error) if error else "")
        field = self.form.faulty_field(error) if error else None
        if field is not None:
            field.focus_first()
