"""`Catalog`: all known recipes, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from llmb_tui.catalog.hardware import Chip, Coefficients
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.errors import LlmbError

# Workloads of llmb-run have this prefix; the folders of the recipes do not.
_PREFIX = "pretrain_"


class UnknownNameError(LlmbError):
    """A name that no preset has, with similar names. Exit code 1."""

    def __init__(self, field: str, value: str, known: Iterable[str], broken: Iterable[BrokenPreset] = ()) -> None:
        import difflib  # noqa: PLC0415 - needed only after a typo

        names = tuple(dict.fromkeys(known))
        self.field = field
        self.value = value
        self.nearest = tuple(difflib.get_close_matches(value.lower(), names, n=3, cutoff=0.5))
        """Similar known names, best match first; may be empty."""
        super().__init__(
            f"{field} {value!r} is unknown",
            why="\n".join([f"Known: {', '.join(names) or 'none'}", *(preset.words for preset in broken)]),
            fix=f"Did you mean {' or '.join(self.nearest)}?" if self.nearest else "",
            exit_code=1,
        )


@dataclass(frozen=True, slots=True)
class BrokenPreset:
    """An invalid preset file, and the recipe that it names; None for a name that is missing."""

    words: str
    """Message with the file and the fault."""
    workload: str | None
    release: str | None


@dataclass(frozen=True, eq=False)
class Catalog:
    """Recipes by workload, newest release first.

    Compared by identity, so that derived values can be cached.
    """

    recipes: tuple[Recipe, ...]
    chips: Mapping[str, Chip] = field(default_factory=dict)
    """By GPU type. The model needs this and `coefficients`."""
    coefficients: Coefficients | None = None
    broken: tuple[BrokenPreset, ...] = ()
    """Invalid presets of the user."""

    def __post_init__(self) -> None:
        by_name = sorted(self.recipes, key=lambda recipe: release_order(recipe.release), reverse=True)
        by_name.sort(key=lambda recipe: recipe.workload)
        object.__setattr__(self, "recipes", tuple(by_name))

    def recipe(self, workload: str, release: str | None = None) -> Recipe:
        """The recipe of that name; the newest release if none is given. Takes names and raises as `releases` does."""
        return self.releases(workload, release)[0]

    def releases(self, workload: str, release: str | None = None) -> tuple[Recipe, ...]:
        """The recipe of that name; all releases of the workload, newest first, if none is given.

        `workload` may carry the prefix `pretrain_`, and the release after an `@`.
        Raises `UnknownNameError` for a workload or release without a preset, and `LlmbError` for two different
        releases.
        """
        name, _, named_release = workload.partition("@")
        if release and named_release and release != named_release:
            raise LlmbError(f"Two releases are given: {named_release} and {release}.", fix="Give one.", exit_code=1)
        release = release or named_release or None
        releases = self._releases(name) or self._releases(name.removeprefix(_PREFIX))
        if not releases:
            raise UnknownNameError("workload", name, self.workloads(), self._broken(name))
        if release is None:
            return tuple(releases.values())
        if release not in releases:
            raise UnknownNameError("release", release, releases, self._broken(name))
        return (releases[release],)

    def _releases(self, workload: str) -> dict[str, Recipe]:
        return {recipe.release: recipe for recipe in self.recipes if recipe.workload == workload}

    def in_place_of(self, recipe: Recipe) -> tuple[BrokenPreset, ...]:
        """Invalid presets of this recipe or of a newer release of it."""
        return tuple(
            preset
            for preset in self._broken(recipe.workload)
            if preset.release is None or release_order(preset.release) >= release_order(recipe.release)
        )

    def _broken(self, workload: str) -> tuple[BrokenPreset, ...]:
        """Invalid presets that may belong to this workload."""
        return tuple(preset for preset in self.broken if preset.workload in (None, workload.removeprefix(_PREFIX)))

    def workloads(self) -> tuple[str, ...]:
        """Names of all workloads, each once."""
        return tuple(dict.fromkeys(recipe.workload for recipe in self.recipes))

    def gpu_types(self) -> tuple[str, ...]:
        """GPU types of all recipes, each once."""
        return tuple(dict.fromkeys(gpu for recipe in self.recipes for gpu in recipe.gpus))

    def dtypes(self) -> tuple[str, ...]:
        """Precisions of all recipes, each once."""
        return tuple(dict.fromkeys(dtype for recipe in self.recipes for dtype in recipe.dtypes))


def release_order(release: str) -> tuple[int, ...]:
    """Sort key of a release: 25.4 before 25.12."""
    return tuple(int(part) for part in release.split("."))
