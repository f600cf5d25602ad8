"""`Settings`: the user's settings for all clusters and runs, from `config.toml`, the environment or flags.

Layers, of which the later one wins: the defaults here, the file, variables (`LLMB_TUI_VERDICT__THRESHOLD`), flags
(`--set verdict.threshold=0.97`). pydantic checks them; it is imported only if one of the last three sets a value.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from llmb_tui.errors import LlmbError, error_with_remedy
from llmb_tui.language.text import clean_line
from llmb_tui.store.files import locked, write_atomic
from llmb_tui.toml.bounds import Quantity
from llmb_tui.toml.lines import Lines, syntax_line
from llmb_tui.toml.read import adapter, parse_toml

if TYPE_CHECKING:
    from pydantic import ValidationError

PREFIX = "LLMB_TUI_"
"""Prefix of the environment variables; two underscores separate a table and its key."""

Source = Literal["default", "file", "environment", "flag"]
_Layers = tuple[tuple[Source, Mapping[str, Any]], ...]
_STRICT = {"extra": "forbid"}


@dataclass(frozen=True, slots=True)
class VerdictSettings:
    """Conditions for a run to pass."""

    __pydantic_config__ = _STRICT

    threshold: Annotated[float, Quantity(gt=0, le=1)] = 0.95
    """Smallest ratio of expected to measured step time that passes; 0.95 is the Exemplar programme's."""


THRESHOLD = VerdictSettings().threshold
"""Default of the smallest ratio that passes."""


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """Limit of each run, and the size from which a suite needs a stronger confirmation."""

    __pydantic_config__ = _STRICT

    gpu_hours: Annotated[float, Quantity(gt=0)] | None = None
    """GPU-hours of one run, by its GPUs and its time limit; None: no limit."""
    suite_gpu_hours: Annotated[float, Quantity(gt=0)] = 1000.0
    """Expected GPU-hours of a suite above which the user confirms by typing the number."""


@dataclass(frozen=True, slots=True)
class Settings:
    __pydantic_config__ = _STRICT

    theme: str | None = None
    """Theme of the screens, by its name in the palette; None: Textual's default, or the value of TEXTUAL_THEME."""
    verdict: VerdictSettings = field(default_factory=VerdictSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    keys: Mapping[str, str] = field(default_factory=dict)
    """Key bindings: id (`?` shows them) to keys, separated by commas."""


_TABLES = ("verdict", "limits", "keys")


@dataclass(frozen=True, slots=True)
class Setting:
    """One effective value and its source."""

    name: str
    """Dotted name, such as `verdict.threshold`."""
    value: object
    source: Source


class SettingError(LlmbError):
    """An invalid setting: its place and its key. Exit code 1."""

    def __init__(self, where: str, key: str, why: str, *, file: Path | None = None, line: int | None = None) -> None:
        self.file = file
        """Settings file; None if the setting is in a variable or a flag."""
        self.line = line
        """1-based line; None if the fault concerns the whole file."""
        self.key = key
        """Dotted key; empty if the fault concerns the whole file."""
        super().__init__(
            f"{where} is not a valid setting." if key else f"{where} cannot be read.",
            clean_line(f"{key}: {why}" if key else why),
            "Correct it; `llmb-tui config show` lists all settings and their values.",
            exit_code=1,
        )


def load_settings(file: Path, flags: Sequence[str] = ()) -> Settings:
    """Effective settings. `flags` are `KEY=VALUE`, with dotted keys. Raises SettingError."""
    layers = _layers(file, flags)
    merged: dict[str, Any] = {}
    for _, layer in reversed(layers):
        for name, value in layer.items():
            _put(merged, name, value)
    if not merged:
        return Settings()
    from pydantic import ValidationError  # noqa: PLC0415 - slow to import, and most users have no settings

    try:
        settings: Settings = adapter(Settings).validate_python(merged)
    except ValidationError as error:
        raise _problem(error, file, layers) from error
    return settings


def settings_in_force(file: Path, flags: Sequence[str] = ()) -> tuple[Setting, ...]:
    """Every setting with its source. Raises SettingError."""
    settings = load_settings(file, flags)
    layers = _layers(file, flags)

    def source(path: Sequence[str]) -> Source:
        return next((name for name, layer in layers if _holds(layer, path)), "default")

    rows = []
    for setting in fields(settings):
        value = getattr(settings, setting.name)
        parts = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
        if isinstance(parts, Mapping):
            rows += [Setting(f"{setting.name}.{key}", part, source((setting.name, key))) for key, part in parts.items()]
        else:
            rows.append(Setting(setting.name, parts, source((setting.name,))))
    return tuple(rows)


def keep_theme(file: Path, theme: str) -> None:
    """Store the theme in the file; everything else in it, comments included, is kept. Raises LlmbError."""
    import tomlkit  # noqa: PLC0415 - needed only to change the theme

    with locked(file.parent):
        document = tomlkit.parse(_document(file)[1])
        if document.get("theme") != theme:
            document["theme"] = theme
            write_atomic(file.resolve(), tomlkit.dumps(document).encode())  # the file may be a link


def key_line(file: Path, key: str) -> int:
    """1-based line of a dotted key in the file, or of the nearest line around it."""
    lines = Lines(_document(file)[1])
    table, _, name = key.partition(".")
    return max(lines.of((table, name)), lines.of((table, *name.split("."))))


def _document(file: Path) -> tuple[dict[str, Any], str]:
    try:
        text = file.read_text(encoding="utf-8")
        document = parse_toml(text)
    except FileNotFoundError:
        return {}, ""
    except OSError as error:
        problem = SettingError(str(file), "", f"{error.strerror}.", file=file)
        problem.fix = (error_with_remedy(error) or problem).fix
        raise problem from error
    except (ValueError, RecursionError) as error:
        line = syntax_line(error)
        where = f"{file}, line {line}," if line else str(file)
        raise SettingError(where, "", f"It is not TOML: {error}.", file=file, line=line) from error
    if isinstance(document.get("keys"), dict):
        document["keys"] = dict(_flat(document["keys"]))
    return document, text


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Pairs of dotted ids and values: without quotes, TOML reads the dotted id of a binding as nested tables."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _layers(file: Path, flags: Sequence[str]) -> _Layers:
    """Name and document of each layer, the winning one first. Raises SettingError."""
    return (("flag", _by_flag(flags)), ("environment", _variables()), ("file", _document(file)[0]))


def _by_flag(flags: Sequence[str]) -> dict[str, Any]:
    """Values of the flags. Text that is not a TOML value is a string: `theme=nord` needs no quotes."""
    document: dict[str, Any] = {}
    for flag in flags:
        key, equals, text = flag.partition("=")
        if not equals or not key:
            raise SettingError(f"--set {flag}", key or "KEY", "It has the form KEY=VALUE.")
        try:
            value: object = parse_toml(f"value = {text}")["value"]
        except (ValueError, RecursionError):
            value = text
        _put_named(document, key.partition("."), value)
    return document


def _variables() -> dict[str, Any]:
    """Values of the variables as text, which pydantic converts; a whole table is written as JSON."""
    names = [setting.name for setting in fields(Settings)]
    document: dict[str, Any] = {}
    for variable, text in sorted(os.environ.items()):
        table, separator, name = variable.removeprefix(PREFIX).lower().partition("__")
        if variable.startswith(PREFIX) and table in names:
            whole = not separator and table in _TABLES
            _put_named(document, (table, separator, name), _json(variable, text) if whole else text)
    return document


def _json(variable: str, text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{variable} in the environment", "", f"It is not JSON: {error}.") from error


def _put_named(document: dict[str, Any], parts: tuple[str, str, str], value: object) -> None:
    """Set one value by the parts of its name: table, separator, key."""
    table, separator, name = parts
    _put(document, table, {name: value} if separator else value)


def _put(document: dict[str, Any], name: str, value: object) -> None:
    """Set a value, or some keys of a table. A table that has another value as a whole stays invalid."""
    if name in document and isinstance(value, dict):
        if isinstance(document[name], dict):
            document[name] = {**document[name], **value}
    else:
        document[name] = value


def _problem(error: ValidationError, file: Path, layers: _Layers) -> SettingError:
    """The first fault, with its place in the winning layer."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    names = [str(part) for part in first["loc"]]
    key, why = ".".join(names), f"{first['msg']}."
    if first["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        why = _unknown(names)
    source = next(name for name, layer in layers if _holds(layer, names))
    if source == "flag":
        return SettingError(f"--set {key}", key, why)
    if source == "environment":
        return SettingError(PREFIX + "__".join(names).upper(), key, why)
    line = key_line(file, key)
    return SettingError(f"{file}, line {line},", key, why, file=file, line=line)


def _unknown(names: Sequence[str]) -> str:
    table = getattr(Settings(), names[0], None) if len(names) > 1 else Settings()
    keys = [setting.name for setting in fields(table)] if is_dataclass(table) else []
    from difflib import get_close_matches  # noqa: PLC0415 - needed only after a typing error

    close = get_close_matches(names[-1], keys, n=1)
    return f"There is no such key. Known: {', '.join(keys)}." + (f" Did you mean {close[0]}?" if close else "")


def _holds(layer: Mapping[str, Any], path: Sequence[str]) -> bool:
    """True if a layer sets a setting, or its table as a whole."""
    for name in path:
        if name not in layer:
            return False
        if not isinstance(layer[name], Mapping):
            return True
        layer = layer[name]
    return True
