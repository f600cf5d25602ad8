"""The program's own themes can be read: contrast of every role of text on every surface, in each depth of colour."""

from __future__ import annotations

from dataclasses import fields

import pytest
from rich.color import Color, ColorSystem
from textual.app import App

from llmb_tui.ui.themes import OWN_THEMES, Palette, own_themes, palettes

LEAST = 4.5
"""WCAG's least contrast of text (level AA)."""
SURFACES = ("background", "surface", "panel", "cursor", "band")
TEXTS = ("text", "muted", "brand", "source", "measured", "expected", "good", "warning", "danger")
ON_TINT = ("good", "warning", "danger")


def luminance(color: str) -> float:
    channels = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


PAIRS = [
    *((text, surface) for text in TEXTS for surface in SURFACES),
    *((role, f"{role}_tint") for role in ON_TINT),
    *(("ink", f"{role}_fill") for role in ("brand", *ON_TINT)),
]
"""(text, surface) by role, of everything that is drawn on each other."""


def shown(color: str, color_system: str) -> str:
    """The colour that a terminal shows."""
    if color_system == "truecolor":
        return color
    return Color.parse(color).downgrade(ColorSystem.EIGHT_BIT).get_truecolor().hex


@pytest.fixture(params=["truecolor", "256"])
def color_system(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=OWN_THEMES)
def palette(request: pytest.FixtureRequest, color_system: str) -> Palette:
    """The colours of a theme, as a terminal shows them."""
    colors = palettes(color_system)[OWN_THEMES.index(request.param)]
    return Palette(**{field.name: shown(getattr(colors, field.name), color_system) for field in fields(colors)})


def test_every_text_can_be_read_on_every_surface(palette: Palette) -> None:
    ratios = {pair: contrast(getattr(palette, pair[0]), getattr(palette, pair[1])) for pair in PAIRS}
    assert {pair: ratio for pair, ratio in ratios.items() if ratio < LEAST} == {}


def test_surfaces_differ_from_each_other(palette: Palette) -> None:
    assert len({getattr(palette, surface) for surface in SURFACES}) == len(SURFACES)


@pytest.mark.parametrize("name", OWN_THEMES)
async def test_words_have_the_palettes_colours_and_no_blend_with_the_surface(name: str, color_system: str) -> None:
    colors = palettes(color_system)[OWN_THEMES.index(name)]
    app = App[None]()
    for theme in own_themes(color_system):
        app.register_theme(theme)
    async with app.run_test():
        app.theme = name
        variables = app.get_css_variables()
        assert variables["text-success"] == colors.good
        assert variables["text-muted"] == colors.muted
        assert variables["background"].lower() == colors.background
