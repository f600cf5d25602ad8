"""`Frames`: the cells of a terminal that received every frame, to be compared with a complete repaint of the screen."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from rich.cells import cell_len
from textual._compositor import Compositor, CompositorUpdate
from textual.app import App

_SENT = re.compile(r"\x1b\[(\d+;\d+)H|\x1b\[([\d;]*)m|([^\x1b\n]+)")
Cells = dict[tuple[int, int], str]


class Frames:
    """Character and style that was sent last for each cell. Only for screens that are never covered."""

    def __init__(self, app: App[Any], monkeypatch: pytest.MonkeyPatch) -> None:
        self._app = app
        self.cells: Cells = {}
        paint: Callable[..., object] = Compositor.render_update

        def record_frame(compositor: Compositor, *arguments: Any, **options: Any) -> object:
            frame = paint(compositor, *arguments, **options)
            if isinstance(frame, CompositorUpdate):
                self._put(frame, self.cells)
            return frame

        monkeypatch.setattr(Compositor, "render_update", record_frame)

    def whole(self) -> Cells:
        """The screen after a complete repaint."""
        cells: Cells = {}
        self._put(self._app.screen._compositor.render_full_update(), cells)
        return cells

    def _put(self, frame: CompositorUpdate, cells: Cells) -> None:
        row = column = 0
        style = ""
        for move, control, text in _SENT.findall(frame.render_segments(self._app.console)):
            if move:
                row, column = (int(number) - 1 for number in move.split(";"))
            elif control:
                style = "" if control == "0" else control
            for character in text:
                cells[row, column] = f"{style} {character}"
                column += cell_len(character)
