"""Pictures are compared with those of the pinned Textual; no test waits for a full garbage collection."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import textual
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

from tests.conftest import NOT_RUN

_LOCK = Path(__file__).parents[2] / "requirements.lock"
_PINNED = re.findall(r"^textual==(\S+)", _LOCK.read_text(encoding="utf-8"), re.MULTILINE)[0]


@pytest.fixture
def snap_compare(request: pytest.FixtureRequest, snap_compare: Any) -> Any:
    """Textual's fixture, for the pinned version only: others move edges and colours, so that no picture matches."""
    if textual.__version__ != _PINNED and not request.config.getoption("update_snapshots"):
        drawn = f"the pictures were drawn by Textual {_PINNED}, and {textual.__version__} is installed"
        pytest.skip(f"{NOT_RUN}{drawn}: `make` installs the pinned one, `--snapshot-update` draws them again")
    return snap_compare


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable animations, and variables of the caller's environment that change colours or receive the clipboard."""
    monkeypatch.setattr("textual.constants.TEXTUAL_ANIMATIONS", "none")
    for name in ("NO_COLOR", "TEXTUAL_THEME", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session", autouse=True)
def _never_frozen() -> Iterator[None]:
    """The wizard calls `gc.freeze` once per program; here hundreds of wizards follow each other in one process."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        nothing = {name: lambda: None for name in ("collect", "freeze", "enable")}
        monkeypatch.setattr("llmb_tui.ui.app.gc", SimpleNamespace(**nothing))
        yield


@pytest.fixture(scope="session", autouse=True)
def _styles_once() -> Iterator[None]:
    """Parse the styles of a widget once per process, not once for each of its hundreds of apps."""
    parse, parsed = Stylesheet._parse_rules, dict[Any, list[RuleSet]]()

    def once(sheet: Stylesheet, *source: Any, **options: Any) -> list[RuleSet]:
        key = (source, *sorted(options.items()), *sorted(sheet._variables.items()))
        if key not in parsed:
            parsed[key] = parse(sheet, *source, **options)
        return parsed[key]

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(Stylesheet, "_parse_rules", once)
        yield
