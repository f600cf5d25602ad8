"""The dialogs: a yes that must be clear, a host key, a secret, an error, the help."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Button, Input, Static

from llmb_tui.errors import Trouble
from llmb_tui.results.notes import LONGEST_NOTE, Note
from llmb_tui.text import clean
from llmb_tui.ui.text import MUTED, line, lines, plain, told
from llmb_tui.ui.widgets.texts import Scroller

_Result = TypeVar("_Result")


class Dialog(ModalScreen[_Result], Generic[_Result]):
    """A box with a title over the screen; escape leaves it without an answer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", id="dialog.leave", tooltip="Leave without an answer")
    ]

    def __init__(self, title: str) -> None:
        super().__init__()
        self._heading = title

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = self._heading
            yield from self.body()

    def body(self) -> ComposeResult:
        """What is in the box."""
        raise NotImplementedError

    def action_leave(self) -> None:
        self.dismiss(None)


class Confirm(Dialog[bool]):
    """A question whose answer is no unless yes is chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "yes", "Yes", id="confirm.yes", tooltip="Yes, do it"),
        Binding("n", "no", "No", id="confirm.no", tooltip="No, do nothing"),
        Binding("left,right,h,l", "other", "Other", show=False, id="confirm.other", tooltip="The other button"),
    ]

    def __init__(self, title: str, question: Content, yes: str = "Yes", no: str = "No") -> None:
        super().__init__(title)
        self._question = question
        self._labels = (no, yes)

    def body(self) -> ComposeResult:
        yield Static(self._question, markup=False)
        with Horizontal(classes="buttons"):
            no, yes = self._labels
            yield Button(plain(no), id="no", compact=True)
            yield Button(plain(yes), id="yes", compact=True)

    def on_mount(self) -> None:
        """No is what enter means."""
        self.query_one("#no", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_yes(self) -> None:
        self.dismiss(True)

    def action_no(self) -> None:
        self.dismiss(False)

    def action_other(self) -> None:
        self.focus_next()

    def action_leave(self) -> None:
        """Escape is a no."""
        self.dismiss(False)


class HostKey(Confirm):
    """The key of a host that is not known yet."""

    def __init__(self, host: str, key_type: str, fingerprint: str) -> None:
        question = lines(
            [
                line("The host key of ", (host, "bold"), " is not known on this machine yet."),
                Content(""),
                line((f"{key_type:<14}", MUTED), (fingerprint, "bold")),
                Content(""),
                line("Compare it with what the cluster's operator publishes."),
                line("If it is the right one, it is remembered and not asked again."),
            ]
        )
        super().__init__("Unknown host key", question, "It is the right key", "Do not connect")


class Secret(Dialog[str | None]):
    """A password, a passphrase or a code. It is handed on and kept nowhere."""

    def __init__(self, prompt: str, echo: bool) -> None:
        super().__init__("The cluster asks")
        self._prompt = prompt
        self._echo = echo

    def body(self) -> ComposeResult:
        yield Static(plain(self._prompt.strip()), markup=False)
        yield Input(password=not self._echo, compact=True, id="secret")
        stored = "" if self._echo else " It is stored nowhere."
        yield Static(line((f"enter sends it, escape gives none.{stored}", MUTED)), markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)


class NoteDialog(Dialog[tuple[str, str] | None]):
    """What is said of a run: one line, and the tags as they are typed. It keeps neither."""

    def __init__(self, run: str, note: Note) -> None:
        """`run`: in a few words."""
        super().__init__("Note")
        self._run = run
        self._note = note

    def body(self) -> ComposeResult:
        yield Static(line((self._run, "bold")), markup=False)
        yield Static(line(("note", MUTED)), markup=False)
        yield Input(plain(self._note.text).plain, max_length=LONGEST_NOTE, compact=True, id="note-text")
        yield Static(line(("tags, such as: baseline driver-570", MUTED)), markup=False)
        yield Input(plain(" ".join(self._note.tags)).plain, compact=True, id="note-tags")
        yield Static(line(("enter keeps both on this machine, tab goes to the other, escape leaves them.", MUTED)))

    def on_input_submitted(self) -> None:
        self.dismiss((self.query_one("#note-text", Input).value, self.query_one("#note-tags", Input).value))


class Failure(Dialog[None]):
    """An error: what happened, why as far as is known, what to do."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("c", "copy", "Copy", id="failure.copy", tooltip="Copy the text")]

    def __init__(self, trouble: Trouble) -> None:
        super().__init__("It did not work")
        self._trouble = trouble

    def body(self) -> ComposeResult:
        with Scroller(can_focus=False):
            yield Static(told(self._trouble), markup=False)
        with Horizontal(classes="buttons"):
            yield Button("Close", id="close", compact=True)

    def on_button_pressed(self) -> None:
        self.dismiss(None)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(clean(str(self._trouble)))


class Help(Dialog[None]):
    """The keys that work on the screen below, and what it is for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,q", "leave", "Close", show=False, id="help.leave", tooltip="Close the help")
    ]

    def __init__(self, below: Screen[object]) -> None:
        super().__init__("Help")
        rows = [plain((below.HELP or "").strip()), Content("")] if below.HELP else []
        shown = [one for one in below.active_bindings.values() if one.binding.tooltip and not one.binding.system]
        keys: dict[str, list[str]] = {}
        for one in sorted(shown, key=lambda one: one.node is not below):
            keys.setdefault(one.binding.tooltip, []).append(below.app.get_key_display(one.binding))
        for tooltip, names in keys.items():
            rows.append(line((f"{' '.join(dict.fromkeys(names)):<12}", "bold"), tooltip))
        self._text = lines(rows)

    def body(self) -> ComposeResult:
        with Scroller():
            yield Static(self._text, markup=False)
