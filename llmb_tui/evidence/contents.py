"""What an archive holds of a run: the files of its folder, and what follows from them as documents that people read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from llmb_tui.analysis.result import RunResult
from llmb_tui.evidence.manifest import Missing
from llmb_tui.history import History
from llmb_tui.language.text import finite
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import ACCOUNTING, NETWORK, Runs
from llmb_tui.plan.document import document as plan_document
from llmb_tui.store.paths import Places
from llmb_tui.watch.logcopy import READING, copy_names
from llmb_tui.watch.report import validity_document
from llmb_tui.watch.run_records import RunRecords
from llmb_tui.watch.state import RunRecord

KEPT_FILES = ("script.sh", "beside.json", ACCOUNTING, NETWORK, READING, "facts.json")
"""Of a run's folder, beside its record and its logs."""
_WORDS = ("reasons", "no_verdict", "against", "rule", "why_failed")
_WORDS_OF_CHECKS = ("found", "expected", "line")
_ENVIRONMENT = ("env", "overridden", "mounts", "container_image", "image", "links", "token_file")


class RunFolders:
    """Runs that lie in a folder as they do in the state directory, worked out there."""

    def __init__(self, state: Path, threshold: float) -> None:
        self.runs = Runs(Places(state / "config", state))
        self.records = RunRecords(self.runs, threshold)
        self.history = History(self.records, self.runs)
        self._threshold = threshold

    def derived(self, run_id: str) -> dict[str, Any]:
        """The documents that follow from a run's record and log, by their names. Raises Trouble."""
        run, result = self.runs.load(run_id), self.history.result(run_id)
        spec = asdict(run.spec) if run.spec else {}
        apart = {name: spec.pop(name) for name in _ENVIRONMENT if name in spec}
        versions = dict(result.facts.versions) if result.facts else {}
        environment: dict[str, Any] = {"container": run.plan.container, **apart, "versions_in_log": versions}
        if "env" in apart:
            environment["env"] = dict(apart["env"])
        documents = {
            "plan.json": plan_document(run.plan) | {"steps": run.plan.steps, "time_limit": run.plan.time_limit},
            "settings.json": {"procedure": run.procedure, **spec},
            "environment.json": environment,
            "result.json": _result(result, self._threshold),
        }
        plain: dict[str, Any] = json.loads(json.dumps(finite(documents)))  # tuples as the lists that they are in a file
        return plain


def _result(result: RunResult, threshold: float) -> dict[str, Any]:
    """Every number of a result."""
    estimate, facts, state = result.plan.estimate, result.facts, result.record.state
    verdict = asdict(result.verdict) if result.verdict else None
    return {
        "state": result.state,
        "ended_at": result.record.log_grew_at,
        "steps_done": state.progress.steps_done,
        "steps_total": result.steps_total,
        "simulated": facts.simulated if facts else None,
        "starts": state.progress.starts,
        "restarts": result.restarts,
        "validity": validity_document(result.validity),
        "rule": result.rule_words,
        "step_time_s": result.step_time_s,
        "median_step_time_s": state.progress.median_s,
        "steady": asdict(result.steady) if result.steady else None,
        "figures": asdict(result.figures) if result.figures else None,
        "loss": asdict(result.loss) if result.loss else None,
        "checkpoints": [asdict(checkpoint) for checkpoint in result.checkpoints],
        "comparable": result.comparable,
        "expected": estimate
        and {name: getattr(estimate, name) for name in ("step_time_s", "low_s", "high_s", "method")},
        "threshold": threshold,
        "verdict": verdict,
        "no_verdict": state.no_verdict,
        "why_failed": state.why_failed,
    }


def missing_of(run: Run, record: RunRecord, folder: Path) -> Iterator[Missing]:
    """What a run's folder lacks of the evidence, and why."""
    words = run.words
    if record.state.log_removed:
        yield Missing(run.id, "log", "Its local copy was removed; what had been read of it is here.")
    elif not copy_names(folder):
        yield Missing(run.id, "log", "No line of it was ever copied here.")
    elif record.state.log_unread:
        yield Missing(run.id, "end of the log", f"It was not copied to its end: `llmb-tui results {run.id}` does it.")
    if not (folder / ACCOUNTING).is_file():
        why = (
            f"{words.scheduler} did not answer when the {words.job} ended: `llmb-tui watch {run.id} --once` asks again."
        )
        yield Missing(run.id, "accounting", why if run.job_ids else "It never had a job.")
    if not (folder / "script.sh").is_file():
        yield Missing(run.id, "script", "It was not submitted by this program.")


def differences(said: Any, found: Any, at: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two documents are not the same: place, what is said, what was found; numbers may differ by rounding.

    What only the second one has is none: a newer version says more.
    """
    if isinstance(said, dict) and isinstance(found, dict):
        for key, value in said.items():
            yield from differences(value, found.get(key), f"{at}.{key}" if at else key)
    elif isinstance(said, list) and isinstance(found, list) and len(said) == len(found):
        for index, (one, other) in enumerate(zip(said, found, strict=True)):
            yield from differences(one, other, f"{at}[{index}]")
    elif not _same(said, found):
        yield at, said, found


def is_wording(place: str) -> bool:
    """Whether a place of `result.json` holds a text that another version may word differently."""
    keys = place.replace("[", ".").split(".")
    return bool({*keys} & {*_WORDS}) or (keys[0] == "validity" and keys[-1] in _WORDS_OF_CHECKS)


def _same(one: Any, other: Any) -> bool:
    one, other = finite(one), finite(other)  # older archives hold numbers that JSON does not have
    if isinstance(one, (int, float)) and isinstance(other, (int, float)) and type(one) is not bool is not type(other):
        try:
            return math.isclose(one, other, rel_tol=1e-9)
        except OverflowError:  # a whole number that is too large for a float
            return one == other
    return bool(one == other)
