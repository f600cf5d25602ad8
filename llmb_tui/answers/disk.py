"""`disk`: everything that this program has stored on a cluster, and the outcome of a removal."""

from __future__ import annotations

from collections.abc import Sequence

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Bullets, Grid, Remark, Remarks, Text
from llmb_tui.answers.table import Cell, Column, Quantity, Table, Toned
from llmb_tui.cluster_files.housekeeping import KINDS, InstallItem, Removal, total_size
from llmb_tui.language.quantities import byte_size
from llmb_tui.language.states import Tone, severity_label
from llmb_tui.language.text import plural


def _tone(item: InstallItem) -> Tone:
    """Tone of an item: quiet if it cannot be removed."""
    return "quiet" if item.kept else "plain"


def _size(item: InstallItem) -> Cell:
    return None if item.size is None else Quantity(item.size, byte_size, _tone(item))


def _text(item: InstallItem, text: str) -> Cell:
    return Toned(text, _tone(item)) if text else None


ITEM_COLUMNS: tuple[Column, ...] = (
    Column("size", _size, name="size", width=8),
    Column("kind", lambda item: _text(item, KINDS[item.kind]), name="what", width=19),
    Column("run", lambda item: _text(item, " ".join(item.run_ids)), name="run", width=16),
    Column("name", lambda item: _text(item, item.path), name="name"),
)
"""Columns for items in the install directory."""
_KEPT = Column("kept because", "kept")


def disk(cluster: str, directory: str, items: Sequence[InstallItem], more: int) -> Answer:
    """The items in the install directory, the largest first; `more`: number of items that are not listed."""
    return Answer(
        f"Disk of {cluster}",
        lambda: _blocks(directory, items, more),
        lambda: {"cluster": cluster, "directory": directory, "things": [*map(_document, items)], "more": more},
    )


def largest_first(items: Sequence[InstallItem]) -> list[InstallItem]:
    """Items by size, largest first; unknown sizes last."""
    return sorted(items, key=lambda item: item.size or 0, reverse=True)


def summary(items: Sequence[InstallItem]) -> str:
    """Number and size of the items, and size of those that can be removed."""
    removable = total_size([item for item in items if not item.kept])
    return f"{plural(len(items), 'item')}, {total_size(items)}; {removable} can be removed."


def removal_question(cluster: str, items: Sequence[InstallItem]) -> str:
    """The question before a removal."""
    return f"Remove {plural(len(items), 'item')}, {total_size(items)}, from {cluster}?"


def removal(cluster: str, outcome: Removal) -> Answer:
    document = {"removed": list(outcome.removed), "kept": dict(outcome.kept), "left": outcome.left or None}
    return Answer(
        f"Removal from {cluster}", lambda: _outcome_blocks(cluster, outcome), lambda: {"cluster": cluster, **document}
    )


def removal_words(outcome: Removal) -> str:
    """The outcome of a removal as one line."""
    return " ".join((_removed(outcome), *_not_removed(outcome)))


def _blocks(directory: str, items: Sequence[InstallItem], more: int) -> list[Block]:
    blocks: list[Block] = [Grid("", Table.by((*ITEM_COLUMNS, _KEPT), largest_first(items)))] if items else []
    blocks.append(Text(f"In {directory}: {summary(items)}"))
    if more:
        words = f"{plural(more, 'further item')} not listed: the name is unknown, or the limit of the list is reached."
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
    return f"{plural(len(outcome.removed), 'item')} removed."


def _not_removed(outcome: Removal) -> list[str]:
    kept = [f"{path} was not removed. {why}" for path, why in outcome.kept.items()]
    return [*kept, *([outcome.left] if outcome.left else [])]


def _document(item: InstallItem) -> dict[str, object]:
    runs = list(item.run_ids)
    return {"name": item.path, "kind": item.kind, "bytes": item.size, "runs": runs, "kept": item.kept or None}
