"""Contents of an archive for one run: the files of its folder, and readable documents that are derived from them."""

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
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.logcopy import READING, copy_names
from llmb_tui.watch.report import validity_document
from llmb_tui.watch.run_records import RunRecords
from llmb_tui.watch.state import RunRecord

KEPT_FILES = ("script.sh", "beside.json", ACCOUNTING, NETWORK, READING, "facts.json")
"""Files of a run's folder, besides its record and its logs."""
_WORDS = ("reasons", "no_verdict", "against", "rule", "why_failed")
_WORDS_OF_CHECKS = ("found", "expected", "line")
_ENVIRONMENT = ("env", "overridden", "mounts", "container_image", "image", "links", "token_file")


class RunFolders:
    """Runs in a folder with the structure of the state directory; their results are computed there."""

    def __init__(self, state: Path, threshold: float) -> None:
        self.runs = Runs(UserPaths(state / "config", state))
        self.records = RunRecords(self.runs, threshold)
        self.history = History(self.records, self.runs)
        self._threshold = threshold

    def derived(self, run_id: str) -> dict[str, Any]:
        """Documents derived from a run's record and log, by file name. Raises LlmbError."""
        run, result = self.runs.load(run_id), self.history.result(run_id)
        spec = asdict(run.spec) if run.spec else {}
        environment_fields = {name: spec.pop(name) for name in _ENVIRONMENT if name in spec}
        versions = dict(result.facts.versions) if result.facts else {}
        environment: dict[str, Any] = {
            "container": run.plan.container,
            **environment_fields,
            "versions_in_log": versions,
        }
        if "env" in environment_fields:
            environment["env"] = dict(environment_fields["env"])
        documents = {
            "plan.json": plan_document(run.plan) | {"steps": run.plan.steps, "time_limit": run.plan.time_limit},
            "settings.json": {"procedure": run.procedure, **spec},
            "environment.json": environment,
            "result.json": _result(result, self._threshold),
        }
        plain: dict[str, Any] = json.loads(json.dumps(finite(documents)))  # turn tuples into lists, as in a file
        return plain


def _result(result: RunResult, threshold: float) -> dict[str, Any]:
    """All figures of a result."""
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
    """Evidence that a run's folder lacks, with the reasons."""
    words = run.words
    if record.state.log_removed:
        yield Missing(run.id, "log", "Its local copy was removed; the facts read from it are included.")
    elif not copy_names(folder):
        yield Missing(run.id, "log", "It was never copied to the exporting machine.")
    elif record.state.log_unread:
        yield Missing(run.id, "end of the log", f"It was not copied to its end: `llmb-tui results {run.id}` copies it.")
    if not (folder / ACCOUNTING).is_file():
        why = f"{words.scheduler} gave none when the {words.job} ended: `llmb-tui watch {run.id} --once` asks again."
        yield Missing(run.id, "accounting", why if run.job_ids else "It never had a job.")
    if not (folder / "script.sh").is_file():
        yield Missing(run.id, "script", "It was not submitted by this program.")


def differences(stated: Any, derived: Any, at: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Differences of two documents: (place, stated value, derived value); numbers may differ by rounding.

    Keys that only the derived document has are ignored, because a newer version has more.
    """
    if isinstance(stated, dict) and isinstance(derived, dict):
        for key, value in stated.items():
            yield from differences(value, derived.get(key), f"{at}.{key}" if at else key)
    elif isinstance(stated, list) and isinstance(derived, list) and len(stated) == len(derived):
        for index, (first, second) in enumerate(zip(stated, derived, strict=True)):
            yield from differences(first, second, f"{at}[{index}]")
    elif not _same(stated, derived):
        yield at, stated, derived


def is_wording(place: str) -> bool:
    """Whether a place of `result.json` contains a text that another version may word differently."""
    keys = place.replace("[", ".").split(".")
    return bool({*keys} & {*_WORDS}) or (keys[0] == "validity" and keys[-1] in _WORDS_OF_CHECKS)


def _same(first: Any, second: Any) -> bool:
    first, second = finite(first), finite(second)  # older archives have numbers that JSON does not allow
    if (
        isinstance(first, (int, float))
        and isinstance(second, (int, float))
        and type(first) is not bool is not type(second)
    ):
        try:
            return math.isclose(first, second, rel_tol=1e-9)
        except OverflowError:  # a whole number that is too large for a float
            return first == second
    return bool(first == second)
