"""Dialogs: confirmation, host key, line or secret, note, export, choice from a list, error, help."""

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
    """A box with a title over the screen; escape closes it without a result."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close", id="dialog.leave", tooltip="Close without an answer")
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
    """A question with two buttons; the result is True only if the user chooses yes."""

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
        """Focus no, so that enter declines."""
        self.query_one("#no", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_switch_button(self) -> None:
        self.query_one("#no" if self.query_one("#yes").has_focus else "#yes", Button).focus()


class ConfirmDialog(Question):
    """A confirmation that the user's own key has opened; letters answer it too."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "Yes", id="confirm.yes", tooltip="Confirm"),
        Binding("n", "dismiss(False)", "No", id="confirm.no", tooltip="Decline"),
        Binding("left,right,h,l", "switch_button", "Switch", show=False, id="confirm.other", tooltip="Switch buttons"),
    ]

    def __init__(self, title: str, question: Content, yes: str = "Yes", no: str = "No") -> None:
        super().__init__(title, question, yes, no)


class HostKey(Question):
    """Question about an unknown host key. Letters do not answer it: it may open while the user types."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,right", "switch_button", "Switch", show=False, id="host_key.other", tooltip="Switch buttons")
    ]

    def __init__(self, host: str, key_type: str, fingerprint: str, note: str = "") -> None:
        question = lines(
            line("The host key of ", (host, "bold"), " is not known on this machine."),
            Content(""),
            line((f"{key_type}  ", MUTED), (fingerprint, "bold")),
            Content(""),
            *([line(note), Content("")] if note else []),
            line("Compare it with the fingerprint that the cluster's operator publishes."),
            line("A trusted key is saved, and you are not asked again."),
        )
        super().__init__("Unknown host key", question, "Trust and connect", "Do not connect")

    def body(self) -> ComposeResult:
        yield from super().body()
        hint = "← →: switch · enter: choose · esc: do not connect"
        yield Static(line((hint, MUTED)), markup=False)


class InputDialog(Dialog[str]):
    """Asks for one line of text, with a suggestion; the result is the line, or None after escape."""

    def __init__(self, title: str, words: Content, offered: str = "", hint: str = "", *, masked: bool = False) -> None:
        super().__init__(title)
        self._words = words
        self._offered = offered
        self._hint = hint
        self._masked = masked

    def body(self) -> ComposeResult:
        with Scroller(can_focus=False):
            yield Static(self._words, markup=False)
        yield Input(self._offered, password=self._masked, compact=True, id="line")
        yield Static(line((self._hint, MUTED)), id="line-hint", markup=False)

    def on_mount(self) -> None:
        """Set the focus: Textual does not while another window is active, and a login may ask at that time."""
        self.query_one("#line", Input).focus()
        self.call_after_refresh(self._show_end)

    def _show_end(self) -> None:
        """Show the end of words that are longer than the dialog, where a server's question is; tab reaches them."""
        words = self.query_one(Scroller)
        words.can_focus = bool(words.max_scroll_y)
        words.scroll_end(animate=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.submit(event.value)

    def submit(self, text: str) -> None:
        """Return the text; called when the user presses enter."""
        self.dismiss(text)


class Secret(InputDialog):
    """Asks for a password, a passphrase or a code, which is not stored."""

    def __init__(self, prompt: str, echo: bool) -> None:
        hint = f"enter: send · esc: cancel{'' if echo else ' · never stored'}"
        super().__init__("Question from the cluster", plain(prompt.strip()), hint=hint, masked=not echo)


class NoteDialog(Dialog[tuple[str, tuple[str, ...]] | None]):
    """Asks for the note of a run, one line, and for its tags; the caller saves them."""

    def __init__(self, run: str, note: Note) -> None:
        """`run`: short description of the run."""
        super().__init__("Note")
        self._run = run
        self._note = note

    def body(self) -> ComposeResult:
        yield Static(line((self._run, "bold")), markup=False)
        yield Static(line(("note", MUTED)), markup=False)
        yield Input(plain(self._note.text).plain, max_length=LONGEST_NOTE, compact=True, id="note-text")
        yield Static(line(("tags, for example: baseline driver-570", MUTED)), markup=False)
        yield Input(plain(" ".join(self._note.tags)).plain, compact=True, id="note-tags")
        yield Static(line(("enter: save on this machine · tab: next · esc: cancel", MUTED)))
        yield Static(id="note-fault", markup=False)

    def on_input_submitted(self) -> None:
        text, words = (self.query_one(f"#note-{name}", Input).value for name in ("text", "tags"))
        try:
            tags = tags_in(words)
        except LlmbError as error:
            self.query_one("#note-fault", Static).update(error_content(error))
        else:
            self.dismiss((text, tags))


class ExportDialog(Dialog[tuple[Path, bool] | None]):
    """Asks for the file of an export, and whether names are replaced."""

    def __init__(self, count: int, name: str) -> None:
        """`count`: number of runs; `name`: suggested file name."""
        super().__init__("Export")
        self._count = count
        self._offered = name
        self._anonymous = False
        self._switches = Switches(self._switch, id="export-anonymous")

    def body(self) -> ComposeResult:
        words = f"Export {plural(self._count, 'run')} to one file, which others can check with `llmb-tui verify`."
        yield Static(line(words), markup=False)
        yield Input(str(working_directory() / self._offered), compact=True, id="export-file")
        yield self._switches
        yield Static(line(("enter: write file · tab: options · esc: cancel", MUTED)))

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
    """A choice from a list that is made in a thread; the result is the value of the choice."""

    def __init__(self, title: str, take: str, working: str) -> None:
        """`take`: label of the button that takes a choice; `working`: text until the list is ready."""
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
            yield Button("Cancel", id="leave", compact=True)

    def on_mount(self) -> None:
        self.choices.focus()

    def show_status(self, words: Content) -> None:
        """Show a text above the list."""
        self.query_one("#choices-said", Static).update(words)

    def offer(self, choices: tuple[Choice, ...], chosen: str) -> None:
        """Show the choices, and enable the button that takes one."""
        self.choices.show(choices, chosen)
        self.query_one("#take", Button).disabled = not choices

    def choose(self, value: str) -> None:
        """Highlight a choice."""
        self.choices.show(self.choices.shown, value)

    @on(ChoiceList.Confirmed)
    def take(self) -> None:
        if self.choices.shown:
            self.dismiss(self.choices.chosen)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "take":
            self.take()
        else:
            self.dismiss(None)


class Failure(Dialog[None]):
    """An error: what failed, why as far as is known, and what to do."""

    AUTO_FOCUS = "#close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "copy", "Copy", id="failure.copy", tooltip="Copy the text"),
        Binding("enter", "dismiss", "Close", show=False, id="failure.close", tooltip="Close the error"),
    ]

    def __init__(self, error: LlmbError) -> None:
        super().__init__("Error")
        self._trouble = error

    def body(self) -> ComposeResult:
        with Scroller():
            yield Static(error_content(self._trouble), markup=False)
        with Horizontal(classes="buttons"):
            yield Button("Close", id="close", compact=True)

    def on_mount(self) -> None:
        self.call_after_refresh(self._let_scroll)

    def _let_scroll(self) -> None:
        """Focus the text if it is longer than the dialog, so that keys scroll it."""
        text = self.query_one(Scroller)
        if text.max_scroll_y:
            text.focus()

    def on_button_pressed(self) -> None:
        self.dismiss(None)

    def action_copy(self) -> None:
        copy(self.app, clean(str(self._trouble)), "The text")


class HelpDialog(Dialog[None]):
    """Purpose and keys of the screen below."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,q", "dismiss", "Close", show=False, id="help.leave", tooltip="Close the help")
    ]

    def __init__(self, below: Screen[object]) -> None:
        super().__init__("Help")
        rows = [plain((below.HELP or "").strip()), Content("")] if below.HELP else []
        shown = [key for key in below.active_bindings.values() if key.binding.tooltip and not key.binding.system]
        keys: dict[str, list[str]] = {}
        for active in sorted(shown, key=lambda active: active.node is not below):
            keys.setdefault(active.binding.tooltip, []).append(below.app.get_key_display(active.binding))
        names_by_tooltip = {tooltip: " ".join(dict.fromkeys(names)) for tooltip, names in keys.items()}
        width = 2 + max(map(len, names_by_tooltip.values()), default=0)
        rows += [line((f"{names:<{width}}", "bold"), tooltip) for tooltip, names in names_by_tooltip.items()]
        self._text = lines(*rows)

    def body(self) -> ComposeResult:
        with Scroller():
            yield Static(self._text, markup=False)
