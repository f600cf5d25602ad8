"""Charts as SVG: well-formed, without external resources, with escaped text and values at their places."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from xml.etree import ElementTree as Xml

import pytest

from llmb_tui.analysis.chart import Axis, Chart, Point, ReferenceLine, Series
from llmb_tui.analysis.charts import efficiency_chart, history_chart, scale_chart, step_chart
from llmb_tui.analysis.scaling import scaling_curves
from llmb_tui.answers.writers.svg import svg
from llmb_tui.language.quantities import step_time
from llmb_tui.plan.over_scale import over_scale
from tests.kit.results import make_result
from tests.kit.runs import CATALOG, CREATED_AT, NEMOTRON

STEPS = [40.0, *(1.97 + 0.01 * (at % 3) for at in range(49))]
RUN = make_result("run1", STEPS)
SCALES = [make_result(f"r{at}", 2.0, replace(NEMOTRON, scale=gpus)) for at, gpus in enumerate((16, 64, 256))]
DAYS = [make_result(f"r{at}", 2 + 0.2 * (at > 3), submitted_at=CREATED_AT + 86_400 * at) for at in range(8)]
CHARTS = {
    "steps": step_chart(RUN),
    "scale": scale_chart(over_scale(CATALOG, NEMOTRON), SCALES, RUN),
    "efficiency": efficiency_chart(scaling_curves(SCALES)[0]),
    "history": history_chart(DAYS),
}
NAMESPACE = "{http://www.w3.org/2000/svg}"


def parsed(chart: Chart | None) -> tuple[str, Xml.Element]:
    assert chart is not None
    text = svg(chart)
    return text, Xml.fromstring(text)


def texts(root: Xml.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{NAMESPACE}text")]


@pytest.mark.parametrize("name", list(CHARTS))
def test_a_chart_is_well_formed_and_has_no_external_resources(name: str) -> None:
    text, root = parsed(CHARTS[name])
    assert root.tag == f"{NAMESPACE}svg"
    assert root.find(f"{NAMESPACE}title") is not None
    assert (root.findtext(f"{NAMESPACE}desc") or "").count(" ") > 5, "a description for readers who cannot see it"
    assert "prefers-color-scheme:dark" in text
    assert re.findall(r"https?://|url\(|href|@import|<script", text) == ["http://"], "only the name of SVG itself"
    assert not re.search(r"\b(?:nan|inf)\b", text)


def assert_readable(root: Xml.Element) -> None:
    """Assert that every label is in the picture and covers no other label."""
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    boxes = []
    for element in root.iter(f"{NAMESPACE}text"):
        wide, bottom = 6.2 * len(element.text or ""), float(element.attrib["y"])
        offset = {"middle": wide / 2, "end": wide}.get(element.attrib.get("text-anchor", ""), 0.0)
        left = float(element.attrib["x"]) - offset
        boxes.append((left, bottom - 9, left + wide, bottom, element.text))
        assert -2 <= left <= left + wide <= width + 14
        assert 0 < bottom <= height
    for index, (left, top, right, bottom, text) in enumerate(boxes):
        for other in boxes[index + 1 :]:
            covers = left < other[2] and other[0] < right and top < other[3] and other[1] < bottom
            assert not covers, (text, other[4])


@pytest.mark.parametrize("name", list(CHARTS))
def test_a_chart_is_readable(name: str) -> None:
    assert_readable(parsed(CHARTS[name])[1])


@pytest.mark.parametrize("seed", range(12))
def test_a_chart_of_any_runs_is_readable(seed: int) -> None:
    numbers = random.Random(seed)
    base, noise = 10 ** numbers.uniform(-2, 3), numbers.choice([0.0, 0.001, 0.01, 0.3])
    times = [
        base * numbers.lognormvariate(0, noise) * (1 if at else 20) for at in range(numbers.choice([1, 3, 50, 900]))
    ]
    run = make_result("x", times)
    root = parsed(step_chart(run))[1]
    assert_readable(root)
    assert run.step_time_s is None or step_time(run.step_time_s) in texts(root)
    scales = sorted(numbers.sample([8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096], numbers.randint(2, 9)))
    runs = [
        make_result(f"s{gpus}{at}", 2 * numbers.lognormvariate(0, 0.1), replace(NEMOTRON, scale=gpus))
        for gpus in scales
        for at in range(numbers.choice([1, 3]))
    ]
    assert_readable(parsed(scale_chart(over_scale(CATALOG, NEMOTRON), runs, runs[0]))[1])
    assert_readable(parsed(efficiency_chart(scaling_curves(runs)[0]))[1])
    every = numbers.choice([900, 86_400, 2_000_000])
    period = numbers.randint(2, 6)
    history = [
        make_result(
            f"d{at}", 2 * numbers.gauss(1, 0.005) * (1 + 0.1 * (at // period % 2)), submitted_at=CREATED_AT + at * every
        )
        for at in range(24)
    ]
    assert_readable(parsed(history_chart(history))[1])


def test_the_value_of_the_run_is_a_label() -> None:
    for name in ("steps", "scale"):
        assert "1.97 s" in texts(parsed(CHARTS[name])[1])
    assert "10 % slower" in texts(parsed(CHARTS["history"])[1])


def test_each_role_has_a_distinct_shape() -> None:
    text, root = parsed(CHARTS["scale"])
    assert {shape.tag.removeprefix(NAMESPACE) for shape in root.iter() if "published" in shape.get("class", "")} == {
        "circle"
    }
    assert "estimated hollow" in text
    assert 'class="this" d="M' in text


def test_a_step_outside_the_chart_is_an_arrow() -> None:
    text, _ = parsed(CHARTS["steps"])
    assert "h8l-4 -6z" in text
    assert "iteration 0: 40" in text


def test_hostile_text_is_escaped() -> None:
    evil = "</text><script>alert(1)</script>&\x1b]0;x\x07\u202e\ufffe\"'"
    chart = Chart(
        "x",
        evil,
        Axis(evil, 0, 1),
        Axis("y", 0, 1),
        rules=(ReferenceLine("published", evil, 0.5), ReferenceLine("change", evil, 0.4, upright=True)),
        series=(Series("this", evil, (Point(0.5, 0.5, evil, name=evil),)),),
        summary=evil,
    )
    text, root = parsed(chart)
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert any("</text><script>alert(1)</script>&" in text for text in texts(root))


def test_a_chart_in_a_page_has_neither_style_nor_namespace() -> None:
    chart = CHARTS["steps"]
    assert chart is not None
    text = svg(chart, style=False)
    assert Xml.fromstring(text).tag == "svg"
    assert "<style" not in text
    assert "http" not in text
