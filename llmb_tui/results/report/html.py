"""`html`: a report as one file that needs no network and no script: for a screen, light or dark, and for paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from llmb_tui.results.report.blocks import Banner, Block, Bullets, Document, Facts, Grid, Picture, Section, Text
from llmb_tui.results.svg import STYLE as CHART_STYLE
from llmb_tui.results.svg import svg
from llmb_tui.results.table import Table
from llmb_tui.text import clean, clean_line

_SIGNS = {"PASS": "✓", "WARN": "!", "FAIL": "✗", "": "–"}
"""Beside the word, so that no colour is needed."""
_WIDE = 8
"""A table of so many columns is set smaller."""
_SHORT = 16
"""A column of no longer texts is not folded."""
_NO_SLUG = re.compile(r"[^a-z0-9]+")
_STYLE = """\
:root{color-scheme:light dark;--ink:#1f2328;--soft:#57606a;--line:#d0d7de;--paper:#fff;--shade:#f6f8fa;
--pass:#1a7f37;--warn:#9a6700;--fail:#b3261e}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9da7b1;--line:#30363d;--paper:#0d1117;
--shade:#161b22;--pass:#56d364;--warn:#e3b341;--fail:#ff8a80}}
*{box-sizing:border-box}
body{margin:0 auto;padding:2rem 1.25rem 4rem;max-width:58rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI","Liberation Sans",Arial,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.7rem;line-height:1.25;margin:0 0 .25rem}
h2{font-size:1.25rem;margin:2.2rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--line)}
h3{font-size:1.05rem;margin:1.6rem 0 .4rem}
p,ul,dl,figure,.table{margin:.6rem 0}
ul{padding-left:1.3rem}
.soft,figcaption,caption{color:var(--soft)}
.verdict{display:flex;gap:.9rem;align-items:baseline;margin:1rem 0;padding:.8rem 1rem;background:var(--shade);
border:1px solid var(--line);border-left:6px solid var(--soft);border-radius:4px}
.verdict strong{white-space:nowrap;font-size:1.15rem}
.verdict.pass{border-left-color:var(--pass)}.pass strong{color:var(--pass)}
.verdict.warn{border-left-color:var(--warn)}.warn strong{color:var(--warn)}
.verdict.fail{border-left-color:var(--fail)}.fail strong{color:var(--fail)}
.table{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;overflow-wrap:normal}
caption{caption-side:top;text-align:left;padding:0 0 .3rem;font-size:.9rem}
th,td{padding:.3rem .7rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
thead th,thead td{border-bottom:2px solid var(--line)}
thead th{font-weight:600;font-size:.9em;vertical-align:bottom}
.number{text-align:right}tbody .number,.short{white-space:nowrap}
.wide{font-size:.85rem}.wide th,.wide td{padding:.25rem .45rem}
dl{display:grid;grid-template-columns:minmax(9rem,14rem) 1fr;gap:.25rem 1rem}
dt{color:var(--soft)}dd{margin:0}
code,pre{font:.85em/1.45 ui-monospace,SFMono-Regular,Menlo,"Liberation Mono",monospace}
pre{margin:.5rem 0;padding:.8rem;background:var(--shade);border:1px solid var(--line);overflow-x:auto;
overflow-wrap:normal}
summary{cursor:pointer}
a{color:inherit}
figure svg{display:block;width:100%;max-width:46rem;height:auto;border:1px solid var(--line);border-radius:4px}
figcaption{font-size:.9rem;max-width:46rem;margin-top:.3rem}
footer{margin-top:3rem;padding-top:.6rem;border-top:1px solid var(--line);color:var(--soft);font-size:.9rem}
@media (max-width:36rem){body{padding:1.2rem .8rem 3rem}dl{grid-template-columns:1fr;gap:0}dd{margin:0 0 .4rem}
.verdict{flex-direction:column;gap:.2rem}}
@media print{@page{margin:14mm}body{font-size:9.5pt;line-height:1.4;max-width:none;padding:0}
h1{font-size:16pt}h2{font-size:12pt;margin:1.1rem 0 .4rem;padding-top:.4rem}h3{font-size:10.5pt;margin:.9rem 0 .3rem}
h2,h3,caption{break-after:avoid}figure,.verdict,tr,li{break-inside:avoid}nav{display:none}
.table{overflow:visible}th,td{padding:.15rem .5rem}.wide{font-size:7.5pt}.wide th,.wide td{padding:.15rem .25rem}
caption,figcaption{font-size:8.5pt}code{font-size:8pt}figure svg{max-width:135mm}footer{margin-top:1rem}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:7.5pt}
details:not([open])>summary::after{content:" – in the file itself"}}
"""
# Nothing is fetched and nothing runs, whatever a text in here may be.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def html(document: Document) -> str:
    """The report as an HTML document."""
    body = [
        f'<header><h1>{_text(document.title)}</h1><p class="soft">{_text(document.subtitle)}</p>',
        *(_banner(banner) for banner in document.banners),
        *_contents(document),
        "</header>",
        "<main>",
        *_sections(document),
        "</main>",
        f"<footer><p>{_text(document.made)}</p></footer>",
    ]
    head = (
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{_text(document.title)}</title>",
        f"<style>\n{_STYLE}{CHART_STYLE}</style>",
    )
    lines = ("<!DOCTYPE html>", '<html lang="en">', "<head>", *head, "</head>", "<body>", *body, "</body>", "</html>")
    return "\n".join(lines) + "\n"


def _contents(document: Document) -> Iterator[str]:
    """Where to go, in a document that has parts with parts of their own."""
    if any(section.level > 2 for section in document.sections):
        links = (
            f'<li><a href="#{_anchor(section, at)}">{_text(section.title)}</a></li>'
            for at, section in enumerate(document.sections)
            if section.level == 2
        )
        yield f'<nav aria-label="contents"><ul>{"".join(links)}</ul></nav>'


def _anchor(section: Section, at: int) -> str:
    return f"{_NO_SLUG.sub('-', section.title.lower()).strip('-')[:40]}-{at}"


def _sections(document: Document) -> Iterator[str]:
    for at, section in enumerate(document.sections):
        name = _anchor(section, at)
        yield f'<section aria-labelledby="{name}">'
        yield f'<h{section.level} id="{name}">{_text(section.title)}</h{section.level}>'
        yield from map(_block, section.blocks)
        yield "</section>"


def _block(block: Block) -> str:
    if isinstance(block, (Text, Banner)):
        return f"<p>{_text(block.text)}</p>" if isinstance(block, Text) else _banner(block)
    if isinstance(block, Bullets):
        return f"<ul>{''.join(f'<li>{_text(item)}</li>' for item in block.items)}</ul>" if block.items else ""
    if isinstance(block, Facts):
        rows = (f"<dt>{_text(fact.label)}</dt><dd>{_value(fact.value, fact.exact)}</dd>" for fact in block.facts)
        return f"<dl>{''.join(rows)}</dl>"
    if isinstance(block, Grid):
        return _table(block.caption, block.table)
    if isinstance(block, Picture):
        chart = block.chart
        said = " ".join((chart.summary, *chart.notes))
        return f"<figure>{svg(chart, style=False)}<figcaption>{_text(said)}</figcaption></figure>"
    listing = f"<pre><code>{escape(clean(block.text))}</code></pre>"
    return f"<details><summary>{_text(block.title)}</summary>{listing}</details>"


def _banner(banner: Banner) -> str:
    word = f"{_SIGNS[banner.result]} {banner.result or 'No verdict'}"
    kind = f" {banner.result.lower()}" if banner.result else ""
    return f'<div class="verdict{kind}"><strong>{word}</strong><span>{_text(banner.words)}</span></div>'


def _table(caption: str, table: Table) -> str:
    """Numbers stand at the right; the first column names the row."""
    texts = table.texts()
    short = [all(len(row[at]) <= _SHORT for row in texts) for at in range(len(table.headings))]
    kinds = ["number" if right else "short" if few else "" for right, few in zip(table.numeric, short, strict=True)]
    sides = [f' class="{kind}"' if kind else "" for kind in kinds]
    head = "".join(
        f'<th scope="col"{side}>{_text(text)}</th>' if text else f"<td{side}></td>"
        for text, side in zip(table.headings, sides, strict=True)
    )
    rows = ""
    for row in texts:
        cells = (f"<td{side}>{_text(text)}</td>" for text, side in zip(row[1:], sides[1:], strict=True))
        rows += f'<tr><th scope="row"{sides[0]}>{_text(row[0])}</th>{"".join(cells)}</tr>'
    kind = ' class="wide"' if len(table.headings) >= _WIDE else ""
    inside = f"<caption>{_text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="table" role="region" tabindex="0" aria-label="table"><table{kind}>{inside}</table></div>'


def _value(text: str, exact: bool) -> str:
    return f"<code>{_text(text)}</code>" if exact else _text(text)


def _text(text: str) -> str:
    return escape(clean_line(text))
