"""`read_request`: a selection from flags or a line of JSON; an error names the field and valid values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from llmb_tui.catalog.catalog import Catalog, UnknownNameError
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.errors import LlmbError
from llmb_tui.language.json_text import parse_json
from llmb_tui.plan.document import document
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan, note
from llmb_tui.plan.resolved import scale_rows
from llmb_tui.plan.selection import (
    FIELDS,
    LAYOUT,
    LONGEST_PATH,
    OPTIONS,
    VARIANTS,
    OptionKind,
    Overrides,
    RunOptions,
    Selection,
)

# Larger than any machine, and small enough for all derived numbers.
_LARGEST = 2**31 - 1
# Longer names are cut before they are looked up and quoted.
_LONGEST = 100
_KEYS = (*FIELDS, *(field.name for field in VARIANTS))


class InvalidRequestError(LlmbError):
    """An invalid request: the field (empty for the whole request) and similar valid values. Exit code 1."""

    def __init__(self, field: str, what: str, nearest: Iterable[str] = (), fix: str = "") -> None:
        self.field = field
        self.nearest = tuple(nearest)
        super().__init__(what, fix=f"Did you mean {' or '.join(self.nearest)}?" if self.nearest else fix, exit_code=1)


def read_request(catalog: Catalog, request: Mapping[str, Any]) -> Selection:
    """The selection of a request. A key with the value None counts as missing.

    Keys are those of `FIELDS`, and of `VARIANTS`, whose values must be the recipe's. `workload` may contain `@RELEASE`
    and the prefix `pretrain_`; without a release, the newest release that lists the configuration is used, else the
    newest that has the size. Names may be in upper case. Raises `InvalidRequestError` or `UnknownNameError`; both have
    `field` and `nearest`.
    """
    values = {key: value for key, value in request.items() if value is not None}
    unknown = next((str(key)[:_LONGEST] for key in values if key not in _KEYS), None)
    if unknown is not None:
        from difflib import get_close_matches  # noqa: PLC0415 - needed only after a typo

        nearest = get_close_matches(unknown.lower(), _KEYS, n=3)
        raise InvalidRequestError(unknown, f"{unknown!r} is not a field of a selection", nearest)
    releases = _releases(catalog, values)
    scale = _whole(values, "scale")
    if scale is None:
        raise InvalidRequestError("scale", "scale is missing", fix="It is the number of GPUs.")
    if scale < FIELDS["scale"].least:
        raise InvalidRequestError("scale", f"scale must be at least {FIELDS['scale'].least}")
    size = _name(values, "size", tuple(dict.fromkeys(name for recipe in releases for name in recipe.models)))
    with_size = [recipe for recipe in releases if size in recipe.models]
    chosen = Selection(
        workload=with_size[0].workload,
        release=with_size[0].release,
        size=size,
        gpu=_name(values, "gpu", catalog.gpu_types()),
        dtype=_name(values, "dtype", catalog.dtypes()),
        scale=scale,
        strong_scaling=_switch(values, "strong_scaling"),
        overrides=Overrides(**{field.name: _whole(values, field.name) for field in LAYOUT if field.name in values}),
        steps=_whole(values, "steps"),
        time_limit=_text(values, "time_limit"),
        options=RunOptions(
            **{field.name: _READERS[field.kind](values, field.name) for field in OPTIONS if field.name in values}
        ),
    )
    recipe = next((recipe for recipe in with_size if _lists(recipe, chosen)), with_size[0])
    _refuse_other_variants(recipe, chosen.dtype, values)
    return replace(chosen, release=recipe.release)


def _refuse_other_variants(recipe: Recipe, dtype: str, values: Mapping[str, Any]) -> None:
    for field, variant in zip(VARIANTS, (recipe.variant(dtype), None), strict=True):
        requested = _text(values, field.name)
        if requested is not None and requested.lower() != variant:
            what = f"{recipe.id} has no {field.name.replace('_', ' ')} {requested!r} in {dtype}"
            nearest = (variant,) if variant else ()
            raise InvalidRequestError(field.name, f"{what}; it has {variant or 'none'}", nearest)


def _lists(recipe: Recipe, chosen: Selection) -> bool:
    return scale_rows(recipe, chosen.size, chosen.gpu, chosen.dtype, chosen.strong_scaling).lists(chosen)


def plan_request(catalog: Catalog, request: Mapping[str, Any]) -> Plan:
    """The plan of a request, with a note if a later release does not list the configuration.

    Raises as `read_request` does.
    """
    chosen = read_request(catalog, request)
    planned, newest = plan(catalog, chosen), _releases(catalog, request)[0]
    if newest.release == chosen.release:
        return planned
    later = note("release", f"A later release, {newest.id}, does not list this configuration.")
    return replace(planned, problems=(*planned.problems, later))


def plan_line(catalog: Catalog, line: str) -> dict[str, Any]:
    """The document of a plan, or of an error, for a line of JSON.

    `field` of an error is empty if the error concerns the whole line.
    """
    try:
        return document(plan_request(catalog, _read_line(line)))
    except (InvalidRequestError, UnknownNameError) as error:
        text = f"{error.what}; {error.why}" if error.why else error.what
        return {"error": text, "field": error.field, "nearest": list(error.nearest)}


def _read_line(line: str) -> dict[str, Any]:
    try:
        request = parse_json(line)
    except ValueError as error:
        raise InvalidRequestError("", f"not JSON: {error}") from error
    if not isinstance(request, dict):
        raise InvalidRequestError("", "not a JSON object")
    return request


def _releases(catalog: Catalog, values: Mapping[str, Any]) -> tuple[Recipe, ...]:
    """The named release, or all releases of the workload, newest first."""
    workload, release = _text(values, "workload"), _text(values, "release")
    if workload is None:
        raise InvalidRequestError("workload", "workload is missing", catalog.workloads())
    try:
        return catalog.releases(workload.lower(), release)
    except UnknownNameError:
        raise
    except LlmbError as error:  # two different releases
        raise InvalidRequestError("release", error.what) from error


def _name(values: Mapping[str, Any], field: str, choices: tuple[str, ...]) -> str:
    name = _text(values, field)
    if name is None:
        raise InvalidRequestError(field, f"{field} is missing", choices)
    if name.lower() not in choices:
        raise UnknownNameError(field, name, choices)
    return name.lower()


def _text(values: Mapping[str, Any], field: str) -> str | None:
    text = _whole_text(values, field)
    return text[:_LONGEST] if text else text


def _path(values: Mapping[str, Any], field: str) -> str | None:
    path = _whole_text(values, field)
    if path and len(path) > LONGEST_PATH:
        raise InvalidRequestError(field, f"{field} is longer than {LONGEST_PATH} characters")
    return path


def _whole_text(values: Mapping[str, Any], field: str) -> str | None:
    value = values.get(field)
    if value is not None and not isinstance(value, str):
        raise InvalidRequestError(field, f"{field} must be text")
    return value


def _switch(values: Mapping[str, Any], field: str) -> bool:
    value = values.get(field, False)
    if not isinstance(value, bool):
        raise InvalidRequestError(field, f"{field} must be true or false")
    return value


def _whole(values: Mapping[str, Any], field: str) -> int | None:
    value = values.get(field)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidRequestError(field, f"{field} must be a whole number")
    if abs(value) > _LARGEST:
        raise InvalidRequestError(field, f"{field} is larger than {_LARGEST}")
    return value


_READERS: dict[OptionKind, Callable[[Mapping[str, Any], str], Any]] = {
    "number": _whole,
    "switch": _switch,
    "text": _text,
    "path": _path,
}
