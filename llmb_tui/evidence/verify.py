"""`verify`: check that an archive is intact and that its results follow from its data. Needs only the archive."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmb_tui.errors import LlmbError
from llmb_tui.evidence.against_accounting import accounting_findings
from llmb_tui.evidence.against_preset import PresetCheck
from llmb_tui.evidence.anonymous import WHAT
from llmb_tui.evidence.contents import RunFolders, differences, is_wording, missing_of
from llmb_tui.evidence.findings import Finding
from llmb_tui.evidence.manifest import Manifest, Missing
from llmb_tui.evidence.pack import unpack
from llmb_tui.language.json_text import parse_json
from llmb_tui.language.quantities import plain_number
from llmb_tui.language.text import plural
from llmb_tui.launch.runs import ACCOUNTING
from llmb_tui.store import documents
from llmb_tui.store.files import text_in
from llmb_tui.store.scratch import scratch
from llmb_tui.store.settings import THRESHOLD
from llmb_tui.suites.suite import Suite
from llmb_tui.watch.logcopy import copy_names

CAVEAT = "Checksums show damage, not forgery: anyone who changes a file can make new checksums."
_UNKNOWABLE = (
    "that the GPUs wrote the log, and that the job ran where it says: only the cluster's own accounting and logs can "
    "show that",
    "the time at which the log last grew: it was recorded, but no log line contains it",
)
_DOCUMENTS = {
    "plan.json": "plan against record",
    "settings.json": "settings against record",
    "environment.json": "environment against record",
    "result.json": "numbers and verdict against log",
}
_MOST_DIFFERENCES = 5
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Verification:
    """Findings for an intact archive."""

    manifest: Manifest
    results: Mapping[str, Mapping[str, Any]]
    """Results derived from each run's log now, by run id: the document `result.json`."""
    findings: tuple[Finding, ...]

    @property
    def agrees(self) -> bool:
        """Whether every check that could be made agrees, whatever the verdicts are."""
        return all(finding.outcome != "differs" for finding in self.findings)


def verify(file: Path) -> Verification:
    """Check all contents of an archive. Raises ArchiveError for a damaged, foreign or hostile file."""
    with scratch("llmb-tui-verify-") as folder:
        manifest = unpack(file, folder)
        checks = _Checks(folder, manifest)
        findings = list(_whole(manifest))
        for run_id in manifest.runs:
            findings += checks.of_run(run_id)
        findings += [_suite_finding(folder, suite_id, checks.results) for suite_id in manifest.suites]
        missing = {(entry.run, entry.what): entry for entry in (*checks.missing, *manifest.missing)}
        findings += [Finding(entry.run, entry.what, "unknown", f"Missing. {entry.why}") for entry in missing.values()]
        findings += [Finding("", "beyond the file", "unknown", words) for words in _UNKNOWABLE]
    return Verification(manifest, checks.results, tuple(findings))


def _whole(manifest: Manifest) -> Iterator[Finding]:
    members = plural(len(manifest.members), "file")
    yield Finding("", "sums", "agrees", f"All bytes of {members} and of the manifest are unchanged.")
    if manifest.anonymous:
        yield Finding("", "anonymous", "unknown", f"{WHAT} The file does not contain the originals.")
    if manifest.threshold != THRESHOLD:
        passes, usual = plain_number(manifest.threshold), plain_number(THRESHOLD)
        words = f"Its verdicts pass from a ratio of {passes} on; the default is {usual}."
        yield Finding("", "threshold", "unknown", words)
    sums = {member.name: member.sha256 for member in manifest.members}
    for preset in manifest.presets:
        same = sums.get(preset.name) == preset.sha256
        words = f"{preset.recipe}, SHA-256 {preset.sha256[:16]}…"
        yield Finding("", "preset's hash", "agrees" if same else "differs", words)


class _Checks:
    """Checks of the runs in an unpacked archive."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._folder = folder
        self._runs = RunFolders(folder, manifest.threshold)
        self._presets = {preset.recipe: folder / preset.name for preset in manifest.presets}
        self._preset_check = PresetCheck()
        self.results: dict[str, Mapping[str, Any]] = {}
        self.missing: list[Missing] = []
        """Evidence that the files lack, whatever the manifest lists."""

    def of_run(self, run_id: str) -> Iterator[Finding]:
        """Findings of all checks of a run."""
        place = self._folder / "runs" / run_id
        stated = {name: _document(place / name) for name in _DOCUMENTS}
        try:
            _set_log_time(place, stated["result.json"])
            run = self._runs.runs.load(run_id)
            derived = self._runs.derived(run_id)
        except (LlmbError, OSError, ArithmeticError, LookupError, ValueError) as error:
            words = error.what if isinstance(error, LlmbError) else type(error).__name__
            yield Finding(run_id, "record", "differs", f"It cannot be read: {words}"[:_LONGEST])
            return
        self.results[run_id] = derived["result.json"]
        self.missing += missing_of(run, self._runs.records.record(run), place)
        for name, what in _DOCUMENTS.items():
            finding = _compared(run_id, what, stated[name], derived[name])
            if name == "result.json" and finding.outcome == "agrees" and not copy_names(place):
                words = "The archive has no log; the results follow from the recorded facts of the log."
                finding = Finding(run_id, what, "unknown", words)
            yield finding
        yield from accounting_findings(run, self._runs.history.result(run_id), text_in(place / ACCOUNTING))
        if derived["result.json"]["simulated"]:
            yield Finding(
                run_id, "simulated", "unknown", "Its log states that nothing was trained: it is a run of the demo."
            )
        preset = self._presets.get(run.plan.selection.recipe_id)
        yield from self._preset_check.findings(run, self._runs.runs.script(run_id), preset)


def _set_log_time(folder: Path, result: Any) -> None:
    """Set the time at which the log last grew, which a copied file has lost. Raises OSError."""
    moment = result.get("ended_at") if isinstance(result, dict) else None
    if isinstance(moment, (int, float)) and 0 <= moment < 1 << 40:
        for name in copy_names(folder):
            os.utime(folder / name, (moment, moment))


def _suite_finding(folder: Path, suite_id: str, results: Mapping[str, Mapping[str, Any]]) -> Finding:
    """Whether all runs of a suite are included, because the rest alone may give another impression."""
    what = f"runs of suite {suite_id}"
    try:
        suite = documents.load(folder / "suites" / f"{suite_id}.json", Suite, only_finite=True)
    except LlmbError as error:
        return Finding("", what, "differs", f"Its document cannot be read: {error.why}"[:_LONGEST])
    results_here = [results[row.run_id]["verdict"] for row in suite.rows if row.run_id in results]
    verdicts = Counter(verdict["result"] if verdict else "no verdict" for verdict in results_here)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    words = f"{len(results_here)} of its {len(suite.rows)} runs are in the archive: {counts}."
    return Finding("", what, "agrees" if len(results_here) == len(suite.rows) else "unknown", words)


def _document(path: Path) -> Any:
    try:
        return parse_json(path.read_bytes())
    except (OSError, ValueError):
        return None


def _compared(run_id: str, what: str, stated: Any, derived: Any) -> Finding:
    if not isinstance(stated, dict):
        return Finding(run_id, what, "differs", "The document is missing or not JSON.")
    try:
        differing = list(differences(stated, derived))
    except RecursionError:
        return Finding(run_id, what, "differs", "The document is nested too deeply.")
    wrong = [difference for difference in differing if not is_wording(difference[0])]
    if not wrong:
        words = " This version words parts of it differently." if differing else ""
        return Finding(run_id, what, "agrees", f"The same result is derived again.{words}")
    texts = [f"{place}: stated {_short(old)}, derived {_short(new)}" for place, old, new in wrong[:_MOST_DIFFERENCES]]
    if len(wrong) > _MOST_DIFFERENCES:
        texts.append(f"and {len(wrong) - _MOST_DIFFERENCES} more")
    return Finding(run_id, what, "differs", f"{'; '.join(texts)}.")


def _short(value: Any) -> str:
    try:
        text = json.dumps(value)
    except RecursionError:
        return "a value that is nested too deeply"
    return text if len(text) <= 60 else f"{text[:59]}…"
