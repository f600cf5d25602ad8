"""`ClusterForm`: the fields of a cluster profile, to enter a new one or change a saved one."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Static

from llmb_tui.cluster.profile import ClusterProfile, GpuRequest
from llmb_tui.ui.panes.pane import label
from llmb_tui.ui.text import line
from llmb_tui.ui.widgets.choices import ChoiceList, Field
from llmb_tui.wizard.choices import Choice

# (name of the profile's field, label, hint)
_FIELDS = (
    ("name", "name", "as you call it"),
    ("host", "host", "login node"),
    ("port", "port", "22"),
    ("user", "user", "empty: your own"),
    ("identity_file", "identity file", "empty: agent, defaults"),
    ("account", "account", ""),
    ("partition", "partition", ""),
    ("install_dir", "install directory", "/shared/path"),
)
_TITLES = {name: title for name, title, _ in _FIELDS}
_GPU_REQUESTS: tuple[tuple[GpuRequest, str], ...] = (
    ("gpus-per-node", "--gpus-per-node"),
    ("gres", "--gres=gpu"),
    ("none", "no request"),
)


class ClusterForm(Vertical):
    """Enter or change one profile. It holds no password: the connection asks when it needs one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "Save and connect", id="form.save", tooltip="Save the cluster and connect to it"),
        Binding("escape", "close", "Cancel", id="form.close", tooltip="Leave the form as it was"),
    ]

    class Saved(Message):
        """The person wants this profile to be saved and used. The form stays until it is."""

        def __init__(self, profile: ClusterProfile) -> None:
            super().__init__()
            self.profile = profile

    class Closed(Message):
        """The person leaves the form."""

    def __init__(self) -> None:
        super().__init__(id="cluster-form")
        self._base: ClusterProfile | None = None
        self._request: GpuRequest = "gpus-per-node"
        self._inputs = {name: Field(self._typed, placeholder=hint, id=f"profile-{name}") for name, _, hint in _FIELDS}
        self._requests = ChoiceList(self._choose, id="gpu-request")
        self._fault = Static(id="form-fault", markup=False)

    def compose(self) -> ComposeResult:
        """One line for each field."""
        yield label("Cluster", "ctrl+s saves, escape leaves")
        for name, title, _ in _FIELDS:
            with Horizontal(classes="field"):
                yield Static(f"  {title}", classes="name")
                yield self._inputs[name]
        with Horizontal(classes="field tall"):
            yield Static("  GPUs asked with", classes="name")
            yield self._requests
        yield self._fault

    def fill(self, profile: ClusterProfile | None) -> None:
        """Start from a saved profile, or empty."""
        self._base = profile
        for name, field in self._inputs.items():
            value = getattr(profile, name) if profile else None
            field.value = "" if value is None else str(value)
        self._choose(profile.gpu_request if profile else "gpus-per-node")
        self._fault.update("")

    def arrive(self) -> None:
        """Put the focus on the first field."""
        self._inputs["name"].focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes to the next field."""
        event.stop()
        self.screen.focus_next()

    def on_choice_list_taken(self, event: ChoiceList.Taken) -> None:
        """Enter at the last field saves."""
        event.stop()
        self.action_save()

    def action_save(self) -> None:
        """Hand the profile on, or say what is missing."""
        text = {name: field.value.strip() for name, field in self._inputs.items()}
        fault = _fault(text)
        if fault:
            name, reason = fault
            self._fault.update(line(("✗ ", "$text-error"), reason))
            self._inputs[name].focus()
            return
        self.post_message(self.Saved(self._profile(text)))

    def action_close(self) -> None:
        """Leave without saving."""
        self.post_message(self.Closed())

    def _profile(self, text: dict[str, str]) -> ClusterProfile:
        base = self._base or ClusterProfile("", "", "", "", "")
        return replace(
            base,
            name=text["name"],
            host=text["host"],
            account=text["account"],
            partition=text["partition"],
            install_dir=text["install_dir"],
            port=int(text["port"]) if text["port"] else None,
            user=text["user"] or None,
            identity_file=text["identity_file"] or None,
            gpu_request=self._request,
        )

    def _typed(self, _text: str) -> None:
        self._fault.update("")

    def _choose(self, value: str) -> None:
        self._request = next(request for request, _ in _GPU_REQUESTS if request == value)
        self._requests.show(tuple(Choice(value, text) for value, text in _GPU_REQUESTS), value)


def _fault(text: dict[str, str]) -> tuple[str, str] | None:
    """The first field that cannot be saved, and why."""
    for name in ("name", "host", "account", "partition", "install_dir"):
        if not text[name]:
            return name, f"{_TITLES[name]} is needed."
    if text["port"] and not (text["port"].isdecimal() and 0 < int(text["port"]) < 65536):
        return "port", "The port is a number from 1 to 65535."
    if not text["install_dir"].startswith("/"):
        return "install_dir", "The install directory is an absolute path, such as /lustre/you/llmb."
    return None
