"""`export` and `verify`: the contents of an archive of runs, and the checks of such an archive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Bullets, Fact, Facts, Grid, Text
from llmb_tui.answers.table import Column, State, Table
from llmb_tui.evidence.anonymous import WHAT
from llmb_tui.evidence.manifest import Manifest
from llmb_tui.evidence.verify import CAVEAT, Verification
from llmb_tui.language.quantities import byte_size, percent, step_time
from llmb_tui.language.states import finding_label, state_label
from llmb_tui.language.text import plural

_FINDING: tuple[Column, ...] = (
    Column("run", lambda finding: finding.run or None),
    Column("check", "what"),
    Column("outcome", lambda finding: State(finding.outcome, finding_label(finding.outcome))),
    Column("found", "words"),
)


def export_answer(file: Path, size: int, manifest: Manifest) -> Answer:
    """A new archive of `size` bytes, and the files that it does not contain."""
    runs, files = plural(len(manifest.runs), "run"), plural(len(manifest.members), "file")
    lacks = [f"run {part.run}: missing {part.what}. {part.why}" for part in manifest.missing]
    blocks = (
        Text(f"{file}: {runs}, {files}, {byte_size(size)}", strong=True),
        Bullets((*lacks, *([WHAT] if manifest.anonymous else []), f"Not included: {', '.join(manifest.left_out)}.")),
        Text(f"`llmb-tui verify {file.name}` checks the archive on any machine. {CAVEAT}", "quiet"),
    )
    return Answer("Exported", lambda: blocks, lambda: _export_document(file, size, manifest), copy=str(file))


def verification_answer(file: str, verification: Verification) -> Answer:
    """The checks of an archive, and the recomputed results of its runs."""
    return Answer(
        f"Verification of {file}",
        lambda: tuple(_verification_blocks(verification)),
        lambda: _verification_document(file, verification),
    )


def _verification_blocks(verification: Verification) -> Iterator[Block]:
    if verification.agrees:
        yield Text("Every check that is possible agrees.", "good", strong=True)
    else:
        yield Text("Some checks differ.", "bad", strong=True)
    yield Grid("", Table.by(_FINDING, verification.findings))
    if verification.results:
        yield Facts(
            tuple(Fact(f"run {run_id}", _result_words(result)) for run_id, result in verification.results.items())
        )
    yield Text(CAVEAT, "quiet")


def _result_words(result: Mapping[str, Any]) -> str:
    """The recomputed result of a run in words."""
    verdict, step = result["verdict"], result["step_time_s"]
    time = f"{step_time(step)} by the rule ({result['rule']})" if step is not None else "no step time by the rule"
    judged = (
        f"{verdict['result']} {percent(verdict['ratio'] * 100)} of {verdict['against']}" if verdict else "no verdict"
    )
    simulated = "simulated, " if result["simulated"] else ""
    state = state_label(result["state"]).word
    return f"{simulated}{state}, {result['steps_done']} of {result['steps_total']} steps, {time}, {judged}"


def _export_document(file: Path, size: int, manifest: Manifest) -> dict[str, Any]:
    return {
        "file": str(file),
        "bytes": size,
        "files": len(manifest.members),
        **{name: getattr(manifest, name) for name in ("runs", "suites", "anonymous", "left_out")},
        "missing": [{"id": part.run, "what": part.what, "why": part.why} for part in manifest.missing],
    }


def _verification_document(file: str, verification: Verification) -> dict[str, Any]:
    manifest = verification.manifest
    return {
        "file": file,
        "caveat": CAVEAT,
        "agrees": verification.agrees,
        "made_by": manifest.made_by,
        "anonymous": manifest.anonymous,
        "runs": [{"id": run_id, **result} for run_id, result in verification.results.items()],
        "findings": [
            {"id": finding.run or None, "what": finding.what, "outcome": finding.outcome, "found": finding.words}
            for finding in verification.findings
        ],
    }
