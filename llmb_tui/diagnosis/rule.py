"""`Rule`: maps words of a failed program to a reason and a remedy. docs/failure-rules.md describes the files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, get_args

from llmb_tui.language.text import capital

FailureStage = Literal["any", "submit", "launch", "install", "training", "job", "pending", "slurm", "workload"]
"""Origin of the words: any log of `LOG_STAGES`; sbatch rejected a job; a launch script submitted no job; an install
step; the log of a run; Slurm about an ended job; Slurm about a pending job; a failed Slurm command; Run:ai about a
workload."""
LogStage = Literal["install", "submit", "launch", "training"]
LOG_STAGES: tuple[LogStage, ...] = get_args(LogStage)
"""Stages whose logs are explained: the rules of `any` apply to each of them."""
STAGES: tuple[FailureStage, ...] = get_args(FailureStage)
Weight = Literal["end", "last words", "stopped", "symptom", "cause"]
"""Information in a line, least first: the run ended; last words of a program; who stopped it; a symptom; the cause."""
WEIGHTS: tuple[Weight, ...] = get_args(Weight)
KeyName = Literal["ngc", "hugging-face"]
PATTERN_ERRORS = (re.error, OverflowError, RecursionError, FutureWarning)
"""Errors of `re.compile`; the second and third for an excessive repetition or nesting. Warnings count as errors:
they would be printed over the screen."""
STRICT = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, slots=True)
class Rule:
    """Reason and remedy of a text that contains one of the words and matches one of the patterns, if there are any.

    Both may contain groups of the pattern and facts of the stage (`FACTS`) as `{name}`.
    """

    reason: str = ""
    fix: str = ""
    words: tuple[str, ...] = ()
    """Plain text. For a pending job a word is Slurm's complete reason; a log is searched for these words only."""
    patterns: tuple[str, ...] = ()
    """Python regular expressions."""
    examples: tuple[str, ...] = ()
    """Genuine lines of programs. Each is a test: this rule matches it, and no earlier rule does."""
    counterexamples: tuple[str, ...] = ()
    """Similar lines that the rule must not match."""
    weight: Weight = "cause"
    """In a log the line with the greatest weight wins."""
    harmless: bool = False
    """The line is not a failure: no later rule applies to it."""
    exit_code: Literal[1, 2] = 1
    """1: the request is wrong or impossible; 2: the cluster failed."""
    unreachable: bool = False
    """Slurm was not reached, so the job was not rejected."""
    key_would_help: KeyName | None = None
    """API key with which the step may succeed."""

    @property
    def fitting(self) -> tuple[str, ...]:
        """Texts that the rule must match: its examples, or its words if each is a complete text."""
        return self.examples or self.words


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The rules of one file by stage, in order of precedence."""

    __pydantic_config__ = STRICT
    any: tuple[Rule, ...] = ()
    submit: tuple[Rule, ...] = ()
    launch: tuple[Rule, ...] = ()
    install: tuple[Rule, ...] = ()
    training: tuple[Rule, ...] = ()
    job: tuple[Rule, ...] = ()
    pending: tuple[Rule, ...] = ()
    slurm: tuple[Rule, ...] = ()
    workload: tuple[Rule, ...] = ()
    say: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Replacements of matched values, by name of the group."""

    def of(self, stage: FailureStage) -> tuple[Rule, ...]:
        rules: tuple[Rule, ...] = getattr(self, stage)
        return rules


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The explanation of a failure by one text. All texts are clean."""

    line: str
    """The text; may be empty."""
    reason: str
    """Empty if no rule matches."""
    fix: str
    weight: int = 0
    """Weight of a log line; the greatest wins."""
    key_would_help: KeyName | None = None
    """API key with which it may succeed."""
    rank: int | None = None
    """Rank of which a log line speaks; None if it names none."""
    node: str | None = None

    @property
    def ends_a_run(self) -> bool:
        """Whether the line says more than that something ended, so that its program does not continue."""
        return self.weight > WEIGHTS.index("end") + 1

    @property
    def quotation(self) -> str:
        """The line, after the rank and the node of which it speaks."""
        place = place_words(self.rank, self.node)
        return f"{capital(place)}: {self.line}" if place else self.line

    @property
    def sentences(self) -> str:
        """Reason and remedy as one text."""
        return f"{self.reason} {self.fix}".strip()


def place_words(rank: int | None, node: str | None) -> str:
    """A rank and a node in words; empty if neither is known."""
    if rank is None:
        return f"node {node}" if node else ""
    return f"rank {rank} on {node}" if node else f"rank {rank}"


FACTS: Mapping[FailureStage, frozenset[str]] = {
    "submit": frozenset(
        "account partition nodes gpus gpu_request time most_time needed longer has partitions qos reservation "
        "constraint segment memory".split()
    )
}
"""Names for reasons and remedies of a stage, in addition to the groups of the patterns."""

_FLAGS: Mapping[str, frozenset[FailureStage]] = {
    "weight": frozenset({"any", "training", "job"}),
    "harmless": frozenset({"any", "training"}),
    "exit_code": frozenset({"submit", "launch"}),
    "unreachable": frozenset({"submit", "launch"}),
    "key_would_help": frozenset({"install"}),
}


def misplaced_flags(rule: Rule, stage: FailureStage) -> list[str]:
    """Fields that are set but have no meaning at a stage."""
    default = {field.name: field.default for field in fields(Rule)}
    return [name for name, stages in _FLAGS.items() if stage not in stages and getattr(rule, name) != default[name]]
