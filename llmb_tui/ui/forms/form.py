"""`ProfileForm`: the fields of one kind of cluster profile, and what the cluster itself offers for them."""

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
O = TypeVar("O")  # noqa: E741 - what is offered


NOT_READ = line(("○ not read yet: ctrl+r", MUTED))


class ProfileForm(Vertical, Generic[P, O]):
    """One kind. What is asked of a cluster is asked in a thread by `read`, and shown by `take`.

    It holds as long as the way to the cluster stays the same: of another one nothing is offered or saved.
    """

    DEFAULT_CSS = """
    ProfileForm { height: auto; }
    ProfileForm > .name { color: $text-muted; }
    ProfileForm > ChoiceList { margin-left: 20; }
    """
    REACH: ClassVar[tuple[ProfileField, ...]]
    USE: ClassVar[tuple[ProfileField, ...]]
    MORE: ClassVar[tuple[ProfileField, ...]]
    HOW: ClassVar[str]
    """How it is reached, in words."""
    ROUTES: ClassVar[dict[str, str]]
    """Choices of kind and transport that open this form, with their words; the first is the usual one."""

    def __init__(self, base: P, texts: dict[str, str]) -> None:
        """`texts`: what the fields begin with, by name."""
        super().__init__()
        self.base = self._first_base = base
        self._first_texts = texts
        self._said_of: tuple[str, ...] | None = None
        """The way to the cluster of whose reading is said how it stands; None: none was read."""
        self.fields = {one.name: Combo(one.name, one.title, one.hint) for one in (*self.REACH, *self.USE, *self.MORE)}

    def compose(self) -> ComposeResult:
        yield label("Reach it", self.HOW)
        yield from self._combos(self.REACH)
        yield Static(id="read", markup=False)
        yield label("Use it")
        yield from self._combos(self.USE)
        yield from self.extra_widgets()
        yield label("Where the site needs it", "empty is right for most")
        yield from self._combos(self.MORE)

    def on_mount(self) -> None:
        for name, text in self._first_texts.items():
            self.fields[name].value = text
        self.say(NOT_READ)

    @property
    def texts(self) -> dict[str, str]:
        return {name: field.value for name, field in self.fields.items()}

    @property
    def reach(self) -> tuple[str, ...]:
        """What was entered of the way to the cluster; the name that it gets here is no part of that."""
        return tuple(self.fields[field.name].value for field in self.REACH[1:])

    @property
    def has_changed(self) -> bool:
        """Something was entered, or taken over from what the cluster offers."""
        return self.base != self._first_base or self.texts != {**dict.fromkeys(self.fields, ""), **self._first_texts}

    def say(self, text: Content) -> None:
        """Say between the fields how the reading of the cluster stands that is entered now."""
        self._said_of = None if text is NOT_READ else self.reach
        self.query_one("#read", Static).update(text)

    @on(Input.Changed)
    def forget_another(self) -> None:
        """Forget what was read, or why it could not be, of another cluster than is entered now."""
        if self._said_of not in (None, self.reach):
            self.forget()
            self.say(NOT_READ)

    def at_fault(self, error: LlmbError) -> Combo | None:
        name = field_at_fault(error, (*self.REACH, *self.USE, *self.MORE))
        return None if name is None else self.fields[name]

    @property
    def route(self) -> str:
        """Key of `ROUTES` that is chosen."""
        return next(iter(self.ROUTES))

    def choose_transport(self, value: str) -> None:
        """Another way to the same kind of cluster was chosen."""

    def extra_widgets(self) -> Iterable[Widget]:
        """What is asked otherwise than by a field."""
        return ()

    @abstractmethod
    def reachable(self) -> P:
        """The profile as far as a connection needs it. Raises LlmbError."""

    @abstractmethod
    def profile(self) -> P:
        """The whole profile. Raises LlmbError, InvalidFieldError where a field is to blame."""

    @abstractmethod
    def read(self, services: Services, profile: P, prompter: Prompter) -> O:
        """In a thread: what the cluster offers. Raises LlmbError."""

    @abstractmethod
    def take(self, offers: O) -> Content:
        """Offer it below the fields; what was read, in words."""

    def forget(self) -> None:
        """Offer nothing any more, and take back what `take` has filled in."""
        for field in self.fields.values():
            field.offer(())

    def _combos(self, fields: Iterable[ProfileField]) -> Iterable[Combo]:
        return (self.fields[field.name] for field in fields)
