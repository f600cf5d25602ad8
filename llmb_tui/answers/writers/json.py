"""`report_json`: a report as a JSON object with sections of blocks, each with its kind."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from llmb_tui.analysis.chart import Chart
from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Banner, Block, Bullets, Facts, Grid, Listing, Picture, Remarks, Section, Text
from llmb_tui.answers.table import bare


def report_json(answer: Answer) -> dict[str, Any]:
    """JSON object of a report: its verdicts and its sections, without blocks outside sections."""
    blocks = answer.make_blocks()
    return {
        "title": answer.title,
        "subtitle": answer.subtitle,
        "verdicts": [_block(block) for block in blocks if isinstance(block, Banner)],
        "sections": [
            {"title": section.title, "level": section.level, "blocks": [_block(block) for block in section.blocks]}
            for section in blocks
            if isinstance(section, Section)
        ],
        "made": answer.made,
    }


def _block(block: Block) -> dict[str, Any]:  # noqa: PLR0911 - one return for each kind
    match block:
        case Grid():
            rows = [[bare(cell) for cell in row] for row in block.table.rows]
            return {"kind": "table", "caption": block.caption, "headings": list(block.table.headings), "rows": rows}
        case Facts():
            return {"kind": "facts", "facts": [{"label": fact.label, "value": fact.value} for fact in block.facts]}
        case Picture():
            return {"kind": "chart", "name": block.name, **_chart(block.chart)}
        case Banner():
            return {"kind": "verdict", "result": block.result or None, "words": block.words}
        case Listing():
            return {"kind": "listing", "title": block.title, "text": block.text}
        case Bullets():
            return {"kind": "list", **asdict(block)}
        case Remarks():
            return {"kind": "list", "items": [remark.text for remark in block.items]}
        case Text():
            return {"kind": "text", "text": block.text}
        case Section():
            return {"kind": "section", "title": block.title, "blocks": [_block(part) for part in block.blocks]}


def _chart(chart: Chart) -> dict[str, Any]:
    lines = [{"label": line.label, "points": [[point.x, point.y] for point in line.points]} for line in chart.series]
    return {"title": chart.title, "summary": chart.summary, "x": chart.x.name(), "y": chart.y.title, "series": lines}
