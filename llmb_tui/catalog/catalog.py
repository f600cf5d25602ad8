"""`Catalog`: all recipes that are known, found by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from llmb_tui.catalog.hardware import Chip, Coefficients
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.errors import Trouble

# llmb-run names the workloads with this prefix, the recipes' folders without it.
_PREFIX = "pretrain_"


class Unknown(Trouble):
    """A name that no preset knows, with the known names that look like it. Exit code 1."""

    def __init__(self, field: str, value: str, known: Iterable[str], broken: Iterable[BrokenPreset] = ()) -> None:
        import difflib  # noqa: PLC0415 - only who mistyped needs it

        names = tuple(dict.fromkeys(known))
        self.field = field
        self.value = value
        self.nearest = tuple(difflib.get_close_matches(value.lower(), names, n=3, cutoff=0.5))
        """The known names that look most like the value, best first; empty if none does."""
        super().__init__(
            f"{field} {value!r} is not known",
            why="\n".join([f"known: {', '.join(names) or 'none'}", *(preset.words for preset in broken)]),
            fix=f"did you mean {' or '.join(self.nearest)}?" if self.nearest else "",
            exit_code=1,
        )


@dataclass(frozen=True, slots=True)
class BrokenPreset:
    """A preset file that was passed over, and of what recipe it seems to be; None where it does not say."""

    words: str
    """What is wrong with it, and where it is."""
    workload: str | None
    release: str | None


@dataclass(frozen=True, eq=False)
class Catalog:
    """Recipes in the order in which they are listed: by workload, newest release first.

    Compared by identity, so that what is derived from it can be cached.
    """

    recipes: tuple[Recipe, ...]
    chips: Mapping[str, Chip] = field(default_factory=dict)
    """By GPU type; empty, as the next: nothing can be modelled."""
    coefficients: Coefficients | None = None
    broken: tuple[BrokenPreset, ...] = ()
    """The user's own presets that cannot be used."""

    def __post_init__(self) -> None:
        by_name = sorted(self.recipes, key=lambda recipe: release_order(recipe.release), reverse=True)
        by_name.sort(key=lambda recipe: recipe.workload)
        object.__setattr__(self, "recipes", tuple(by_name))

    def recipe(self, workload: str, release: str | None = None) -> Recipe:
        """The recipe of that name; the newest release if none is given. Named, and raises, as `releases`."""
        return self.releases(workload, release)[0]

    def releases(self, workload: str, release: str | None = None) -> tuple[Recipe, ...]:
        """The recipe of that name; all releases of the workload, newest first, if none is given.

        `workload` may carry the prefix `pretrain_`, and the release after an `@`.
        Raises `Unknown` for a workload or release that no preset has, and `Trouble` for two different releases.
        """
        name, _, named_release = workload.partition("@")
        if release and named_release and release != named_release:
            raise Trouble(f"two releases are given: {named_release} and {release}", fix="give one", exit_code=1)
        release = release or named_release or None
        releases = self._releases(name) or self._releases(name.removeprefix(_PREFIX))
        if not releases:
            raise Unknown("workload", name, self.workloads(), self._broken(name))
        if release is None:
            return tuple(releases.values())
        if release not in releases:
            raise Unknown("release", release, releases, self._broken(name))
        return (releases[release],)

    def _releases(self, workload: str) -> dict[str, Recipe]:
        return {recipe.release: recipe for recipe in self.recipes if recipe.workload == workload}

    def in_place_of(self, recipe: Recipe) -> tuple[BrokenPreset, ...]:
        """The presets that would be this recipe or a newer release of it, if they could be used."""
        return tuple(
            preset
            for preset in self._broken(recipe.workload)
            if preset.release is None or release_order(preset.release) >= release_order(recipe.release)
        )

    def _broken(self, workload: str) -> tuple[BrokenPreset, ...]:
        """The presets that may be of this workload."""
        return tuple(one for one in self.broken if one.workload in (None, workload.removeprefix(_PREFIX)))

    def workloads(self) -> tuple[str, ...]:
        """Names of all workloads, each once."""
        return tuple(dict.fromkeys(recipe.workload for recipe in self.recipes))

    def gpu_types(self) -> tuple[str, ...]:
        """GPU types that any recipe knows, each once."""
        return tuple(dict.fromkeys(gpu for recipe in self.recipes for gpu in recipe.gpus))

    def dtypes(self) -> tuple[str, ...]:
        """Precisions that any recipe knows, each once."""
        return tuple(dict.fromkeys(dtype for recipe in self.recipes for dtype in recipe.dtypes))


def release_order(release: str) -> tuple[int, ...]:
    """Sort key of a release: 25.4 before 25.12."""
    return tuple(int(part) for part in release.split("."))
