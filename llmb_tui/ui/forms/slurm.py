"""`SlurmForm`: a cluster with Slurm, over SSH or on this machine, and its offers for the profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from llmb_tui.cluster.llmb.install import LlmbInstall, request_of, settings_of
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.slurm.profile import GpuRequest, SlurmProfile
from llmb_tui.cluster.slurm.profile_fields import EMPTY, MORE, REACH, USE, profile_of, reachable, slurm_texts_of
from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import duration, gigabytes
from llmb_tui.language.text import plural
from llmb_tui.services import Services
from llmb_tui.ui.forms.form import ProfileForm
from llmb_tui.ui.text import line, lines
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.wizard.choices import Choice

if TYPE_CHECKING:
    from llmb_tui.cluster.llmb.install import LlmbInventory
    from llmb_tui.cluster.slurm.inventory import ClusterInventory
    from llmb_tui.cluster.slurm.partition import Partition

_GPU_REQUESTS: tuple[tuple[GpuRequest, str], ...] = (
    ("gpus-per-node", "--gpus-per-node"),
    ("gres", "--gres=gpu"),
    ("none", "no request"),
)


class SlurmForm(ProfileForm[SlurmProfile, "tuple[ClusterInventory, LlmbInventory]"]):
    """Fields of a Slurm profile, and the way GPUs are requested."""

    REACH, USE, MORE = REACH, USE, MORE
    CONNECTION_HINT = "uses your ssh configuration"
    ROUTES: ClassVar[dict[str, str]] = {"ssh": "Slurm, through SSH", "local": "Slurm, on this machine"}

    def __init__(self, base: SlurmProfile | None) -> None:
        super().__init__(base or EMPTY, slurm_texts_of(base or EMPTY))
        self._requests = ChoiceList(self._pick_request, id="gpu-request")
        self._request_details: dict[str, str] = {}
        self._has_picked_request = False
        self._filled_in: dict[str, str] = {}
        """Values that the last read filled in, by field."""

    def extra_widgets(self) -> Iterable[Widget]:
        return Static("  request GPUs with", classes="name"), self._requests

    @property
    def route(self) -> str:
        return self.base.transport

    @property
    def connection(self) -> tuple[str, ...]:
        return self.base.transport, *super().connection

    def on_mount(self) -> None:
        self._choose_request(self.base.gpu_request)

    def reachable(self) -> SlurmProfile:
        return replace(reachable(self.base, self.texts), install_dir=self.texts["install_dir"])

    def profile(self) -> SlurmProfile:
        return profile_of(self.base, self.texts)

    def read(
        self, services: Services, profile: SlurmProfile, prompter: Prompter
    ) -> tuple[ClusterInventory, LlmbInventory]:
        """Read the offers of Slurm, and installations of llmb-run; an error with the latter does not fail the read."""
        # This import loads paramiko.
        from llmb_tui.cluster.llmb.install import LlmbInventory, find_installs

        inventory = services.clusters.inventory(profile, prompter)
        try:
            return inventory, find_installs(services.clusters.login_node(profile), profile.install_dir)
        except LlmbError as error:
            return inventory, LlmbInventory(errors=(error,))

    def show_offers(self, offers: tuple[ClusterInventory, LlmbInventory]) -> Content:
        inventory, llmb = offers
        for name, choices in with_llmb(field_choices(inventory), llmb.installs).items():
            self.fields[name].offer(choices)
        self._request_details = request_details(llmb.installs)
        likely = inventory.with_defaults(EMPTY)  # for fields without an answer
        if self._is_unanswered("partition") and not self._has_picked_request:
            self.base = replace(self.base, gpu_request=inventory.gpu_request or self._first_base.gpu_request)
        self._choose_request(self.base.gpu_request)
        for name in filter(self._is_unanswered, ("account", "partition", "install_dir")):
            self.fields[name].value = self._filled_in[name] = getattr(likely, name)
        return lines(line(("● ", "$text-success"), summary(inventory)), *llmb_lines(llmb))

    def forget(self) -> None:
        super().forget()
        if not self._has_picked_request:
            self.base = replace(self.base, gpu_request=self._first_base.gpu_request)
        for name in filter(self._is_unanswered, self._filled_in):
            self.fields[name].value = ""
        self._filled_in.clear()
        self._request_details.clear()
        self._choose_request(self.base.gpu_request)

    def choose_transport(self, value: str) -> None:
        self.base = replace(self.base, transport="local" if value == "local" else "ssh")
        self.forget_other_cluster()
        if value == "local" and not self.fields["name"].value:
            self.fields["name"].value = "local"
        for field in REACH[1:]:
            self.fields[field.name].display = value == "ssh"

    def _is_unanswered(self, name: str) -> bool:
        """Whether the user has not entered a value in the field; a saved cluster may name no partition."""
        if name == "partition" and self._first_base.name and not self._first_base.partition:
            return False
        return self.fields[name].value == self._filled_in.get(name, "")

    def _pick_request(self, value: str) -> None:
        self._has_picked_request = True
        self._choose_request(value)

    def _choose_request(self, value: str) -> None:
        request = next(request for request, _ in _GPU_REQUESTS if request == value)
        self.base = replace(self.base, gpu_request=request)
        details = self._request_details
        self._requests.show(tuple(Choice(key, text, details.get(key, "")) for key, text in _GPU_REQUESTS), value)


def llmb_lines(llmb: LlmbInventory) -> list[Content]:
    """Installations of llmb-run, and the configurations of it that cannot be used."""
    installs = [
        line(("● ", "$text-success"), f"{install.name} at {install.root}: its settings are offered below the fields")
        for install in llmb.installs
    ]
    return [*installs, *(line(("! ", "$text-warning"), f"{error.what} {error.why}") for error in llmb.errors)]


def summary(offers: ClusterInventory) -> str:
    """Summary of the offers in one line."""
    counts = [
        plural(len(offers.accounts), "account") if offers.accounts else "no accounts",
        plural(len(offers.partitions), "partition"),
        plural(len(offers.reservations), "reservation") if offers.reservations else "",
    ]
    return "connected: " + ", ".join(count for count in counts if count)


def field_choices(offers: ClusterInventory) -> dict[str, tuple[Choice, ...]]:
    """Choices by field of the profile, the most likely first."""
    accounts = sorted(offers.accounts, key=lambda account: account != offers.default_account)
    likely = offers.default_partition
    types = dict.fromkeys(
        gpus.type for part in offers.partitions for gpus in part.gpus if gpus.type and not gpus.model.is_slice
    )
    partitions = sorted(offers.partitions, key=lambda partition: (partition != likely, not partition.has_whole_gpus))
    return {
        "account": tuple(Choice(a, a, "default" if a == offers.default_account else "") for a in accounts),
        "partition": tuple(_partition(partition) for partition in partitions),
        "cpu_partition": tuple(Choice(name, name) for name in offers.cpu_partitions),
        "qos": tuple(Choice(name, name) for name in offers.qos),
        "gpu_type": tuple(Choice(name, name) for name in types),
        "reservation": tuple(Choice(name, name) for name in offers.reservations),
        "install_dir": tuple(
            Choice(place.path, place.path, "" if place.free_gb is None else f"{gigabytes(place.free_gb)} free")
            for place in offers.directories
        ),
    }


def with_llmb(
    choices: Mapping[str, tuple[Choice, ...]], installs: Iterable[LlmbInstall]
) -> dict[str, tuple[Choice, ...]]:
    """Put the values in configurations of llmb-run before the other choices, and mark them."""
    merged = dict(choices)
    for install in reversed(tuple(installs)):
        mark = f"in {_configuration(install)}"
        for name, value in settings_of(install).items():
            known = {choice.value: choice for choice in merged.get(name, ())}
            choice = known.pop(value, Choice(value, value))
            detail = f"{choice.detail}, {mark}" if choice.detail else mark
            merged[name] = (replace(choice, detail=detail), *known.values())
    return merged


def request_details(installs: Iterable[LlmbInstall]) -> dict[str, str]:
    """The configurations of llmb-run that use each GPU request, as text."""
    details: dict[str, str] = {}
    for install in installs:
        request, count = request_of(install)
        words = f"{count} per node, in {_configuration(install)}" if count else f"in {_configuration(install)}"
        details[request] = f"{details[request]}; {words}" if request in details else words
    return details


def _configuration(install: LlmbInstall) -> str:
    return f"llmb-run {install.release}'s configuration" if install.release else "llmb-run's configuration"


def _partition(partition: Partition) -> Choice:
    kinds = ", ".join(gpus.words for gpus in partition.gpus) or "no GPUs"
    limit = "" if partition.time_limit_s is None else f", at most {duration(partition.time_limit_s)}"
    down = None if partition.is_up else "down"
    return Choice(partition.name, partition.name, f"{plural(partition.nodes, 'node')}, {kinds}{limit}", down)
