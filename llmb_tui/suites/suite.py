"""`Suite`: several runs under one confirmation, with their order and the number that is active at a time.

A screen or a file makes one by `make_suite`, which names and shuffles the rows. A suite has no id until it is stored:
`suites.Suites.keep` gives an id to the suite and to the run of each row. Frozen: a change makes a new suite.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Literal

from llmb_tui.language.text import plural
from llmb_tui.plan.selection import FIELDS, OPTIONS, ProcedureId, Selection

SuiteKind = Literal["custom", "scaling", "precision", "repeat", "acceptance", "tune"]
SUITE_KINDS: dict[SuiteKind, str] = {
    "custom": "runs chosen one by one",
    "scaling": "all published scales of a configuration, up to what the cluster has",
    "precision": "one configuration in each of its precisions",
    "repeat": "the noise of one configuration",
    "acceptance": "every published configuration of a recipe that fits the cluster, one verdict for all",
    "tune": "the fastest layouts by the estimate, in short runs, then the full run of the best",
}
"""One-line description of each kind."""
_BEST = "full run of the best"
MOST_RUNS = 1000
"""Limit against mistakes: no suite needs more runs."""


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """One run of a suite."""

    key: str
    """Name in the suite, such as `nemotron4@25.04 15b fp8 64`, with ` #2` for a repeat."""
    selection: Selection
    procedure: ProcedureId
    run_id: str = ""
    """Id of its run, which is assigned before any submission; empty until the suite is stored."""
    of_best: bool = False
    """For a `tune`: it uses the layout of the fastest row before it. Until then the best by the estimate is planned."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Rows in the order in which they are submitted."""

    name: str
    """Name by the user: from the file, or the measurement of a ready-made suite."""
    kind: SuiteKind
    cluster: str
    """Name of the cluster profile."""
    rows: tuple[SuiteRow, ...]
    at_most: int | None = None
    """Maximum number of its runs in the queue or running at a time; None: no limit."""
    stop_after: int | None = None
    """Number of failed runs after which nothing more is submitted; None: no limit."""
    chain: bool = False
    """Each job waits for the end of the previous one (or of that `at_most` places before), by Slurm's dependency."""
    shuffle: int | None = None
    """Seed of the order; None: the listed order."""
    digest: str = ""
    """Hash of the requested content, independent of name and progress."""
    id: str = ""
    """Empty until the suite is stored."""
    created_at: float = 0.0
    """Unix time at which it was stored."""
    agreed_gpu_hours: float | None = None
    """Confirmed GPU-hours; None until it is stored."""
    cancelled: bool = False
    """Whether it was cancelled; nothing more of it is submitted."""

    @property
    def run_ids(self) -> tuple[str, ...]:
        """Ids of its rows' runs, in order; empty until it is stored."""
        return tuple(row.run_id for row in self.rows if row.run_id)

    @property
    def at_a_time(self) -> int | None:
        """Maximum number of active runs; for a chain 1 unless `at_most` is set. None: no limit."""
        return self.at_most or 1 if self.chain else self.at_most

    @property
    def submission_words(self) -> str:
        """Text of the order, the number of active runs, and the condition to stop."""
        words = ["in this order" if self.shuffle is None else f"shuffled, seed {self.shuffle}"]
        words.append("all at once" if self.at_a_time is None else f"at most {self.at_a_time} at a time")
        words += ["one after another, by Slurm"] if self.chain else []
        words += [f"until {plural(self.stop_after, 'failure')}"] if self.stop_after is not None else []
        return ", ".join(words)

    @property
    def as_new(self) -> Suite:
        """The same content without ids, neither stored nor submitted."""
        rows = tuple(replace(row, run_id="") for row in self.rows)
        return replace(self, rows=rows, id="", created_at=0.0, agreed_gpu_hours=None, cancelled=False)

    def with_row(self, row: SuiteRow) -> Suite:
        """The suite with one row replaced by another of the same key."""
        return replace(self, rows=tuple(row if present.key == row.key else present for present in self.rows))


def make_suite(  # noqa: PLR0913 - what a suite has
    name: str,
    cluster: str,
    runs: Iterable[tuple[Selection, ProcedureId]],
    *,
    kind: SuiteKind = "custom",
    at_most: int | None = None,
    stop_after: int | None = None,
    chain: bool = False,
    shuffle: int | None = None,
) -> Suite:
    """Make a suite of these runs, each with its own key, shuffled if there is a seed.

    The last run of a `tune` is its full run.
    """
    wanted = list(runs)
    rows = _keyed(wanted)
    if kind == "tune":
        rows[-1] = replace(rows[-1], key=_BEST, of_best=True)
    if shuffle is not None:
        last = rows[-1:] if rows[-1].of_best else []
        rows = rows[: len(rows) - len(last)]
        random.Random(shuffle).shuffle(rows)  # noqa: S311 - an order, not a secret
        rows += last
    suite = Suite(name, kind, cluster, tuple(rows), at_most, stop_after, chain, shuffle)
    content = json.dumps(asdict(replace(suite, name="")), sort_keys=True)
    return replace(suite, digest=hashlib.sha256(content.encode()).hexdigest())


def row_name(selection: Selection) -> str:
    """Short name of a run, such as `nemotron4@25.04 15b fp8 64`, with its differences from the recipe."""
    words = [selection.recipe_id, selection.size, selection.dtype, str(selection.scale)]
    if selection.strong_scaling:
        words.append("strong")
    words += [f"{name.replace('_', '-')}{value}" for name, value in selection.overrides.set_fields().items()]
    if selection.steps is not None:
        words.append(f"{selection.steps} steps")
    for option in OPTIONS:
        words += [FIELDS[option.name].word] if getattr(selection.options, option.name) and option.word else []
    return " ".join(words)


def _keyed(wanted: list[tuple[Selection, ProcedureId]]) -> list[SuiteRow]:
    """Rows with their keys, which include GPU type and procedure if there are several, and a number for repeats."""
    gpus, procedures = {selection.gpu for selection, _ in wanted}, {procedure for _, procedure in wanted}
    names = [
        f"{row_name(selection)}{f' {selection.gpu}' if len(gpus) > 1 else ''}"
        f"{f' {procedure}' if len(procedures) > 1 else ''}"
        for selection, procedure in wanted
    ]
    keys = {name: iter(repeat_keys(name, count)) for name, count in Counter(names).items()}
    return [
        SuiteRow(next(keys[name]), selection, procedure)
        for name, (selection, procedure) in zip(names, wanted, strict=True)
    ]


def repeat_keys(name: str, count: int) -> list[str]:
    """Keys of several rows of the same name."""
    return [name] if count == 1 else [f"{name} #{number}" for number in range(1, count + 1)]
