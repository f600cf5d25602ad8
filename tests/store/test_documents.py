from __future__ import annotations

import dataclasses
import json
import math
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from llmb_tui.errors import LlmbError
from llmb_tui.plan.plan import Estimate, Memory, Parallelism, Plan, Problem, PublishedResult
from llmb_tui.plan.selection import Overrides, Selection
from llmb_tui.store.documents import load, save


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Whole:
    kind: Literal["big", "small"]
    parts: tuple[Part, ...]
    env: tuple[tuple[str, str], ...]
    by_name: dict[str, Part]
    loss: float = 0.0
    maybe: int | None = None
    tags: dict[str, str] = field(default_factory=dict)


WHOLE = Whole(
    kind="big",
    parts=(Part("one", (1, 2)), Part("zwei \N{SNOWMAN}")),
    env=(("A", "1"), ("B", "x\ny")),
    by_name={"p": Part("p")},
    loss=1.25,
)

PLAN = Plan(
    selection=Selection("nemotron4", "25.04", "15b", "h100", "bf16", 64, overrides=Overrides(tp=4)),
    scaling="weak",
    nodes=8,
    gpus_per_node=8,
    parallelism=Parallelism(2, 1, 1, 1, 32, None, 2, 256, 4, 4096, 32),
    printed=None,
    published=PublishedResult(2.67, 392725, 65.82, 29.47, "table 3"),
    estimate=Estimate(2.67, 2.56, 2.78, "published", "row", 392725, 58.3, 29.47, 576.8, 3.85e14, 989, "grouped"),
    memory=Memory(34.2, 70.8, 80, "fits"),
    checkpoint_gb=204,
    gpu_hours=2.4,
    steps=50,
    time_limit="00:30:00",
    container="nvidia/nemo:25.02.01",
    problems=(Problem("scale", "note", "reason", "fix"),),
)


@pytest.mark.parametrize("instance", [WHOLE, PLAN], ids=["all shapes", "a plan"])
def test_round_trip(tmp_path: Path, instance: Any) -> None:
    path = tmp_path / "runs" / "document.json"

    save(path, instance)

    assert load(path, type(instance)) == instance
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_numbers_that_are_not_finite_survive(tmp_path: Path) -> None:
    path = tmp_path / "document.json"
    save(path, dataclasses.replace(WHOLE, loss=math.nan))
    assert math.isnan(load(path, Whole).loss)
    save(path, dataclasses.replace(WHOLE, loss=math.inf))
    assert load(path, Whole).loss == math.inf


def test_a_key_of_a_newer_version_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "document.json"
    path.write_text(json.dumps({"name": "one", "sizes": [1], "colour": "red"}))
    assert load(path, Part) == Part("one", (1,))


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ('{"name": 5}', "name"),
        ('{"sizes": []}', "name"),
        ('{"name": "a", "sizes": [1, "2"]}', "sizes.1"),
        ('{"name": "a", "sizes"', "JSON"),
        ("[]", "Part"),
        ("", "JSON"),
        ("\x00\x1b[31m", "JSON"),
    ],
)
def test_content_that_does_not_fit_is_a_trouble_naming_file_and_field(tmp_path: Path, content: str, field: str) -> None:
    path = tmp_path / "document.json"
    path.write_text(content)

    with pytest.raises(LlmbError) as caught:
        load(path, Part)

    assert str(path) in caught.value.what
    assert field in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_no_such_file_is_a_trouble(tmp_path: Path) -> None:
    with pytest.raises(LlmbError, match="Could not read"):
        load(tmp_path / "absent.json", Part)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1E+400"])
def test_a_number_that_is_not_finite_is_refused_on_request(tmp_path: Path, number: str) -> None:
    path = tmp_path / "plan.json"
    save(path, dataclasses.replace(WHOLE, parts=(Part("1e999 of NaN"),)))
    assert load(path, Whole, only_finite=True).loss == WHOLE.loss
    path.write_text(path.read_text().replace('"loss": 1.25', f'"loss": {number}'))
    with pytest.raises(LlmbError, match="does not hold a Whole") as refused:
        load(path, Whole, only_finite=True)
    assert refused.value.why == "One of its numbers is not finite, or too large."
    assert not math.isfinite(load(path, Whole).loss)


@pytest.mark.parametrize("number", ["1e31", "-2.5E300", "1" * 32])
def test_a_number_that_a_chart_cannot_draw_is_refused_on_request(tmp_path: Path, number: str) -> None:
    path = tmp_path / "plan.json"
    save(path, WHOLE)
    path.write_text(path.read_text().replace('"loss": 1.25', f'"loss": {number}'))
    with pytest.raises(LlmbError, match="does not hold a Whole"):
        load(path, Whole, only_finite=True)
