"""`verify`: whether an archive is whole, and whether what it says follows from what it holds. Needs nothing else."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmb_tui.errors import Trouble
from llmb_tui.evidence.against_accounting import accounting_findings
from llmb_tui.evidence.against_preset import PresetCheck
from llmb_tui.evidence.anonymous import WHAT
from llmb_tui.evidence.contents import RunFolders, differences, is_wording, missing_of
from llmb_tui.evidence.findings import Finding
from llmb_tui.evidence.manifest import Manifest, Missing
from llmb_tui.evidence.pack import unpack
from llmb_tui.language.quantities import given
from llmb_tui.language.text import plural
from llmb_tui.launch.runs import ACCOUNTING
from llmb_tui.store import documents
from llmb_tui.store.files import text_in
from llmb_tui.store.scratch import scratch
from llmb_tui.store.settings import THRESHOLD
from llmb_tui.suites.suite import Suite
from llmb_tui.watch.logcopy import copy_names

CAVEAT = "Sums show damage, not forgery: whoever changes a file can make new sums."
_UNKNOWABLE = (
    "that the log is what the GPUs wrote, and that the job ran where it says: only the cluster's own accounting and "
    "logs can show that",
    "when the log last grew: it is noted, and no line says it",
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
    """What is known of an archive that is whole."""

    manifest: Manifest
    results: Mapping[str, Mapping[str, Any]]
    """What each run's log says now, by their ids: the document `result.json`."""
    findings: tuple[Finding, ...]

    @property
    def agrees(self) -> bool:
        """All that could be checked agrees, whatever the verdicts are."""
        return all(finding.outcome != "differs" for finding in self.findings)


def verify(file: Path) -> Verification:
    """Check all of an archive. Raises NotThisArchive for what is damaged, foreign or hostile."""
    with scratch("llmb-tui-verify-") as folder:
        manifest = unpack(file, folder)
        checks = _Checks(folder, manifest)
        findings = list(_whole(manifest))
        for run_id in manifest.runs:
            findings += checks.of_run(run_id)
        findings += [_suite_finding(folder, suite_id, checks.results) for suite_id in manifest.suites]
        missing = {(one.run, one.what): one for one in (*checks.missing, *manifest.missing)}
        findings += [Finding(one.run, one.what, "unknown", f"Missing. {one.why}") for one in missing.values()]
        findings += [Finding("", "beyond the file", "unknown", words) for words in _UNKNOWABLE]
    return Verification(manifest, checks.results, tuple(findings))


def _whole(manifest: Manifest) -> Iterator[Finding]:
    members = plural(len(manifest.members), "file")
    yield Finding("", "sums", "agrees", f"Every byte of {members} and of the manifest is as it was.")
    if manifest.anonymous:
        yield Finding("", "anonymous", "unknown", f"{WHAT} What they stand for, the file does not say.")
    if manifest.threshold != THRESHOLD:
        passes, usual = given(manifest.threshold), given(THRESHOLD)
        words = f"Its verdicts pass from a ratio of {passes} on, not from {usual}, which is usual."
        yield Finding("", "threshold", "unknown", words)
    sums = {member.name: member.sha256 for member in manifest.members}
    for preset in manifest.presets:
        same = sums.get(preset.name) == preset.sha256
        words = f"{preset.recipe}, SHA-256 {preset.sha256[:16]}…"
        yield Finding("", "preset's hash", "agrees" if same else "differs", words)


class _Checks:
    """Of the runs of an archive that was unpacked."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._folder = folder
        self._runs = RunFolders(folder, manifest.threshold)
        self._presets = {preset.recipe: folder / preset.name for preset in manifest.presets}
        self._preset_check = PresetCheck()
        self.results: dict[str, Mapping[str, Any]] = {}
        self.missing: list[Missing] = []
        """What the files lack, whatever the manifest says of that."""

    def of_run(self, run_id: str) -> Iterator[Finding]:
        """All that can be checked of a run."""
        place = self._folder / "runs" / run_id
        said = {name: _document(place / name) for name in _DOCUMENTS}
        try:
            _set_log_time(place, said["result.json"])
            run = self._runs.runs.load(run_id)
            found = self._runs.derived(run_id)
        except (Trouble, OSError, ArithmeticError, LookupError, ValueError) as error:
            words = error.what if isinstance(error, Trouble) else type(error).__name__
            yield Finding(run_id, "record", "differs", f"It cannot be read: {words}"[:_LONGEST])
            return
        self.results[run_id] = found["result.json"]
        self.missing += missing_of(run, self._runs.records.record(run), place)
        for name, what in _DOCUMENTS.items():
            finding = _compared(run_id, what, said[name], found[name])
            if name == "result.json" and finding.outcome == "agrees" and not copy_names(place):
                words = "No log is in the archive; the same follows from what is said to have been read of it."
                finding = Finding(run_id, what, "unknown", words)
            yield finding
        yield from accounting_findings(run, self._runs.history.result(run_id), text_in(place / ACCOUNTING))
        if found["result.json"]["simulated"]:
            yield Finding(run_id, "simulated", "unknown", "Its log says that nothing was trained: the demo made it.")
        preset = self._presets.get(run.plan.selection.recipe_id)
        yield from self._preset_check.findings(run, self._runs.runs.script(run_id), preset)


def _set_log_time(folder: Path, result: Any) -> None:
    """Say when the log last grew, which a file's own time tells where it was copied. Raises OSError."""
    moment = result.get("ended_at") if isinstance(result, dict) else None
    if isinstance(moment, (int, float)) and 0 <= moment < 1 << 40:
        for name in copy_names(folder):
            os.utime(folder / name, (moment, moment))


def _suite_finding(folder: Path, suite_id: str, results: Mapping[str, Mapping[str, Any]]) -> Finding:
    """Whether the runs of a suite are all there: one that is shown without some of them says something else."""
    what = f"runs of suite {suite_id}"
    try:
        suite = documents.load(folder / "suites" / f"{suite_id}.json", Suite)
    except Trouble as trouble:
        return Finding("", what, "differs", f"Its document cannot be read: {trouble.why}"[:_LONGEST])
    here = [results[row.run_id]["verdict"] for row in suite.rows if row.run_id in results]
    verdicts = Counter(verdict["result"] if verdict else "no verdict" for verdict in here)
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    words = f"{len(here)} of its {len(suite.rows)} runs are in the archive: {told}."
    return Finding("", what, "agrees" if len(here) == len(suite.rows) else "unknown", words)


def _document(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def _compared(run_id: str, what: str, said: Any, found: Any) -> Finding:
    if not isinstance(said, dict):
        return Finding(run_id, what, "differs", "The document is missing or no JSON.")
    try:
        unlike = list(differences(said, found))
    except RecursionError:
        return Finding(run_id, what, "differs", "The document is nested too deeply.")
    wrong = [one for one in unlike if not is_wording(one[0])]
    if not wrong:
        words = " This version puts some of it in other words." if unlike else ""
        return Finding(run_id, what, "agrees", f"The same follows again.{words}")
    told = [f"{at}: {_short(one)} is said, {_short(other)} follows" for at, one, other in wrong[:_MOST_DIFFERENCES]]
    if len(wrong) > _MOST_DIFFERENCES:
        told.append(f"and {len(wrong) - _MOST_DIFFERENCES} more")
    return Finding(run_id, what, "differs", f"{'; '.join(told)}.")


def _short(value: Any) -> str:
    try:
        text = json.dumps(value)
    except RecursionError:
        return "something nested too deeply"
    return text if len(text) <= 60 else f"{text[:59]}…"
