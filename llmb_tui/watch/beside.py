"""`Beside`: why a job failed, as far as the files beside its log say."""

from __future__ import annotations

import contextlib
from pathlib import Path

from llmb_tui.errors import Trouble
from llmb_tui.store import documents
from llmb_tui.watch.failure import Failure, worst


class Beside:
    """What is known, from this process or an earlier one. Only the telling line is kept: such a file may hold secrets.

    NeMo-Run has its batch scripts print every variable that they export.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "beside.json"
        self.failure: Failure | None = None
        """The most telling line of theirs."""
        if self._path.is_file():
            with contextlib.suppress(Trouble):  # it is read again when the run is watched
                self.failure = documents.load(self._path, Failure)

    def take(self, text: bytes) -> None:
        """Take in what they hold now."""
        self.failure = worst(text)
        with contextlib.suppress(Trouble):  # no room here: then it is known to this process only
            if self.failure is not None:
                documents.save(self._path, self.failure)
            else:
                self._path.unlink(missing_ok=True)
