"""`report`: runs as one readable file for other people, and their charts as pictures."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import pictures
from llmb_tui.answers.writers.html import html
from llmb_tui.answers.writers.markdown import markdown
from llmb_tui.answers.writers.svg import svg
from llmb_tui.cli.output import print_json, print_line, print_status
from llmb_tui.cli.user import confirm, has_terminal, user_services
from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import byte_size
from llmb_tui.store.files import write_all_atomic

_HTML, _MARKDOWN = (".html", ".htm"), (".md", ".markdown")


def report_verb(arguments: argparse.Namespace) -> int:
    """Write the report of runs to a file, or as Markdown to stdout, without asking a cluster."""
    target = Path(arguments.output) if arguments.output else None
    if target is not None and target.suffix.lower() not in (*_HTML, *_MARKDOWN):
        raise LlmbError(
            f"{target} is neither HTML nor Markdown.",
            f"Its name ends with {target.suffix!r}." if target.suffix else "Its name has no suffix.",
            "Name a file that ends with .html or .md.",
            exit_code=1,
        )
    report = user_services(arguments).reports.report(arguments.runs, time.time())
    images = pictures(report.make_blocks()) if arguments.charts else ()
    charts = {picture.name: Path(arguments.charts) / f"{picture.name}.svg" for picture in images}
    files = [*([target] if target else []), *charts.values()]
    _confirm_replacement([path for path in files if os.path.lexists(path)], force=arguments.force)
    texts = {charts[picture.name]: svg(picture.chart) for picture in images}
    if target is not None:
        texts[target] = _text(report, target, charts)
    write_all_atomic({path: text.encode() for path, text in texts.items()})
    if arguments.json:
        print_json({**report.make_document(), "files": [str(path) for path in files]})
        return 0
    print_file = print_line
    if target is None:
        print_line(markdown(report, {name: str(path) for name, path in charts.items()}), end="")
        print_file = print_status  # the report is on stdout
    for path in files:
        print_file(f"{path}  {byte_size(path.stat().st_size)}")
    return 0


def _text(report: Answer, target: Path, charts: dict[str, Path]) -> str:
    if target.suffix.lower() in _HTML:
        return html(report)
    return markdown(report, {name: os.path.relpath(path, target.parent) for name, path in charts.items()})


def _confirm_replacement(existing: Sequence[Path], *, force: bool) -> None:
    """Ask before existing files are replaced. Raises LlmbError (exit code 1) without a confirmation."""
    if not existing or force:
        return
    names = f"{existing[0]}{f' and {len(existing) - 1} more' if len(existing) > 1 else ''}"
    if has_terminal() and confirm(f"{names} exists already. Replace it?"):
        return
    why = f"{names} exists already."
    raise LlmbError("Nothing was written.", why, "Name another file, or add --force to replace it.", exit_code=1)
