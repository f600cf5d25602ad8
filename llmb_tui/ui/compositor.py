"""`RowCompositor`: paints of each widget the rows in which something has changed; `forget_size`."""

from __future__ import annotations

from collections.abc import Iterable

from textual._compositor import ChopsUpdate, Compositor, CompositorMap, ReflowResult
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget


def forget_size(widget: Widget) -> None:
    """Have the next layout measure the widget again.

    Textual keeps the size that a layout measured while another one was due for the widget, whatever has changed since.
    """
    widget._box_model_cache.clear()


class RowCompositor(Compositor):
    """For a screen whose keys change a few lines of many widgets, as the wizard's do.

    Textual's own asks every widget between the first changed line and the last for all of its lines, and drops those
    that did not change. On the lists and a run's screen both cost the same; those use this one because `reflow`
    repairs a fault.
    """

    _changed: tuple[Region, ...] = ()
    """While changes are painted; empty while all is."""

    _laid_out: CompositorMap = {}  # noqa: RUF012 - replaced, never changed
    """After the layout before."""

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Where a size was asked for between two layouts, Textual compares with a map that has the change already."""
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
        for widget, (region, clip) in self.visible_widgets.items():
            seen = region.intersection(clip)
            changed = [part for one in self._changed if (part := one.intersection(seen))]
            if changed:
                top, bottom = min(part.y for part in changed), max(part.bottom for part in changed)
                rows = Region(seen.x, top, seen.width, bottom - top)
                yield region, rows, widget.render_lines(rows.translate(-region.offset))
