"""`disk`: everything that this program put on a cluster, and the outcome of a removal."""

from __future__ import annotations

from collections.abc import Sequence

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Bullets, Grid, Remark, Remarks, Text
from llmb_tui.answers.table import Cell, Column, Quantity, Table, Toned
from llmb_tui.cluster_files.housekeeping import KINDS, InstallItem, Removal, total_size
from llmb_tui.language.quantities import byte_size
from llmb_tui.language.states import Tone, severity_label
from llmb_tui.language.text import plural


def _tone(thing: InstallItem) -> Tone:
    """A thing that cannot be removed is quiet."""
    return "quiet" if thing.kept else "plain"


def _size(thing: InstallItem) -> Cell:
    return None if thing.size is None else Quantity(thing.size, byte_size, _tone(thing))


def _text(thing: InstallItem, text: str) -> Cell:
    return Toned(text, _tone(thing)) if text else None


THING: tuple[Column, ...] = (
    Column("size", _size, name="size", width=8),
    Column("what", lambda thing: _text(thing, KINDS[thing.kind]), name="what", width=19),
    Column("run", lambda thing: _text(thing, " ".join(thing.run_ids)), name="run", width=16),
    Column("name", lambda thing: _text(thing, thing.path), name="name"),
)
"""Columns for things below the install directory."""
_KEPT = Column("stays because", "kept")


def disk(cluster: str, directory: str, things: Sequence[InstallItem], more: int) -> Answer:
    """The things below the install directory, the largest first, and the number of `more` things that have no name."""
    return Answer(
        f"Disk of {cluster}",
        lambda: _blocks(directory, things, more),
        lambda: {"cluster": cluster, "directory": directory, "things": [*map(_document, things)], "more": more},
    )


def largest_first(things: Sequence[InstallItem]) -> list[InstallItem]:
    """Things by size, largest first; unknown sizes last."""
    return sorted(things, key=lambda thing: thing.size or 0, reverse=True)


def summary(things: Sequence[InstallItem]) -> str:
    """The number and size of things, and the size of those that can be removed."""
    can_go = total_size([thing for thing in things if not thing.kept])
    return f"{plural(len(things), 'thing')}, {total_size(things)}; {can_go} of it can be removed."


def removal_question(cluster: str, things: Sequence[InstallItem]) -> str:
    """The question before a removal."""
    return f"Remove {plural(len(things), 'thing')}, {total_size(things)}, from {cluster}?"


def removal(cluster: str, outcome: Removal) -> Answer:
    """The outcome of a removal."""
    document = {"removed": list(outcome.removed), "kept": dict(outcome.kept), "left": outcome.left or None}
    return Answer(
        f"Removal from {cluster}", lambda: _outcome_blocks(cluster, outcome), lambda: {"cluster": cluster, **document}
    )


def removal_words(outcome: Removal) -> str:
    """The outcome of a removal in one line."""
    return " ".join((_removed(outcome), *_not_removed(outcome)))


def _blocks(directory: str, things: Sequence[InstallItem], more: int) -> list[Block]:
    blocks: list[Block] = [Grid("", Table.by((*THING, _KEPT), largest_first(things)))] if things else []
    blocks.append(Text(f"Below {directory}: {summary(things)}"))
    if more:
        words = f"{plural(more, 'thing')} more {'is' if more == 1 else 'are'} not listed: of other names, or too many."
        blocks.append(Remarks((Remark(severity_label("note"), words),)))
    return blocks


def _outcome_blocks(cluster: str, outcome: Removal) -> list[Block]:
    blocks: list[Block] = [Text(_removed(outcome)), *([Bullets(outcome.removed)] if outcome.removed else [])]
    warnings = _not_removed(outcome)
    if outcome.left:
        warnings[-1] += f" Continue with `llmb-tui disk {cluster} --remove trash`."
    label = severity_label("warning")
    return [*blocks, *([Remarks(tuple(Remark(label, words) for words in warnings))] if warnings else [])]


def _removed(outcome: Removal) -> str:
    return f"{plural(len(outcome.removed), 'thing')} removed."


def _not_removed(outcome: Removal) -> list[str]:
    stays = [f"{path} stays. {why}" for path, why in outcome.kept.items()]
    return [*stays, *([outcome.left] if outcome.left else [])]


def _document(thing: InstallItem) -> dict[str, object]:
    runs = list(thing.run_ids)
    return {"name": thing.path, "kind": thing.kind, "bytes": thing.size, "runs": runs, "kept": thing.kept or None}
