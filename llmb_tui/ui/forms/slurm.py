"""`SlurmForm`: a cluster with Slurm, through SSH or on this machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from llmb_tui.cluster.profile_fields import EMPTY, MORE, REACH, USE, profile_of, reachable, texts_of
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.slurm.profile import GpuRequest, SlurmProfile
from llmb_tui.errors import Trouble
from llmb_tui.services import Services
from llmb_tui.ui.forms.form import ProfileForm
from llmb_tui.ui.profile_offers import offered, request_details, summary, with_llmb
from llmb_tui.ui.text import line, lines
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.wizard.choices import Choice

if TYPE_CHECKING:
    from llmb_tui.cluster.inventory import ClusterInventory
    from llmb_tui.cluster.llmb.find import LlmbInventory

_GPU_REQUESTS: tuple[tuple[GpuRequest, str], ...] = (
    ("gpus-per-node", "--gpus-per-node"),
    ("gres", "--gres=gpu"),
    ("none", "no request"),
)


class SlurmForm(ProfileForm[SlurmProfile, "tuple[ClusterInventory, LlmbInventory]"]):
    """Its fields, and how GPUs are asked for."""

    REACH, USE, MORE = REACH, USE, MORE
    HOW = "as ssh would, with your configuration"

    def __init__(self, base: SlurmProfile | None) -> None:
        super().__init__(base or EMPTY)
        self._requests = ChoiceList(self._choose_request, id="gpu-request")
        self._request_details: dict[str, str] = {}

    def beside(self) -> Iterable[Widget]:
        return Static("  GPUs asked with", classes="name"), self._requests

    def on_mount(self) -> None:
        self._choose_request(self.base.gpu_request)

    def texts_of(self, profile: SlurmProfile) -> dict[str, str]:
        return texts_of(profile)

    def reachable(self) -> SlurmProfile:
        return replace(reachable(self.base, self.texts), install_dir=self.texts["install_dir"])

    def profile(self) -> SlurmProfile:
        return profile_of(self.base, self.texts)

    def read(
        self, services: Services, profile: SlurmProfile, prompter: Prompter
    ) -> tuple[ClusterInventory, LlmbInventory]:
        """And what NVIDIA's own tools have there; not to know that is no reason to say nothing."""
        from llmb_tui.cluster.llmb.find import (
            LlmbInventory,
            find_installs,
        )  # opens the cluster room, which loads paramiko

        inventory = services.clusters.inventory(profile, prompter)
        try:
            return inventory, find_installs(services.clusters.login_node(profile), profile.install_dir)
        except Trouble as trouble:
            return inventory, LlmbInventory(troubles=(trouble,))

    def take(self, offers: tuple[ClusterInventory, LlmbInventory]) -> Content:
        inventory, llmb = offers
        for name, choices in with_llmb(offered(inventory), llmb.installs).items():
            self.fields[name].offer(choices)
        self._request_details = request_details(llmb.installs)
        self._choose_request(self.base.gpu_request)
        if not self.fields["partition"].value and inventory.gpu_request is not None:
            self._choose_request(inventory.gpu_request)
        self._fill(inventory)
        return lines([line(("● ", "$text-success"), summary(inventory)), *llmb_lines(llmb)])

    def choose_transport(self, value: str) -> None:
        self.base = replace(self.base, transport="local" if value == "local" else "ssh")
        if value == "local" and not self.fields["name"].value:
            self.fields["name"].value = "local"
        for field in REACH[1:]:
            self.fields[field.name].display = value == "ssh"

    def _fill(self, offers: ClusterInventory) -> None:
        """Put the likeliest answer where there is none."""
        likely = offers.with_defaults(EMPTY)
        for name in ("account", "partition", "install_dir"):
            field = self.fields[name]
            field.value = field.value or getattr(likely, name)

    def _choose_request(self, value: str) -> None:
        request = next(request for request, _ in _GPU_REQUESTS if request == value)
        self.base = replace(self.base, gpu_request=request)
        details = self._request_details
        self._requests.show(tuple(Choice(one, text, details.get(one, "")) for one, text in _GPU_REQUESTS), value)


def llmb_lines(llmb: LlmbInventory) -> list[Content]:
    """Where NVIDIA's own tools are installed, and which of their configurations cannot be used."""
    installs = [
        line(("● ", "$text-success"), f"{install.name} at {install.root}: its settings are offered, marked as its own")
        for install in llmb.installs
    ]
    return [*installs, *(line(("! ", "$text-warning"), f"{one.what} {one.why}") for one in llmb.troubles)]
