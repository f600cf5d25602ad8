"""`rules`: the rules in force. The operator's own are asked first, then those that come with the program.

There is one set of them in a process, as there is one locale: who opens the program says once where the operator's own
are, and whoever meets a failure asks here.
"""

# ruff: noqa: PLC0415 - who only says where the operator's own are needs no rule
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llmb_tui.diagnosis.load import LoadedFile, RuleProblem
    from llmb_tui.diagnosis.rule import FailureStage
    from llmb_tui.diagnosis.rule_set import RuleSet

_own: tuple[Path, Callable[[RuleProblem], None]] | None = None


def use_own_rules(directory: Path, on_problem: Callable[[RuleProblem], None] = lambda _: None) -> None:
    """From now on the rules of this directory, which need not exist, are asked first.

    They are read when they are needed. A broken file is told to `on_problem`, and passed over.
    """
    global _own  # noqa: PLW0603 - see the module's first lines
    _own = directory, on_problem
    _in_force.cache_clear()


def rules(stage: FailureStage) -> RuleSet:
    """The rules of one stage."""
    return _in_force()[stage]


@cache
def _in_force() -> Mapping[FailureStage, RuleSet]:
    from llmb_tui.diagnosis.load import load_rules
    from llmb_tui.diagnosis.rule import STAGES
    from llmb_tui.diagnosis.rule_set import RuleSet

    own = load_rules([_own[0]], _own[1]) if _own else ()
    files = (*own, *_builtin())
    return {stage: RuleSet(matcher for file in files for matcher in file.matchers[stage]) for stage in STAGES}


@cache
def _builtin() -> tuple[LoadedFile, ...]:
    from llmb_tui.diagnosis.load import builtin_rules_dir, load_rules

    return load_rules([builtin_rules_dir()])
