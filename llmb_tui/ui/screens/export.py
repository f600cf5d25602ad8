"""`ExportDialog`: into which file runs are exported, and whether without names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from textual.app import ComposeResult
from textual.widgets import Checkbox, Input, Static

from llmb_tui.text import plural
from llmb_tui.ui.dialogs import Dialog
from llmb_tui.ui.text import MUTED, line


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """What was answered."""

    file: Path
    anonymous: bool


class ExportDialog(Dialog[ExportTarget | None]):
    """The file, and a box for what is taken out of it."""

    def __init__(self, count: int, name: str) -> None:
        """`count` runs go in; `name` is offered for the file."""
        super().__init__("Export")
        self._count = count
        self._offered = name

    def body(self) -> ComposeResult:
        words = f"{plural(self._count, 'run')} as one file that a second person can check with `llmb-tui verify`."
        yield Static(line(words), markup=False)
        yield Input(str(Path.cwd() / self._offered), compact=True, id="export-file")
        yield Checkbox("without host and user names, addresses and home paths", compact=True, id="export-anonymous")
        yield Static(line(("enter in the first line writes it, tab goes to the box, escape does neither.", MUTED)))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        name = event.value.strip()
        anonymous = self.query_one("#export-anonymous", Checkbox).value
        self.dismiss(ExportTarget(Path(name).expanduser(), anonymous) if name else None)
