"""`LOG_FORMATS`: every known format, by the id in presets and stored runs."""

from __future__ import annotations

from llmb_tui.catalog.recipe import LogFormatId
from llmb_tui.watch.log_formats.hydra import HYDRA
from llmb_tui.watch.log_formats.log_format import LogFormat
from llmb_tui.watch.log_formats.nemo2 import NEMO2

LOG_FORMATS: dict[LogFormatId, LogFormat] = {log_format.id: log_format for log_format in (NEMO2, HYDRA)}


def known_formats() -> str:
    """A sentence that names every known format."""
    return f"Known are {' and '.join(one.title or one.id for one in LOG_FORMATS.values())}."
