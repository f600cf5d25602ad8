"""`ask_and_save`: charts as SVG files, in a folder that a person names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.app import App, ComposeResult
from textual.widgets import Input, Static

from llmb_tui.errors import Trouble
from llmb_tui.results.chart import Chart
from llmb_tui.results.svg import svg
from llmb_tui.store.files import file_trouble
from llmb_tui.ui.daemon import in_daemon
from llmb_tui.ui.dialogs import Dialog, Failure
from llmb_tui.ui.text import MUTED, line, tell


async def ask_and_save(app: App[Any], charts: Sequence[Chart]) -> None:
    """Ask for a folder and write them there; inside a worker."""
    folder = await app.push_screen_wait(FolderDialog(len(charts)))
    if folder is None:
        return
    try:
        written = await in_daemon(save_charts, charts, folder)
    except Trouble as trouble:
        app.push_screen(Failure(trouble))
    else:
        tell(app, f"Written: {', '.join(map(str, written))}")


class FolderDialog(Dialog[Path | None]):
    """Where files go."""

    def __init__(self, count: int) -> None:
        super().__init__("Save charts")
        self._count = count

    def body(self) -> ComposeResult:
        files = "1 SVG file goes" if self._count == 1 else f"{self._count} SVG files go"
        yield Static(line(f"The folder into which {files}; none that is there is replaced."), markup=False)
        yield Input(str(Path.cwd()), compact=True, id="folder")
        yield Static(line(("enter writes, escape does not.", MUTED)), markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(Path(event.value).expanduser() if event.value.strip() else None)


def save_charts(charts: Sequence[Chart], folder: Path) -> list[Path]:
    """Write each as `NAME.svg`, or with a number where that is there; the paths. Raises Trouble."""
    if not folder.is_dir():
        raise Trouble(f"{folder} is no folder.", fix="Name one that is there.", exit_code=1)
    written = []
    for chart in charts:
        numbers = ("", *(f"-{number}" for number in range(2, 1000)))
        path = next(path for number in numbers if not (path := folder / f"{chart.name}{number}.svg").exists())
        with file_trouble("write", path), path.open("x", encoding="utf-8") as file:
            path.chmod(0o600)
            file.write(svg(chart))
        written.append(path)
    return written
