"""Further differences between two runs: versions, plan, launch, environment and settings, scripts and files. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from llmb_tui.analysis.difference import Change, RunDifference, TextDiff
from llmb_tui.answers.blocks import Block, Bullets, Fact, Facts, Listing, Section, Text
from llmb_tui.language.text import plural


def change_blocks(changed: RunDifference, *, with_texts: bool) -> Iterator[Block]:
    """A section with the differences; `with_texts`: also of scripts and files, and which of them are unknown."""
    blocks: list[Block] = []
    if changed.changes:
        blocks.append(Facts(tuple(map(_fact, changed.changes))))
    if with_texts:
        blocks += map(_listing, changed.texts)
        if not changed.texts:
            blocks.append(Text("No difference between their scripts and files is known.", "quiet"))
        if changed.unknown:
            blocks.append(Bullets(changed.unknown))
    yield Section(f"Changes from run {changed.before} to run {changed.after}", tuple(blocks))


def _fact(change: Change) -> Fact:
    return Fact(change.part, f"{change.name}: {change.before or 'not set'} → {change.after or 'not set'}")


def _listing(text: TextDiff) -> Listing:
    """The lines of a difference without the names of the two sides, which are in the section's title."""
    lines = [line for line in text.lines if not line.startswith(("--- ", "+++ "))]
    more = [f"… {plural(text.cut, 'further line')}"] if text.cut else []
    return Listing(text.name, "\n".join((*lines, *more)), diff=True)
