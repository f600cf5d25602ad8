"""`RowCompositor`: paint only the changed rows of each widget. `forget_size`: measure a widget again."""

from __future__ import annotations

from collections.abc import Iterable

from textual._compositor import ChopsUpdate, Compositor, CompositorMap, ReflowResult
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget


def forget_size(widget: Widget) -> None:
    """Make the next layout measure the widget again.

    If a layout ran while a second layout was due, Textual keeps the size that it measured, even if the widget has
    changed.
    """
    widget._box_model_cache.clear()


class RowCompositor(Compositor):
    """Compositor for a screen whose keys change a few lines of many widgets, such as the wizard.

    Textual's compositor asks every widget between the first and the last changed line for all its lines, and drops
    the unchanged ones. On the lists and the screen of a run both cost the same; these screens use this class because
    its `reflow` works around a fault of Textual.
    """

    _changed: tuple[Region, ...] = ()
    """Changed regions during a partial update; empty during a full one."""

    _laid_out: CompositorMap = {}  # noqa: RUF012 - replaced, never changed
    """Map of the last layout."""

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Compare with the map of the last layout. Textual misses changes if a size was queried in between."""
        result = super().reflow(parent, size)
        changes = self._full_map.items() ^ self._laid_out.items()
        self._laid_out = self._full_map
        self._dirty_regions.update(filter(None, (place.clip.intersection(place.region) for _, place in changes)))
        return result

    def render_partial_update(self) -> ChopsUpdate | None:
        self._changed = tuple(self._dirty_regions)
        try:
            return super().render_partial_update()
        finally:
            self._changed = ()

    def _get_renders(self, crop: Region | None = None) -> Iterable[tuple[Region, Region, list[Strip]]]:
        if not self._changed:
            yield from super()._get_renders(crop)
            return
        for widget, (position, clip) in self.visible_widgets.items():
            seen = position.intersection(clip)
            changed = [part for region in self._changed if (part := region.intersection(seen))]
            if changed:
                top, bottom = min(part.y for part in changed), max(part.bottom for part in changed)
                rows = Region(seen.x, top, seen.width, bottom - top)
                yield position, rows, widget.render_lines(rows.translate(-position.offset))
