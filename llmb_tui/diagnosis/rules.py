"""`rules`: the failure rules of the process. The operator's rules come before the built-in ones.

A process has one set of rules, as it has one locale: the entry point names the operator's directory once.
"""

# ruff: noqa: PLC0415 - naming the directory must not load the rules
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llmb_tui.diagnosis.load import LoadedFile, RuleError
    from llmb_tui.diagnosis.rule import FailureStage
    from llmb_tui.diagnosis.rule_set import RuleSet

_own: tuple[Path, Callable[[RuleError], None]] | None = None


def use_own_rules(directory: Path, on_problem: Callable[[RuleError], None] = lambda _: None) -> None:
    """Use the rules of this directory, which need not exist, before the built-in ones.

    They are read on first use. An invalid file is reported to `on_problem` and skipped.
    """
    global _own  # noqa: PLW0603 - see the module's docstring
    _own = directory, on_problem
    _own_files.cache_clear()
    _active_rules.cache_clear()


def rules(stage: FailureStage) -> RuleSet:
    return _active_rules(stage)


def log_rules(stage: FailureStage) -> RuleSet:
    """The rules for a log of this stage: the rules for every stage, then the stage's rules."""
    return _active_rules("any", stage)


@cache
def _active_rules(*stages: FailureStage) -> RuleSet:
    from llmb_tui.diagnosis.rule_set import RuleSet

    sources = (_own_files(), _builtin())
    return RuleSet(
        matcher for files in sources for stage in stages for file in files for matcher in file.matchers[stage]
    )


@cache
def _own_files() -> tuple[LoadedFile, ...]:
    from llmb_tui.diagnosis.load import load_rules

    return load_rules([_own[0]], _own[1]) if _own else ()


@cache
def _builtin() -> tuple[LoadedFile, ...]:
    from llmb_tui.diagnosis.load import builtin_rules_dir, load_rules

    return load_rules([builtin_rules_dir()])
