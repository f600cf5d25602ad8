"""`explanation`: why a log ended as it did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Fact, Listing, Remark, Remarks, Section, Text, known_facts
from llmb_tui.diagnosis.causes import Cause
from llmb_tui.language.states import severity_label
from llmb_tui.language.text import capital, plural
from llmb_tui.watch.explanation import Explanation
from llmb_tui.watch.log_formats.registry import LOG_FORMATS, known_formats


def explanation(value: Explanation) -> Answer:
    """The causes that a log names, the most likely first; without one, its last lines."""
    return Answer(f"Why {value.file} ended", lambda: tuple(_blocks(value)), lambda: _document(value))


def _blocks(value: Explanation) -> Iterator[Block]:
    title = LOG_FORMATS[value.format].title if value.format else ""
    starts = f" in {plural(value.starts, 'start')}" if value.starts > 1 else ""
    yield known_facts(
        Fact("log", value.file, exact=True),
        Fact("training", f"{plural(value.steps, 'step')}{starts}"),
        Fact("format", title),
    )
    for number, cause in enumerate(value.causes, 1):
        yield Section(f"{number}. {capital(cause.what)}", tuple(_cause_blocks(cause)))
    notes = [*value.notes]
    if not value.steps and value.stage == "training":
        notes.append(f"No line of a training step was found. {known_formats()}")
    elif value.steps and not value.has_times:
        notes.append("The step lines have no step time.")
    if notes:
        yield Remarks(tuple(Remark(severity_label("note"), note) for note in notes))
    if value.causes:
        return
    if value.whole:
        yield Text(f"The training reached its last step{'' if value.notes else ': nothing failed'}.")
        return
    yield Text("The cause is unknown: no words of a known failure were found after the newest step.")
    if value.last_lines:
        yield Listing("Last lines", "\n".join(value.last_lines))


def _cause_blocks(cause: Cause) -> Iterator[Block]:
    if cause.fix:
        yield Text(cause.fix)
    yield known_facts(Fact(f"line {cause.line_number}" if cause.line_number else "source", cause.why, exact=True))


def _document(value: Explanation) -> dict[str, Any]:
    return {
        "file": value.file,
        "format": value.format,
        "steps": value.steps,
        "starts": value.starts,
        "causes": [
            {
                "what": capital(cause.what),
                "why": cause.why,
                "fix": cause.fix or None,
                "stage": cause.stage,
                "line": cause.line,
                "line_number": cause.line_number or None,
                "rank": cause.rank,
                "node": cause.node,
                "rule": cause.rule,
            }
            for cause in value.causes
        ],
        "notes": list(value.notes),
        "last_lines": list(value.last_lines),
    }
