"""`Rule`: these words mean this reason and this fix. docs/failure-rules.md describes the files that hold rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, get_args

FailureStage = Literal["submit", "launch", "install", "training", "job", "pending", "slurm", "workload"]
"""Who said the words: sbatch when it took no job; a launch script when no job came of it; an install step; the log of a
run; Slurm about a job that ended; Slurm about a job that waits; a Slurm command that failed; Run:ai of a workload."""
STAGES: tuple[FailureStage, ...] = get_args(FailureStage)
Weight = Literal["end", "last words", "stopped", "symptom", "cause"]
"""What only says that a run ended; what a program says as it ends; who stopped it; what noticed it; what broke."""
WEIGHTS: tuple[Weight, ...] = get_args(Weight)
KeyName = Literal["ngc", "hugging-face"]
PATTERN_ERRORS = (re.error, OverflowError, RecursionError, FutureWarning)
"""What `re.compile` raises, the second and third for a repetition or a nesting without measure. What it only warns of
is wrong here too: the warning would be printed over the screen."""
STRICT = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, slots=True)
class Rule:
    """A text that holds one of the words and fits one of the patterns, where there are such, has this reason and fix.

    Both may name a group of the pattern, and what is known at the stage (`FACTS`), as `{name}`.
    """

    reason: str = ""
    fix: str = ""
    words: tuple[str, ...] = ()
    """Plain text. While a job waits a word is the whole of Slurm's reason; a log is searched for nothing else."""
    patterns: tuple[str, ...] = ()
    """Regular expressions of Python."""
    examples: tuple[str, ...] = ()
    """What programs really said. Each is a test: this rule speaks of it, and no earlier one does."""
    counterexamples: tuple[str, ...] = ()
    """What looks alike, and is no case of this rule."""
    weight: Weight = "cause"
    """In a log the line that tells most wins."""
    harmless: bool = False
    """The line looks like a failure and is none: no later rule speaks of it."""
    exit_code: Literal[1, 2] = 1
    """1: the request is wrong or impossible; 2: the cluster has a trouble of its own."""
    unreachable: bool = False
    """Slurm was not reached: the job was not refused."""
    key_would_help: KeyName | None = None
    """The key with which the step may work."""

    @property
    def fitting(self) -> tuple[str, ...]:
        """Texts of which this rule has to speak: its examples, or the words themselves where each is a whole text."""
        return self.examples or self.words


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The rules of one file, by their stage, in the order in which they are asked."""

    __pydantic_config__ = STRICT
    submit: tuple[Rule, ...] = ()
    launch: tuple[Rule, ...] = ()
    install: tuple[Rule, ...] = ()
    training: tuple[Rule, ...] = ()
    job: tuple[Rule, ...] = ()
    pending: tuple[Rule, ...] = ()
    slurm: tuple[Rule, ...] = ()
    workload: tuple[Rule, ...] = ()
    say: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """For a group of that name, what is said for what it matched."""

    def of(self, stage: FailureStage) -> tuple[Rule, ...]:
        """The rules of one stage."""
        rules: tuple[Rule, ...] = getattr(self, stage)
        return rules


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why something failed, as far as one text says. All texts are clean."""

    line: str
    """The text itself; empty where nothing was said."""
    reason: str
    """Empty where the text is not known."""
    fix: str
    weight: int = 0
    """How telling the line of a log is; the greater wins."""
    key_would_help: KeyName | None = None
    """The key with which it may work."""

    @property
    def sentences(self) -> str:
        """Reason and fix in one."""
        return f"{self.reason} {self.fix}".strip()


FACTS: Mapping[FailureStage, frozenset[str]] = {
    "submit": frozenset(
        "account partition nodes gpus gpu_request time most_time needed longer has partitions qos reservation "
        "constraint segment memory".split()
    )
}
"""What the texts of a stage may name besides the groups of their patterns."""

_FLAGS: Mapping[str, frozenset[FailureStage]] = {
    "weight": frozenset({"training", "job"}),
    "harmless": frozenset({"training"}),
    "exit_code": frozenset({"submit", "launch"}),
    "unreachable": frozenset({"submit", "launch"}),
    "key_would_help": frozenset({"install"}),
}


def misplaced_flags(rule: Rule, stage: FailureStage) -> list[str]:
    """Fields that are set and mean nothing at a stage."""
    start = {one.name: one.default for one in fields(Rule)}
    return [name for name, stages in _FLAGS.items() if stage not in stages and getattr(rule, name) != start[name]]
