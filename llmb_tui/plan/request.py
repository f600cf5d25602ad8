"""`read_request`: a selection from flags or from a line of JSON; what cannot be read is answered with what would be."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from llmb_tui.catalog.catalog import Catalog, Unknown
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.errors import Trouble
from llmb_tui.plan.document import document
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Overrides, RunOptions, Selection

_OVERRIDES = tuple("tp pp cp ep vp mbs gbs seq_len layers".split())
_SWITCHES = tuple("hub_tokenizer profile nccl_trace save_checkpoint".split())
_OPTIONS = (*_SWITCHES, "profile_start", "profile_stop", "load_checkpoint")
KEYS = (
    *"workload release size gpu dtype scale strong_scaling".split(),
    *_OVERRIDES,
    "steps",
    "time_limit",
    *_OPTIONS,
)
"""What a request may hold: the long flags, with underscores."""
_KNOWN = frozenset(KEYS)
# More than any machine has, and small enough for every number that is made from it.
_LARGEST = 2**31 - 1
# Longer names are cut before they are searched for and quoted.
_LONGEST = 100
_LONGEST_PATH = 4096


class Unreadable(Trouble):
    """A request that is no selection: which field (empty for the whole), and what it could be. Exit code 1."""

    def __init__(self, field: str, what: str, nearest: Iterable[str] = ()) -> None:
        self.field = field
        self.nearest = tuple(nearest)
        super().__init__(what, fix=f"did you mean {' or '.join(self.nearest)}?" if self.nearest else "", exit_code=1)


def read_request(catalog: Catalog, request: Mapping[str, Any]) -> Selection:
    """The selection that a request means; a key whose value is None counts as not given.

    `workload` may carry `@RELEASE` and the prefix `pretrain_`; without a release the newest is meant. Names may
    be in upper case. Raises `Unreadable` or `Unknown`: both have `field` and `nearest`.
    """
    given = {key: value for key, value in request.items() if value is not None}
    if not _KNOWN.issuperset(given):
        key = next(str(key)[:_LONGEST] for key in given if key not in _KNOWN)
        raise Unreadable(key, f"{key!r} is no key of a selection", get_close_matches(key.lower(), KEYS, n=3))
    recipe = _recipe(catalog, given)
    scale = _whole(given, "scale")
    if scale is None or scale < 1:
        raise Unreadable("scale", "scale is missing" if scale is None else "scale must be at least 1")
    return Selection(
        workload=recipe.workload,
        release=recipe.release,
        size=_name(given, "size", tuple(recipe.models)),
        gpu=_name(given, "gpu", catalog.gpu_types()),
        dtype=_name(given, "dtype", catalog.dtypes()),
        scale=scale,
        strong_scaling=_switch(given, "strong_scaling"),
        overrides=Overrides(*(_whole(given, name) for name in _OVERRIDES)),
        steps=_whole(given, "steps"),
        time_limit=_text(given, "time_limit"),
        options=_options(given),
    )


def _options(given: Mapping[str, Any]) -> RunOptions:
    return RunOptions(
        **{name: _switch(given, name) for name in _SWITCHES},
        profile_start=_whole(given, "profile_start"),
        profile_stop=_whole(given, "profile_stop"),
        load_checkpoint=_path(given, "load_checkpoint"),
    )


def plan_lines(catalog: Catalog, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The document of a plan, or of an error, for each line of JSON, in the same order. Bad lines don't stop it."""
    for line in lines:
        try:
            yield document(plan(catalog, read_request(catalog, _read_line(line))))
        except (Unreadable, Unknown) as trouble:
            yield error_document(trouble)


def error_document(trouble: Unreadable | Unknown) -> dict[str, Any]:
    """The JSON object for a request that cannot be read: `field` is empty where the whole line is meant."""
    error = f"{trouble.what}; {trouble.why}" if trouble.why else trouble.what
    return {"error": error, "field": trouble.field, "nearest": list(trouble.nearest)}


def _read_line(line: str) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Unreadable("", f"not JSON: {error}") from error
    if not isinstance(request, dict):
        raise Unreadable("", "not a JSON object")
    return request


def _recipe(catalog: Catalog, given: Mapping[str, Any]) -> Recipe:
    workload, release = _text(given, "workload"), _text(given, "release")
    if workload is None:
        raise Unreadable("workload", "workload is missing", catalog.workloads())
    try:
        return catalog.recipe(workload.lower(), release)
    except Unknown:
        raise
    except Trouble as trouble:  # two different releases
        raise Unreadable("release", trouble.what) from trouble


def _name(given: Mapping[str, Any], field: str, known: tuple[str, ...]) -> str:
    name = _text(given, field)
    if name is None:
        raise Unreadable(field, f"{field} is missing", known)
    if name.lower() not in known:
        raise Unknown(field, name, known)
    return name.lower()


def _text(given: Mapping[str, Any], field: str) -> str | None:
    text = _whole_text(given, field)
    return text[:_LONGEST] if text else text


def _path(given: Mapping[str, Any], field: str) -> str | None:
    path = _whole_text(given, field)
    if path and len(path) > _LONGEST_PATH:
        raise Unreadable(field, f"{field} is longer than {_LONGEST_PATH} characters")
    return path


def _whole_text(given: Mapping[str, Any], field: str) -> str | None:
    value = given.get(field)
    if value is not None and not isinstance(value, str):
        raise Unreadable(field, f"{field} must be text")
    return value


def _switch(given: Mapping[str, Any], field: str) -> bool:
    value = given.get(field, False)
    if not isinstance(value, bool):
        raise Unreadable(field, f"{field} must be true or false")
    return value


def _whole(given: Mapping[str, Any], field: str) -> int | None:
    value = given.get(field)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise Unreadable(field, f"{field} must be a whole number")
    if abs(value) > _LARGEST:
        raise Unreadable(field, f"{field} is larger than {_LARGEST}")
    return value
