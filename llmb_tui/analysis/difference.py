"""`difference`: what differs between two runs beside their times: versions, environment, settings, script. Pure.

Known is what each run was submitted from, its script, and what its log says of driver, container and libraries. What
neither says is named as unknown. Names that are another's in every run, its id and its folders, are no difference.
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
"""Of a spec: what every run has for itself, and what is compared by its parts."""
_WANTED = ("driver", "NCCL", "NeMo")
"""Versions that a difference in speed is asked for."""
_PLAN = "configs/plan.json"
_LONG_LINE = 160
_LONGEST_DIFF = 400
Part = Literal["versions", "plan", "launch", "environment", "settings"]


@dataclass(frozen=True, slots=True)
class RunSources:
    """One run with everything that is known of how it ran."""

    run: Run
    script: str
    """As it was submitted; empty where it is not kept."""
    facts: LogFacts | None
    """What its log says; None without one."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is another. Texts are clean, and without secrets."""

    part: Part
    """`versions`: as the log says; `settings`: what NeMo trained with, as the log says."""
    name: str
    before: str | None
    """None where it is not set."""
    after: str | None


@dataclass(frozen=True, slots=True)
class TextDiff:
    """What differs in a text, as `diff -u` writes it. Clean, and without secrets."""

    name: str
    lines: tuple[str, ...]
    cut: int = 0
    """Lines that are left out at its end."""


@dataclass(frozen=True, slots=True)
class RunDifference:
    """From the run before to the one after."""

    before: str
    """Run ids."""
    after: str
    changes: tuple[Change, ...]
    texts: tuple[TextDiff, ...]
    unknown: tuple[str, ...]
    """What nobody can say, a sentence each."""


def difference(before: RunSources, after: RunSources) -> RunDifference:
    """What differs between two runs; what is known of one of them only is no difference."""
    changes = [change for part, of in _PARTS.items() for change in _changes(part, of(before), of(after))]
    was, now = _texts(before), _texts(after)
    texts = [_text_diff(name, was[name], now[name]) for name in was if name in now]
    differ, unknown = tuple(text for text in texts if text.lines), tuple(_unknown(before, after))
    return RunDifference(before.run.id, after.run.id, tuple(changes), differ, unknown)


def _changes(part: Part, before: Mapping[str, str] | None, after: Mapping[str, str] | None) -> Iterator[Change]:
    if before is not None and after is not None:
        for name in dict.fromkeys((*before, *after)):
            was, now = before.get(name), after.get(name)
            # A version that one log does not name is not known; a setting that one run has not is another.
            if was != now and (part != "versions" or None not in (was, now)):
                yield Change(part, clean(name), _shown(name, was), _shown(name, now))


def _shown(name: str, value: str | None) -> str | None:
    return None if value is None else clean(hidden_value(name, value))


def _versions(ran: RunSources) -> dict[str, str]:
    return ran.facts.versions_by_name if ran.facts else {}


def _plan(ran: RunSources) -> dict[str, str]:
    """What was trained and where."""
    run = ran.run
    what = configuration_of(run.plan)
    found: dict[str, object] = {}
    for part in (what, what.layout, what.options):
        found |= {field.name: getattr(part, field.name) for field in fields(part)}
    del found["layout"], found["options"]
    found |= {"steps": run.plan.steps, "container": run.plan.container, "cluster": run.cluster}
    found["procedure"] = PROCEDURES[run.procedure].title
    return {name: _plain(value, run) for name, value in found.items() if is_given(value)}


def _launch(ran: RunSources) -> dict[str, str] | None:
    """The fields of its spec that have a value."""
    spec = ran.run.spec
    if spec is None:
        return None
    found = {field.name: getattr(spec, field.name) for field in fields(spec) if field.name not in _OWN}
    return {name: text for name, value in found.items() if (text := _plain(value, ran.run))}


def _environment(ran: RunSources) -> dict[str, str] | None:
    """NVIDIA's own scripts set one of their own, which no spec has."""
    env = getattr(ran.run.spec, "env", None)
    return None if env is None else {name: _plain(value, ran.run) for name, value in env}


_PARTS: dict[Part, Callable[[RunSources], Mapping[str, str] | None]] = {
    "versions": lambda ran: _versions(ran) or None,
    "plan": _plan,
    "launch": _launch,
    "environment": _environment,
    "settings": lambda ran: dict(ran.facts.settings) or None if ran.facts else None,
}


def _texts(ran: RunSources) -> dict[str, str]:
    """By name: the script, and the files that travelled with it; the plan is compared by its parts."""
    files = {name: _without_own(text, ran.run) for name, text in getattr(ran.run.spec, "files", ()) if name != _PLAN}
    return files | ({"script": _without_own(ran.script, ran.run)} if ran.script else {})


def _plain(value: object, run: Run) -> str:
    """A value on one line; pairs as `name=value`."""
    if not isinstance(value, tuple):
        return _without_own(str(value), run)
    pairs = (one if isinstance(one, tuple) else (one,) for one in value)
    return _without_own(" ".join("=".join(str(part) for part in pair if part is not None) for pair in pairs), run)


def _without_own(text: str, run: Run) -> str:
    """Without its folder, its name and its id, which say again what was planned, and when."""
    for name in ("task_dir", "experiment"):
        own = getattr(run.spec, name, "")
        text = text.replace(own, name.upper()) if own else text
    return re.sub(rf"(?<![A-Za-z0-9]){re.escape(run.id)}(?![A-Za-z0-9])", "RUN", text)


def _text_diff(name: str, before: str, after: str) -> TextDiff:
    was, now = (_lines(clean(without_secrets(text))) for text in (before, after))
    lines = tuple(difflib.unified_diff(was, now, "before", "after", lineterm="", n=1))
    return TextDiff(clean(name), lines[:_LONGEST_DIFF], max(0, len(lines) - _LONGEST_DIFF))


def _lines(text: str) -> list[str]:
    """A long command is broken before each option: what differs in it is one of them."""
    lines: list[str] = []
    for line in text.splitlines():
        first, *options = re.split(r" (?=--\w)", line) if len(line) > _LONG_LINE else [line]
        lines += [first, *(f"    {option}" for option in options)]
    return lines


def _unknown(before: RunSources, after: RunSources) -> Iterable[str]:
    for ran in (before, after):
        if ran.facts is None:
            yield f"The log of run {ran.run.id} is not here: it would name versions."
        if ran.run.spec is None:
            yield f"Run {ran.run.id} was started by somebody else: its environment is not known."
        elif not ran.script:
            yield f"The script of run {ran.run.id} is not kept here."
    if before.facts and after.facts:
        said = {*_versions(before)} & {*_versions(after)}
        if silent := [name for name in _WANTED if name not in said]:
            yield f"The logs do not both say: {', '.join(silent)}."
