"""`difference`: differences between two runs besides their times: versions, environment, settings, script. Pure.

The sources are the submitted specification and script of each run, and what its log states about driver, container and
libraries. Missing facts are reported as unknown. Names that differ in every run, such as its id and folders, are
ignored.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Literal

from llmb_tui.analysis.result import configuration_of
from llmb_tui.language.redact import hidden_value, without_secrets
from llmb_tui.language.text import clean
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.launch.run import Run
from llmb_tui.plan.selection import is_given
from llmb_tui.watch.log_facts import LogFacts

_OWN = frozenset(
    "run_id experiment task experiment_dir task_dir job_name folder workload log files env overridden".split()
)
"""Fields of a spec that belong to one run, or that are compared by their parts."""
_WANTED = ("driver", "NCCL", "NeMo")
"""Versions that may explain a difference in speed."""
_PLAN = "configs/plan.json"
_LONG_LINE = 160
_LONGEST_DIFF = 400
Part = Literal["versions", "plan", "launch", "environment", "settings"]


@dataclass(frozen=True, slots=True)
class RunSources:
    """One run with the sources of a comparison."""

    run: Run
    script: str
    """Submitted script; empty if it is not stored."""
    facts: LogFacts | None
    """Facts of its log; None without a log."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. Texts are clean and contain no secrets."""

    part: Part
    """Source of the difference. `versions`: from the log; `settings`: NeMo's settings, from the log."""
    name: str
    before: str | None
    """Value in the earlier run; None if it is not set there."""
    after: str | None


@dataclass(frozen=True, slots=True)
class TextDiff:
    """Difference of a text in the form of `diff -u`. Clean, and without secrets."""

    name: str
    lines: tuple[str, ...]
    cut: int = 0
    """Number of lines omitted at the end."""


@dataclass(frozen=True, slots=True)
class RunDifference:
    """Differences from an earlier run to a later one."""

    before: str
    """Id of the earlier run."""
    after: str
    changes: tuple[Change, ...]
    texts: tuple[TextDiff, ...]
    unknown: tuple[str, ...]
    """Facts that are missing, one sentence each."""


def difference(before: RunSources, after: RunSources) -> RunDifference:
    """Differences between two runs; a fact that is known of only one of them is no difference."""
    changes = [change for part, read in _PARTS.items() for change in _changes(part, read(before), read(after))]
    old, new = _texts(before), _texts(after)
    texts = [_text_diff(name, old[name], new[name]) for name in old if name in new]
    differ, unknown = tuple(text for text in texts if text.lines), tuple(_unknown(before, after))
    return RunDifference(before.run.id, after.run.id, tuple(changes), differ, unknown)


def _changes(part: Part, before: Mapping[str, str] | None, after: Mapping[str, str] | None) -> Iterator[Change]:
    if before is not None and after is not None:
        for name in dict.fromkeys((*before, *after)):
            old, new = before.get(name), after.get(name)
            # A version that one log does not name is unknown; a setting that only one run has is a difference.
            if old != new and (part != "versions" or None not in (old, new)):
                yield Change(part, clean(name), _shown(name, old), _shown(name, new))


def _shown(name: str, value: str | None) -> str | None:
    return None if value is None else clean(hidden_value(name, value))


def _versions(sources: RunSources) -> dict[str, str]:
    return sources.facts.versions_by_name if sources.facts else {}


def _plan(sources: RunSources) -> dict[str, str]:
    """Trained configuration, and where it was trained."""
    run = sources.run
    configuration = configuration_of(run.plan)
    values: dict[str, object] = {}
    for part in (configuration, configuration.layout, configuration.options):
        values |= {field.name: getattr(part, field.name) for field in fields(part)}
    del values["layout"], values["options"]
    values |= {"steps": run.plan.steps, "container": run.plan.container, "cluster": run.cluster}
    values["procedure"] = PROCEDURES[run.procedure].title
    return {name: _plain(value, run) for name, value in values.items() if is_given(value)}


def _launch(sources: RunSources) -> dict[str, str] | None:
    """Fields of the run's spec that have a value."""
    spec = sources.run.spec
    if spec is None:
        return None
    values = {field.name: getattr(spec, field.name) for field in fields(spec) if field.name not in _OWN}
    return {name: text for name, value in values.items() if (text := _plain(value, sources.run))}


def _environment(sources: RunSources) -> dict[str, str] | None:
    """Environment variables; None for NVIDIA's scripts, which set their own and have none in the spec."""
    env = getattr(sources.run.spec, "env", None)
    return None if env is None else {name: _plain(value, sources.run) for name, value in env}


_PARTS: dict[Part, Callable[[RunSources], Mapping[str, str] | None]] = {
    "versions": lambda sources: _versions(sources) or None,
    "plan": _plan,
    "launch": _launch,
    "environment": _environment,
    "settings": lambda sources: dict(sources.facts.settings) or None if sources.facts else None,
}


def _texts(sources: RunSources) -> dict[str, str]:
    """Texts by name: the script, and the files sent with it, except the plan, which is compared by its parts."""
    files = {
        name: _without_own(text, sources.run) for name, text in getattr(sources.run.spec, "files", ()) if name != _PLAN
    }
    return files | ({"script": _without_own(sources.script, sources.run)} if sources.script else {})


def _plain(value: object, run: Run) -> str:
    """A value on one line; pairs as `name=value`."""
    if not isinstance(value, tuple):
        return _without_own(str(value), run)
    pairs = (item if isinstance(item, tuple) else (item,) for item in value)
    return _without_own(" ".join("=".join(str(part) for part in pair if part is not None) for pair in pairs), run)


def _without_own(text: str, run: Run) -> str:
    """Replace the run's folder, name and id, which differ in every run."""
    for name in ("task_dir", "experiment"):
        own = getattr(run.spec, name, "")
        text = text.replace(own, name.upper()) if own else text
    return re.sub(rf"(?<![A-Za-z0-9]){re.escape(run.id)}(?![A-Za-z0-9])", "RUN", text)


def _text_diff(name: str, before: str, after: str) -> TextDiff:
    old, new = (_lines(clean(without_secrets(text))) for text in (before, after))
    lines = tuple(difflib.unified_diff(old, new, "before", "after", lineterm="", n=1))
    return TextDiff(clean(name), lines[:_LONGEST_DIFF], max(0, len(lines) - _LONGEST_DIFF))


def _lines(text: str) -> list[str]:
    """Lines of a text; a long command is split before each option, so that one option can differ."""
    lines: list[str] = []
    for line in text.splitlines():
        first, *options = re.split(r" (?=--\w)", line) if len(line) > _LONG_LINE else [line]
        lines += [first, *(f"    {option}" for option in options)]
    return lines


def _unknown(before: RunSources, after: RunSources) -> Iterable[str]:
    for sources in (before, after):
        if sources.facts is None:
            yield f"The log of run {sources.run.id} is not on this machine, so its versions are unknown."
        if sources.run.spec is None:
            yield f"Run {sources.run.id} was started by another program, so its environment is unknown."
        elif not sources.script:
            yield f"The script of run {sources.run.id} is not stored on this machine."
    if before.facts and after.facts:
        named = {*_versions(before)} & {*_versions(after)}
        if missing := [name for name in _WANTED if name not in named]:
            yield f"Not stated in both logs: {', '.join(missing)}."
