"""Answers of `export` and `verify`."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Grid
from llmb_tui.answers.evidence import export_answer, verification_answer
from llmb_tui.answers.table import toned_text
from llmb_tui.answers.writers.rows import rows
from llmb_tui.evidence.findings import Finding
from llmb_tui.evidence.manifest import KIND, LEFT_OUT, SCHEMA, Manifest, Member, Missing
from llmb_tui.evidence.verify import Verification

MANIFEST = Manifest(
    KIND, SCHEMA, "llmb-tui 1", False, 0.95, ("a", "b"), (), (),
    (Missing("b", "accounting", "Slurm keeps none."),), LEFT_OUT, (Member("runs/a/log", 5, "00"),),
)  # fmt: skip
RESULT = {
    "verdict": {"result": "PASS", "ratio": 0.98, "against": "published 1.98 s"},
    "step_time_s": 2.02,
    "rule": "last step",
    "simulated": True,
    "state": "node_fail",
    "steps_done": 50,
    "steps_total": 50,
}


def text_of(answer: Answer) -> str:
    return "\n".join(row.text for row in rows(answer.make_blocks()))


def test_an_export_names_its_file_first_and_then_the_missing_parts() -> None:
    answer = export_answer(Path("/tmp/x/a.tar.zst"), 2048, MANIFEST)
    first, *others = text_of(answer).splitlines()
    assert first == "/tmp/x/a.tar.zst: 2 runs, 1 file, 2.05 kB"
    assert "· run b: missing accounting. Slurm keeps none." in others
    assert any("notes and tags" in line for line in others)
    assert "`llmb-tui verify a.tar.zst` checks the archive" in others[-1]
    assert "not forgery" in others[-1]
    assert answer.copy == "/tmp/x/a.tar.zst"
    assert answer.make_document()["missing"] == [{"id": "b", "what": "accounting", "why": "Slurm keeps none."}]


@pytest.mark.parametrize(
    ("outcome", "first"), [("agrees", "Every check that is possible agrees."), ("differs", "Some checks differ.")]
)
def test_a_verification_starts_with_its_result(outcome: str, first: str) -> None:
    findings = (Finding("a", "plan", outcome, "so"), Finding("", "sums", "unknown", ""))  # type: ignore[arg-type]
    answer = verification_answer("a.tar.zst", Verification(MANIFEST, {"a": RESULT}, findings))
    assert text_of(answer).splitlines()[0] == first
    (grid,) = (block for block in answer.make_blocks() if isinstance(block, Grid))
    outcomes = [toned_text(row[2]) for row in grid.table.rows]
    assert outcomes == [("✓ agrees", "good") if outcome == "agrees" else ("✗ differs", "bad"), ("? unknown", "warning")]
    assert "run a  simulated, node fail, 50 of 50 steps, 2.02 s by the rule (last step), PASS 98.0 % of" in text_of(
        answer
    )
    assert "not forgery" in text_of(answer).splitlines()[-1]
