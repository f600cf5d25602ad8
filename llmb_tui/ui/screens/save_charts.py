"""`ask_and_save`: charts as SVG files, in a folder that a person names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.app import App

from llmb_tui.errors import Trouble
from llmb_tui.results.chart import Chart
from llmb_tui.results.svg import svg
from llmb_tui.store.files import file_trouble
from llmb_tui.ui.daemon import in_daemon
from llmb_tui.ui.dialogs import AskLine, trouble_shown
from llmb_tui.ui.text import line, tell


async def ask_and_save(app: App[Any], charts: Sequence[Chart]) -> None:
    """Ask for a folder and write them there; inside a worker."""
    files = "1 SVG file goes" if len(charts) == 1 else f"{len(charts)} SVG files go"
    words = line(f"The folder into which {files}; none that is there is replaced.")
    folder = await app.push_screen_wait(
        AskLine("Save charts", words, str(Path.cwd()), "enter writes, escape does not.")
    )
    if folder and folder.strip():
        with trouble_shown(app):
            written = await in_daemon(save_charts, charts, Path(folder.strip()).expanduser())
            tell(app, f"Written: {', '.join(map(str, written))}")


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
