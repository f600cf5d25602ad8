"""The program's own themes, dark and light: a colour for each role, for true colour and for 256 colours.

A terminal with 256 colours gets exact entries of its palette. Conversion of the other colours would make two surfaces
equal and leave text on the cursor row with a contrast of 2.8 : 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from textual.color import BLACK, WHITE, Color
from textual.theme import Theme

from llmb_tui.ui.key_order import KeyOrder


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours by role, as `#rrggbb`."""

    background: str
    surface: str
    """Panes and bars."""
    panel: str
    """Fields and key caps."""
    cursor: str
    """The row of the cursor."""
    band: str
    """The band of expected values behind a line."""
    separator: str
    """Lines and tracks of scrollbars; never words."""
    text: str
    muted: str
    """Labels, notes, units and times."""
    brand: str
    """Focus, the user's choice and the current step."""
    source: str
    """Published values."""
    measured: str
    expected: str
    """Estimated values."""
    good: str
    warning: str
    danger: str
    good_tint: str
    """Surface of a badge in a list, and of a verdict that is not final. The other tints likewise."""
    warning_tint: str
    danger_tint: str
    brand_fill: str
    """Surface of the most important badge; its text is `ink`. The other fills likewise."""
    good_fill: str
    warning_fill: str
    danger_fill: str
    ink: str


DARK = Palette(
    background="#10121a", surface="#181b26", panel="#232838", cursor="#303850", band="#26354f", separator="#454d68",
    text="#e7e9f3", muted="#a0a8c0", brand="#b9a2ff", source="#8db4ff", measured="#5fe3e0", expected="#8caad0",
    good="#7ddc96", warning="#f3c35a", danger="#ff8b86",
    good_tint="#1c3a2a", warning_tint="#413314", danger_tint="#47212a",
    brand_fill="#6a48cf", good_fill="#1d7a45", warning_fill="#8a5a08", danger_fill="#b93437", ink="#ffffff",
)  # fmt: skip
LIGHT = Palette(
    background="#fbfbfd", surface="#f1f2f8", panel="#e3e6f1", cursor="#d7dbef", band="#d5e1f5", separator="#a9b0c8",
    text="#1b1e2b", muted="#525a72", brand="#5b34c9", source="#1f55c0", measured="#006470", expected="#41597f",
    good="#136c3a", warning="#825200", danger="#b3222b",
    good_tint="#d8f0df", warning_tint="#fbe9c4", danger_tint="#fbdcdc",
    brand_fill="#5b34c9", good_fill="#1d7a45", warning_fill="#8a5a08", danger_fill="#b93437", ink="#ffffff",
)  # fmt: skip


def indexed_color(index: int) -> str:
    """Colour that Rich converts to an entry from 16 to 255 of the palette of xterm, as `#rrggbb`.

    Rich converts a grey to one of 25 equal parts of its lightness, which is not always the nearest entry.
    """
    if index >= 232:
        grey = round((index - 231) * 255 / 25)
        return f"#{grey:02x}{grey:02x}{grey:02x}"
    levels = (0, 95, 135, 175, 215, 255)
    red, green, blue = (levels[(index - 16) // step % 6] for step in (36, 6, 1))
    return f"#{red:02x}{green:02x}{blue:02x}"


def _indexed(**entries: int) -> Palette:
    return Palette(**{role: indexed_color(index) for role, index in entries.items()})


DARK_256 = _indexed(
    background=233, surface=235, panel=237, cursor=18, band=17, separator=243,
    text=255, muted=249, brand=183, source=111, measured=80, expected=110, good=114, warning=221, danger=210,
    good_tint=22, warning_tint=58, danger_tint=52,
    brand_fill=97, good_fill=28, warning_fill=94, danger_fill=124, ink=231,
)  # fmt: skip
LIGHT_256 = _indexed(
    background=231, surface=255, panel=254, cursor=189, band=195, separator=248,
    text=234, muted=240, brand=56, source=25, measured=23, expected=239, good=22, warning=58, danger=124,
    good_tint=194, warning_tint=229, danger_tint=224,
    brand_fill=56, good_fill=28, warning_fill=94, danger_fill=124, ink=231,
)  # fmt: skip

OWN_THEMES = ("llmb-dark", "llmb-light")
"""Names of the dark and the light theme."""


def palettes(color_system: str | None) -> tuple[Palette, Palette]:
    """The dark and the light palette for a terminal with this colour system of Rich's console."""
    return (DARK_256, LIGHT_256) if color_system == "256" else (DARK, LIGHT)


def own_themes(color_system: str | None) -> tuple[Theme, Theme]:
    """The dark and the light theme for a terminal with this colour system of Rich's console."""
    dark, light = palettes(color_system)
    return _theme(OWN_THEMES[0], dark, dark=True), _theme(OWN_THEMES[1], light, dark=False)


def _theme(name: str, palette: Palette, *, dark: bool) -> Theme:
    """Theme whose derived text colours are the palette's too: Textual's would be blended with the surface."""
    return Theme(
        name,
        primary=palette.brand,
        secondary=palette.source,
        accent=palette.brand,
        success=palette.good,
        warning=palette.warning,
        error=palette.danger,
        foreground=palette.text,
        background=palette.background,
        surface=palette.surface,
        panel=palette.panel,
        dark=dark,
        variables={
            "muted": palette.muted,
            "source": palette.source,
            "measured": palette.measured,
            "expected": palette.expected,
            "ink": palette.ink,
            "good-fill": palette.good_fill,
            "warning-fill": palette.warning_fill,
            "danger-fill": palette.danger_fill,
            "good-tint": palette.good_tint,
            "warning-tint": palette.warning_tint,
            "danger-tint": palette.danger_tint,
            "text-muted": palette.muted,
            "text-primary": palette.brand,
            "text-secondary": palette.source,
            "text-accent": palette.brand,
            "text-success": palette.good,
            "text-warning": palette.warning,
            "text-error": palette.danger,
            "border": palette.brand,
            "border-blurred": palette.separator,
            "block-cursor-background": palette.cursor,
            "block-cursor-foreground": palette.text,
            "block-cursor-blurred-background": palette.panel,
            "block-cursor-blurred-foreground": palette.text,
            "footer-background": palette.surface,
            "footer-foreground": palette.text,
            "footer-key-foreground": palette.brand,
            "footer-description-foreground": palette.muted,
            "input-selection-background": palette.band,
            "scrollbar": palette.separator,
            "scrollbar-hover": palette.muted,
            "scrollbar-active": palette.brand,
            "scrollbar-background": palette.surface,
            "scrollbar-background-hover": palette.surface,
            "scrollbar-background-active": palette.surface,
            "scrollbar-corner-color": palette.surface,
        },
    )


_ANSI_ROLES = {
    "muted": "ansi_default",
    "source": "ansi_cyan",
    "measured": "ansi_bright_cyan",
    "expected": "ansi_default",
    "ink": "ansi_black",
    "good-fill": "ansi_green",
    "warning-fill": "ansi_yellow",
    "danger-fill": "ansi_bright_red",
    "good-tint": "ansi_default",
    "warning-tint": "ansi_default",
    "danger-tint": "ansi_default",
}


class ThemedApp(KeyOrder):
    """App with the program's own themes. Every other theme has the same roles, in colours of its own."""

    def __init__(self) -> None:
        super().__init__()
        for theme in own_themes(self.console.color_system):
            self.register_theme(theme)
        self.theme = OWN_THEMES[0]

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Roles that a theme of Textual lacks."""
        theme = self.current_theme
        if theme.name in OWN_THEMES:
            return {}
        if theme.ansi:
            return _ANSI_ROLES
        colors = theme.to_color_system().generate()
        text, background = Color.parse(colors["foreground"]), Color.parse(colors["background"])
        roles = {
            "muted": text.blend(background, 0.35, alpha=1.0).hex,
            "source": colors["text-secondary"],
            "measured": colors["text-primary"],
            "expected": colors["text-secondary"],
            "ink": WHITE.hex,
        }
        for role, name in (("good", "success"), ("warning", "warning"), ("danger", "error")):
            color = Color.parse(colors[name])
            roles[f"{role}-fill"] = color.blend(BLACK, 0.6, alpha=1.0).hex
            roles[f"{role}-tint"] = color.blend(background, 0.85, alpha=1.0).hex
        return roles
