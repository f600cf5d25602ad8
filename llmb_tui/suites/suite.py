"""`Suite`: several runs that one yes is given for, and in which order and how many at a time they are submitted.

A screen or a file makes one by `make_suite`, which names the rows and shuffles them; it has no id until it is kept
(`suites.Suites.keep`), which gives one to it and to each of its rows' runs. Frozen: a change is a new suite.
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
"""What each kind answers, in a line."""
_BEST = "full run of the best"
MOST_RUNS = 1000
"""More than anybody means."""


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """One run of a suite."""

    key: str
    """Names it in its suite: `nemotron4@25.04 15b fp8 64`, and ` #2` where the same is run again."""
    selection: Selection
    procedure: ProcedureId
    run_id: str = ""
    """Id of its run, which is assigned before anything is sent; empty until the suite is kept."""
    of_best: bool = False
    """Of a `tune`: it takes the layout of the fastest row before it. Until then the model's best is planned."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Rows in the order in which they are submitted."""

    name: str
    """As the operator calls it: the file's, or what a ready-made one measures."""
    kind: SuiteKind
    cluster: str
    """Name of the cluster profile."""
    rows: tuple[SuiteRow, ...]
    at_most: int | None = None
    """So many of its runs in the queue or running at a time; None: all of them."""
    stop_after: int | None = None
    """After so many runs that did not end well nothing more is submitted; None: it goes on whatever happens."""
    chain: bool = False
    """Each job waits for the end of the one before (of that `at_most` places before), by Slurm's own dependency."""
    shuffle: int | None = None
    """Seed of the order; None: as listed."""
    digest: str = ""
    """Of all that was asked for: a suite of the same content has the same, whatever its name and however far it is."""
    id: str = ""
    """Empty until it is kept."""
    created_at: float = 0.0
    """Unix time at which it was kept."""
    agreed_gpu_hours: float | None = None
    """What was said yes to; None until it is kept."""
    cancelled: bool = False
    """Nothing more of it is sent."""

    @property
    def run_ids(self) -> tuple[str, ...]:
        """Those of its rows, in order; none until it is kept."""
        return tuple(row.run_id for row in self.rows if row.run_id)

    @property
    def at_a_time(self) -> int | None:
        """How many of its runs go on at a time at most: a chain has one place unless it says otherwise. None: all."""
        return self.at_most or 1 if self.chain else self.at_most

    @property
    def conduct(self) -> str:
        """In which order, how many at a time, and when it stops."""
        words = ["in this order" if self.shuffle is None else f"shuffled, seed {self.shuffle}"]
        words.append("all at once" if self.at_a_time is None else f"at most {self.at_a_time} at a time")
        words += ["each after the one before, by Slurm"] if self.chain else []
        words += [f"until {plural(self.stop_after, 'failure')}"] if self.stop_after is not None else []
        return ", ".join(words)

    @property
    def anew(self) -> Suite:
        """The same content, of which nothing is kept or sent yet."""
        rows = tuple(replace(row, run_id="") for row in self.rows)
        return replace(self, rows=rows, id="", created_at=0.0, agreed_gpu_hours=None, cancelled=False)

    def with_row(self, row: SuiteRow) -> Suite:
        """The suite with another row of the same key."""
        return replace(self, rows=tuple(row if one.key == row.key else one for one in self.rows))


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
    """A suite of these runs, each with a key of its own, shuffled where there is a seed.

    The last of a `tune` is its full run.
    """
    wanted = list(runs)
    rows = _keyed(wanted)
    if kind == "tune":
        rows[-1] = replace(rows[-1], key=_BEST, of_best=True)
    if shuffle is not None:
        last = rows[-1:] if rows[-1].of_best else []
        rows = rows[: len(rows) - len(last)]
        random.Random(shuffle).shuffle(rows)  # noqa: S311 - an order, no secret
        rows += last
    suite = Suite(name, kind, cluster, tuple(rows), at_most, stop_after, chain, shuffle)
    content = json.dumps(asdict(replace(suite, name="")), sort_keys=True)
    return replace(suite, digest=hashlib.sha256(content.encode()).hexdigest())


def row_name(selection: Selection) -> str:
    """What is run, in a few words: `nemotron4@25.04 15b fp8 64`, and what is otherwise than the recipe's."""
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
    """Each with its name, with GPU type and procedure where there are several; of several alike all have a number."""
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
    """What so many rows of one name are called."""
    return [name] if count == 1 else [f"{name} #{at}" for at in range(1, count + 1)]
