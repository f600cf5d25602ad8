"""`ClusterEditor`: enter a cluster or change a saved one. What the cluster can say itself is offered, not typed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, Static

from llmb_tui.cluster.profile_fields import (
    EMPTY,
    FIELDS,
    MORE,
    REACH,
    USE,
    field_at_fault,
    profile_of,
    reachable,
    texts_of,
)
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.slurm.profile import GpuRequest, SlurmProfile
from llmb_tui.errors import Trouble
from llmb_tui.services import Services
from llmb_tui.ui.daemon import in_daemon
from llmb_tui.ui.panes.pane import label
from llmb_tui.ui.profile_offers import offered, request_details, summary, with_llmb
from llmb_tui.ui.text import MUTED, line, lines, told
from llmb_tui.ui.widgets.choices import ChoiceList, Combo
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.ui.widgets.texts import Scroller
from llmb_tui.wizard.choices import Choice

if TYPE_CHECKING:
    from llmb_tui.cluster.inventory import ClusterInventory
    from llmb_tui.cluster.llmb.find import LlmbInventory

_GPU_REQUESTS: tuple[tuple[GpuRequest, str], ...] = (
    ("gpus-per-node", "--gpus-per-node"),
    ("gres", "--gres=gpu"),
    ("none", "no request"),
)
_NOT_A_LOGIN_NODE = "no sbatch here"


def read(services: Services, profile: SlurmProfile, prompter: Prompter) -> tuple[ClusterInventory, LlmbInventory]:
    """What a cluster offers, and what NVIDIA's own tools have there; not to know that is no reason to say nothing.

    Raises Trouble.
    """
    from llmb_tui.cluster.llmb.find import LlmbInventory, find_installs  # noqa: PLC0415 - opens the cluster room, which loads paramiko

    inventory = services.clusters.inventory(profile, prompter)
    try:
        return inventory, find_installs(services.clusters.login_node(profile), profile.install_dir)
    except Trouble as trouble:
        return inventory, LlmbInventory(troubles=(trouble,))


class ClusterEditor(Screen[SlurmProfile | None]):
    """One profile. Its answer is the saved profile, or None. No password is in it: the connection asks for one."""

    HELP = """Where runs go: how to reach the login node, and what a job must ask for there.
Host may be a name of your ssh configuration: port, user, keys and jump hosts are then taken from it.
Once the cluster was read, accounts, partitions and directories are offered below their fields, and what the
configuration of NVIDIA's llmb-run says, where it is installed. Nothing that you entered is changed."""
    CSS_PATH = "cluster_editor.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "read", "Connect and read", id="editor.read", tooltip="Ask the cluster what it offers"),
        Binding("ctrl+s", "save", "Save", id="editor.save", tooltip="Save the cluster and check it"),
        Binding("escape", "leave", "Leave", id="editor.leave", tooltip="Leave without saving"),
    ]

    def __init__(self, services: Services, prompter: Prompter, base: SlurmProfile | None) -> None:
        super().__init__()
        self._services = services
        self._prompter = prompter
        self._read_before = base
        self._base = base or EMPTY
        self._fields = {field.name: Combo(field.name, field.title, field.hint) for field in FIELDS}
        self._requests = ChoiceList(self._choose_request, id="gpu-request")
        self._request_details: dict[str, str] = {}
        self._transports = ChoiceList(self._choose_transport, id="transport")

    def compose(self) -> ComposeResult:
        yield Static(line((" Cluster", "bold"), ("   ctrl+r reads it, ctrl+s saves", MUTED)), id="title", markup=False)
        with Scroller(id="editor", can_focus=False):
            yield label("Reach it", "as ssh would, with your configuration")
            yield self._transports
            for field in REACH:
                yield self._fields[field.name]
            yield Static(id="read", markup=False)
            yield label("Use it")
            for field in USE:
                yield self._fields[field.name]
            yield Static("  GPUs asked with", classes="name")
            yield self._requests
            yield label("Where the site needs it", "empty is right for most")
            for field in MORE:
                yield self._fields[field.name]
        yield Static(id="fault", markup=False)
        yield KeyBar(compact=True)

    def on_mount(self) -> None:
        for name, text in texts_of(self._base).items():
            self._fields[name].value = text
        self._choose_request(self._base.gpu_request)
        self._choose_transport(self._base.transport)
        self._say(line(("○ not read yet: ctrl+r", MUTED)))
        self._fields["name"].arrive()

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        """Enter goes to the next field; after the last one that a connection needs it connects."""
        event.stop()
        if event.input.id == f"profile-{REACH[-1].name}":
            self.action_read()
        else:
            self.focus_next()

    @on(ChoiceList.Taken)
    def _taken(self, event: ChoiceList.Taken) -> None:
        event.stop()
        self.focus_next()

    def action_read(self) -> None:
        try:
            texts = self._texts()
            profile = replace(reachable(self._base, texts), install_dir=texts["install_dir"])
        except Trouble as trouble:
            self._blame(trouble)
            return
        self._blame(None)
        self._say(line(("◐ connecting …", "$text-warning")))
        self._read(profile)

    @work(group="save", exclusive=True, exit_on_error=False)
    async def action_save(self) -> None:
        try:
            profile = profile_of(self._base, self._texts())
            await in_daemon(self._services.clusters.change, self._read_before, profile)
        except Trouble as trouble:
            self._blame(trouble)
        else:
            self.dismiss(profile)

    def action_leave(self) -> None:
        self.dismiss(None)

    @work(group="read", exclusive=True, exit_on_error=False)
    async def _read(self, profile: SlurmProfile) -> None:
        try:
            inventory, llmb = await in_daemon(read, self._services, profile, self._prompter)
        except Trouble as trouble:
            self._say(lines([line(("✗ it could not be read", "$text-error")), told(trouble)]))
        else:
            self._offer(inventory, llmb)

    def _offer(self, offers: ClusterInventory, llmb: LlmbInventory) -> None:
        self._say(lines([line(("● ", "$text-success"), summary(offers)), *llmb_lines(llmb)]))
        for name, choices in with_llmb(offered(offers), llmb.installs).items():
            self._fields[name].offer(choices)
        self._request_details = request_details(llmb.installs)
        self._choose_request(self._base.gpu_request)
        if not self._fields["partition"].value and offers.gpu_request is not None:
            self._choose_request(offers.gpu_request)
        self._fill(offers)
        if any(self._fields[field.name].has_focus_within for field in REACH):
            self._fields[USE[0].name].arrive()

    def _fill(self, offers: ClusterInventory) -> None:
        """Put the likeliest answer where there is none."""
        likely = offers.with_defaults(EMPTY)
        for name in ("account", "partition", "install_dir"):
            field = self._fields[name]
            field.value = field.value or getattr(likely, name)

    def _texts(self) -> dict[str, str]:
        return {name: field.value for name, field in self._fields.items()}

    def _choose_request(self, value: str) -> None:
        request = next(request for request, _ in _GPU_REQUESTS if request == value)
        self._base = replace(self._base, gpu_request=request)
        details = self._request_details
        self._requests.show(tuple(Choice(one, text, details.get(one, "")) for one, text in _GPU_REQUESTS), value)

    def _choose_transport(self, value: str) -> None:
        self._base = replace(self._base, transport="local" if value == "local" else "ssh")
        local_reason = None if shutil.which("sbatch") or value == "local" else _NOT_A_LOGIN_NODE
        local = Choice("local", "this machine is the login node", disabled_reason=local_reason)
        self._transports.show((Choice("ssh", "through SSH"), local), value)
        if value == "local" and not self._fields["name"].value:
            self._fields["name"].value = "local"
        for field in REACH[1:]:
            self._fields[field.name].display = value == "ssh"

    def _say(self, text: Content) -> None:
        self.query_one("#read", Static).update(text)

    def _blame(self, trouble: Trouble | None) -> None:
        """Show what is wrong below the form, and put the focus where it can be mended."""
        fault = self.query_one("#fault", Static)
        fault.update(line(("✗ ", "$text-error")) + told(trouble) if trouble else "")
        name = field_at_fault(trouble) if trouble else None
        if name is not None:
            self._fields[name].arrive()


def llmb_lines(llmb: LlmbInventory) -> list[Content]:
    """Where NVIDIA's own tools are installed, and which of their configurations cannot be used."""
    installs = [
        line(("● ", "$text-success"), f"{install.name} at {install.root}: its settings are offered, marked as its own")
        for install in llmb.installs
    ]
    return [*installs, *(line(("! ", "$text-warning"), f"{one.what} {one.why}") for one in llmb.troubles)]
