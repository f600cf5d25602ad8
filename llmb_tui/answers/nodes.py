"""`compare --nodes`: which nodes runs were slow with, the evidence for it, and the option that excludes them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from llmb_tui.analysis.document import nodes_document
from llmb_tui.analysis.slow_nodes import RULE, NodeFinding, SlowNodes
from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Grid, Text
from llmb_tui.answers.table import Cell, Column, Quantity, Table, Toned, quantity
from llmb_tui.language.node_list import compress
from llmb_tui.language.quantities import two_digits
from llmb_tui.language.states import node_label
from llmb_tui.language.text import plural


def _toned(finding: NodeFinding, text: str) -> Toned:
    return Toned(text, node_label(finding.state).tone)


def _percent(name: str, sign: str = "") -> Callable[[NodeFinding], Cell]:
    """A value in per cent: CSV has its hundredths."""

    def cell(finding: NodeFinding) -> Cell:
        value: float | None = getattr(finding, name)
        return None if value is None else Quantity(round(value, 2), lambda _: two_digits(value, sign))

    return cell


_NODE: tuple[Column, ...] = (
    Column("node", lambda one: _toned(one, compress(one.nodes))),
    Column("with", "runs_with", name="runs with"),
    Column("without", "runs_without"),
    Column("difference %", _percent("difference_pct", "+")),
    Column("noise %", _percent("noise_pct")),
    Column("chance %", quantity("chance", lambda part: two_digits(100 * part)), name="chance"),
    Column("", lambda one: _toned(one, one.words)),
)
"""Columns of nodes, with how many runs they are compared; `chance`: how likely noise alone lets any node come out as
far."""


def nodes(found: SlowNodes, clusters: Sequence[str]) -> Answer:
    """Which nodes of these clusters are slow."""
    return Answer(
        f"Slow nodes of {', '.join(clusters)}" if clusters else "Slow nodes",
        lambda: tuple(node_blocks(found)),
        lambda: nodes_document(found),
        lambda: Table.for_programs(_NODE, found.findings),
        copy=found.exclude,
        no_copy="" if found.exclude else "No node is suspected, so there is nothing to exclude.",
    )


def node_blocks(found: SlowNodes) -> Iterator[Block]:
    """The answer in a sentence, each node that has runs to compare, and the rule that names one."""
    yield Text(found.words, "bad" if found.suspected else "plain", strong=True)
    if found.exclude:
        yield Text(f"To exclude them: {found.exclude}")
    known = [one for one in found.findings if one.difference_pct is not None]
    if known:
        yield Grid("", Table.by(_NODE, known))
    if others := [node for one in found.findings if one.difference_pct is None for node in one.nodes]:
        yield Text(f"{plural(len(others), 'node')} without runs to compare with: {compress(others)}.", "quiet")
    if found.passed_over:
        excluded = f"{plural(found.passed_over, 'run')} excluded: no repeats, unknown nodes, or not comparable."
        yield Text(excluded, "quiet")
    yield Text(RULE, "quiet")
