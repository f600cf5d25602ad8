"""The dialogs: a clear yes, a host key, a line or a secret, a note, an export, one of a list, an error, the help."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Button, Input, Static

from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean, plural
from llmb_tui.launch.note import Note
from llmb_tui.launch.notes import LONGEST_NOTE, tags_in
from llmb_tui.plan.selection import ON
from llmb_tui.store.paths import expand_user, working_directory
from llmb_tui.ui.clipboard import copy
from llmb_tui.ui.text import MUTED, error_content, line, lines, plain
from llmb_tui.ui.widgets.choices import ChoiceList, Switches
from llmb_tui.ui.widgets.texts import Paragraphs, Scroller
from llmb_tui.wizard.choices import Choice, Switch

_Result = TypeVar("_Result")


class Dialog(ModalScreen[_Result], Generic[_Result]):
    """A box with a title over the screen; escape leaves it without an answer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Leave", id="dialog.leave", tooltip="Leave without an answer")
    ]

    def __init__(self, title: str) -> None:
        super().__init__()
        self._heading = title

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = self._heading
            yield from self.body()

    def body(self) -> ComposeResult:
        raise NotImplementedError


class Question(Dialog[bool]):
    """A question whose answer is no unless yes is chosen."""

    def __init__(self, title: str, question: Content, yes: str, no: str) -> None:
        super().__init__(title)
        self._question = question
        self._labels = {"no": no, "yes": yes}

    def body(self) -> ComposeResult:
        with Scroller():
            yield Static(self._question, markup=False)
        with Horizontal(classes="buttons"):
            for name, words in self._labels.items():
                yield Button(plain(words), id=name, compact=True)

    def on_mount(self) -> None:
        """No is what enter means."""
        self.query_one("#no", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_other(self) -> None:
        self.query_one("#no" if self.query_one("#yes").has_focus else "#yes", Button).focus()


class Confirm(Question):
    """A question that follows a key of who answers it: letters answer it too."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "Yes", id="confirm.yes", tooltip="Yes, do it"),
        Binding("n", "dismiss(False)", "No", id="confirm.no", tooltip="No, do nothing"),
        Binding("left,right,h,l", "other", "Other", show=False, id="confirm.other", tooltip="The other button"),
    ]

    def __init__(self, title: str, question: Content, yes: str = "Yes", no: str = "No") -> None:
        super().__init__(title, question, yes, no)


class HostKey(Question):
    """The key of a host that is not known yet. No letter answers: a thread that connects asks while somebody types."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,right", "other", "Other", show=False, id="host_key.other", tooltip="The other button")
    ]

    def __init__(self, host: str, key_type: str, fingerprint: str, note: str = "") -> None:
        question = lines(
            line("The host key of ", (host, "bold"), " is not known on this machine yet."),
            Content(""),
            line((f"{key_type}  ", MUTED), (fingerprint, "bold")),
            Content(""),
            *([line(note), Content("")] if note else []),
            line("Compare it with what the cluster's operator publishes."),
            line("If it is the right one, it is remembered and not asked again."),
        )
        super().__init__("Unknown host key", question, "It is the right key", "Do not connect")

    def body(self) -> ComposeResult:
        yield from super().body()
        words = "← → go to the other answer, enter gives it, escape does not connect."
        yield Static(line((words, MUTED)), markup=False)


class AskLine(Dialog[str]):
    """One line is typed, or one that is offered is taken; escape gives none."""

    def __init__(self, title: str, words: Content, offered: str = "", hint: str = "", *, masked: bool = False) -> None:
        super().__init__(title)
        self._words = words
        self._offered = offered
        self._hint = hint
        self._masked = masked

    def body(self) -> ComposeResult:
        yield Static(self._words, markup=False)
        yield Input(self._offered, password=self._masked, compact=True, id="line")
        yield Static(line((self._hint, MUTED)), id="line-hint", markup=False)

    def on_mount(self) -> None:
        """Also of a question that comes while another window is in front, when Textual gives no screen the focus."""
        self.query_one("#line", Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.take(event.value)

    def take(self, text: str) -> None:
        """Enter was pressed."""
        self.dismiss(text)


class Secret(AskLine):
    """A password, a passphrase or a code. It is handed on and kept nowhere."""

    def __init__(self, prompt: str, echo: bool) -> None:
        hint = f"enter sends it, escape gives none.{'' if echo else ' It is stored nowhere.'}"
        super().__init__("The cluster asks", plain(prompt.strip()), hint=hint, masked=not echo)


class NoteDialog(Dialog[tuple[str, tuple[str, ...]] | None]):
    """What is said of a run: one line, and its tags. It keeps neither."""

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
        yield Static(id="note-fault", markup=False)

    def on_input_submitted(self) -> None:
        text, words = (self.query_one(f"#note-{one}", Input).value for one in ("text", "tags"))
        try:
            tags = tags_in(words)
        except LlmbError as error:
            self.query_one("#note-fault", Static).update(error_content(error))
        else:
            self.dismiss((text, tags))


class ExportDialog(Dialog[tuple[Path, bool] | None]):
    """Into which file runs are exported, and whether without names."""

    def __init__(self, count: int, name: str) -> None:
        """`count` runs go in; `name` is offered for the file."""
        super().__init__("Export")
        self._count = count
        self._offered = name
        self._anonymous = False
        self._switches = Switches(self._switch, id="export-anonymous")

    def body(self) -> ComposeResult:
        words = f"{plural(self._count, 'run')} as one file that a second person can check with `llmb-tui verify`."
        yield Static(line(words), markup=False)
        yield Input(str(working_directory() / self._offered), compact=True, id="export-file")
        yield self._switches
        yield Static(line(("enter in the first line writes it, tab goes to the switch, escape does neither.", MUTED)))

    def on_mount(self) -> None:
        self._switch("anonymous", "")

    def _switch(self, field: str, value: str) -> None:
        self._anonymous = value == ON
        detail = "names, addresses and home paths are replaced"
        self._switches.show((Switch(field, "anonymous", detail, self._anonymous),))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        name = event.value.strip()
        self.dismiss((expand_user(name), self._anonymous) if name else None)


class ListDialog(Dialog[str]):
    """One of a list is taken, which is made in a thread while it says so; the answer is the value of the choice."""

    def __init__(self, title: str, take: str, working: str) -> None:
        """`take`: what the button says that takes one; `working`: what is done meanwhile."""
        super().__init__(title)
        self._take_word = take
        self._working = working
        self.choices = ChoiceList(self.choose, id="choices")

    def body(self) -> ComposeResult:
        yield Static(line((f"◐ {self._working} …", MUTED)), id="choices-said", markup=False)
        yield self.choices
        yield Paragraphs(id="about-choice")
        with Horizontal(classes="buttons"):
            yield Button(self._take_word, id="take", compact=True, disabled=True)
            yield Button("Leave", id="leave", compact=True)

    def on_mount(self) -> None:
        self.choices.focus()

    def say(self, words: Content) -> None:
        """Say over the list how it stands."""
        self.query_one("#choices-said", Static).update(words)

    def offer(self, choices: tuple[Choice, ...], chosen: str) -> None:
        """Show these, one of them as chosen, which can be taken from now on."""
        self.choices.show(choices, chosen)
        self.query_one("#take", Button).disabled = not choices

    def choose(self, value: str) -> None:
        """The cursor is on this one."""
        self.choices.show(self.choices.shown, value)

    @on(ChoiceList.Taken)
    def take(self) -> None:
        if self.choices.shown:
            self.dismiss(self.choices.chosen)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "take":
            self.take()
        else:
            self.dismiss(None)


class Failure(Dialog[None]):
    """An error: what happened, why as far as is known, what to do."""

    AUTO_FOCUS = "#close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "copy", "Copy", id="failure.copy", tooltip="Copy the text"),
        Binding("enter", "dismiss", "Close", show=False, id="failure.close", tooltip="Close the error"),
    ]

    def __init__(self, error: LlmbError) -> None:
        super().__init__("It did not work")
        self._trouble = error

    def body(self) -> ComposeResult:
        with Scroller():
            yield Static(error_content(self._trouble), markup=False)
        with Horizontal(classes="buttons"):
            yield Button("Close", id="close", compact=True)

    def on_mount(self) -> None:
        self.call_after_refresh(self._let_scroll)

    def _let_scroll(self) -> None:
        """What is longer than the screen has the keys."""
        text = self.query_one(Scroller)
        if text.max_scroll_y:
            text.focus()

    def on_button_pressed(self) -> None:
        self.dismiss(None)

    def action_copy(self) -> None:
        copy(self.app, clean(str(self._trouble)), "The text")


class Help(Dialog[None]):
    """The keys that work on the screen below, and what it is for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,q", "dismiss", "Close", show=False, id="help.leave", tooltip="Close the help")
    ]

    def __init__(self, below: Screen[object]) -> None:
        super().__init__("Help")
        rows = [plain((below.HELP or "").strip()), Content("")] if below.HELP else []
        shown = [one for one in below.active_bindings.values() if one.binding.tooltip and not one.binding.system]
        keys: dict[str, list[str]] = {}
        for one in sorted(shown, key=lambda one: one.node is not below):
            keys.setdefault(one.binding.tooltip, []).append(below.app.get_key_display(one.binding))
        names_of = {tooltip: " ".join(dict.fromkeys(names)) for tooltip, names in keys.items()}
        width = 2 + max(map(len, names_of.values()), default=0)
        rows += [line((f"{names:<{width}}", "bold"), tooltip) for tooltip, names in names_of.items()]
        self._text = lines(*rows)

    def body(self) -> ComposeResult:
        with Scroller():
            yield Static(self._text, markup=False)
