"""`ProfileForm`: the fields of one kind of cluster profile, with the values that the cluster offers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.profile_fields import ProfileField, field_at_fault
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.errors import LlmbError
from llmb_tui.services import Services
from llmb_tui.ui.text import MUTED, line
from llmb_tui.ui.widgets.choices import Combo
from llmb_tui.ui.widgets.texts import label

P = TypeVar("P", bound=ClusterProfile)
O = TypeVar("O")  # noqa: E741 - type of the offers


NOT_READ = line(("○ not connected   ctrl+r: connect", MUTED))


class ProfileForm(Vertical, Generic[P, O]):
    """Form of one kind of cluster. `read` asks the cluster for its offers in a thread, and `show_offers` shows them.

    The offers are dropped when the user enters another host: they do not apply to it.
    """

    DEFAULT_CSS = """
    ProfileForm { height: auto; }
    ProfileForm > .name { color: $text-muted; }
    ProfileForm > ChoiceList { margin-left: 20; }
    """
    REACH: ClassVar[tuple[ProfileField, ...]]
    USE: ClassVar[tuple[ProfileField, ...]]
    MORE: ClassVar[tuple[ProfileField, ...]]
    CONNECTION_HINT: ClassVar[str]
    """Hint about the connection."""
    ROUTES: ClassVar[dict[str, str]]
    """Choices of kind and transport that open this form, by id, with their labels; the first is the default."""

    def __init__(self, base: P, texts: dict[str, str]) -> None:
        """`texts`: initial texts of the fields, by name."""
        super().__init__()
        self.base = self._first_base = base
        self._first_texts = texts
        self._status_connection: tuple[str, ...] | None = None
        """The `connection` that the status line is about; None if nothing was read."""
        self.fields = {
            field.name: Combo(field.name, field.title, field.hint) for field in (*self.REACH, *self.USE, *self.MORE)
        }

    def compose(self) -> ComposeResult:
        yield label("Connection", self.CONNECTION_HINT)
        yield from self._combos(self.REACH)
        yield Static(id="read", markup=False)
        yield label("Jobs")
        yield from self._combos(self.USE)
        yield from self.extra_widgets()
        yield label("Advanced", "usually empty")
        yield from self._combos(self.MORE)

    def on_mount(self) -> None:
        for name, text in self._first_texts.items():
            self.fields[name].value = text
        self.show_status(NOT_READ)

    @property
    def texts(self) -> dict[str, str]:
        return {name: field.value for name, field in self.fields.items()}

    @property
    def connection(self) -> tuple[str, ...]:
        """The values that decide which cluster is reached; its name in this program does not."""
        return tuple(self.fields[field.name].value for field in self.REACH[1:])

    @property
    def has_changed(self) -> bool:
        """Whether the user entered a value or picked an offer."""
        return self.base != self._first_base or self.texts != {**dict.fromkeys(self.fields, ""), **self._first_texts}

    def show_status(self, text: Content) -> None:
        """Show the status of reading the cluster that is entered now."""
        self._status_connection = None if text is NOT_READ else self.connection
        self.query_one("#read", Static).update(text)

    @on(Input.Changed)
    def forget_other_cluster(self) -> None:
        """Drop the offers or the error of a cluster when the user enters a different cluster."""
        if self._status_connection not in (None, self.connection):
            self.forget()
            self.show_status(NOT_READ)

    def faulty_field(self, error: LlmbError) -> Combo | None:
        name = field_at_fault(error, (*self.REACH, *self.USE, *self.MORE))
        return None if name is None else self.fields[name]

    @property
    def route(self) -> str:
        """The chosen key of `ROUTES`."""
        return next(iter(self.ROUTES))

    def choose_transport(self, value: str) -> None:
        """Switch to another transport of the same kind of cluster."""

    def extra_widgets(self) -> Iterable[Widget]:
        """Widgets for values that have no text field."""
        return ()

    @abstractmethod
    def reachable(self) -> P:
        """Make a profile that is sufficient for a connection. Raises LlmbError."""

    @abstractmethod
    def profile(self) -> P:
        """Make the complete profile. Raises LlmbError, InvalidFieldError for an invalid field."""

    @abstractmethod
    def read(self, services: Services, profile: P, prompter: Prompter) -> O:
        """Read the cluster's offers, in a thread. Raises LlmbError."""

    @abstractmethod
    def show_offers(self, offers: O) -> Content:
        """Show the offers below the fields; return a summary of them."""

    def forget(self) -> None:
        """Remove the offers, and the values that `show_offers` filled in."""
        for field in self.fields.values():
            field.offer(())

    def _combos(self, fields: Iterable[ProfileField]) -> Iterable[Combo]:
        return (self.fields[field.name] for field in fields)
