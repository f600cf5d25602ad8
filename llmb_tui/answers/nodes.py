"""`compare --nodes`: nodes that slowed runs down, the evidence, and the option that excludes them. Pure."""

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
    """A cell function for a value in per cent; CSV has it in hundredths."""

    def cell(finding: NodeFinding) -> Cell:
        value: float | None = getattr(finding, name)
        return None if value is None else Quantity(round(value, 2), lambda _: two_digits(value, sign))

    return cell


_NODE: tuple[Column, ...] = (
    Column("node", lambda finding: _toned(finding, compress(finding.nodes))),
    Column("with", "runs_with", name="runs with"),
    Column("without", "runs_without"),
    Column("difference %", _percent("difference_pct", "+")),
    Column("noise %", _percent("noise_pct")),
    Column("chance %", quantity("chance", lambda part: two_digits(100 * part)), name="chance"),
    Column("", lambda finding: _toned(finding, finding.words)),
)
"""Columns for nodes, with the number of runs with and without them. `chance`: probability that noise alone makes any
node deviate as far."""


def nodes(slow: SlowNodes, clusters: Sequence[str]) -> Answer:
    """The slow nodes of these clusters."""
    return Answer(
        f"Slow nodes of {', '.join(clusters)}" if clusters else "Slow nodes",
        lambda: tuple(node_blocks(slow)),
        lambda: nodes_document(slow),
        lambda: Table.for_programs(_NODE, slow.findings),
        copy=slow.exclude,
        no_copy="" if slow.exclude else "No node is suspected, so there is nothing to exclude.",
    )


def node_blocks(slow: SlowNodes) -> Iterator[Block]:
    """The answer in a sentence, each node with comparable runs, and the rule by which a node is suspected."""
    yield Text(slow.words, "bad" if slow.suspected else "plain", strong=True)
    if slow.exclude:
        yield Text(f"To exclude them: {slow.exclude}")
    compared = [finding for finding in slow.findings if finding.difference_pct is not None]
    if compared:
        yield Grid("", Table.by(_NODE, compared))
    if others := [node for finding in slow.findings if finding.difference_pct is None for node in finding.nodes]:
        yield Text(f"{plural(len(others), 'node')} with nothing to compare with: {compress(others)}.", "quiet")
    if slow.passed_over:
        excluded = f"{plural(slow.passed_over, 'run')} excluded: no repeats, unknown nodes, or not comparable."
        yield Text(excluded, "quiet")
    yield Text(RULE, "quiet")
