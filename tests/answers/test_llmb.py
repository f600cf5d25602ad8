"""The answer to `llmb`: runs of llmb-run, and the reasons for those that cannot be opened."""

from __future__ import annotations

from pathlib import Path

from llmb_tui.answers.llmb import llmb
from llmb_tui.answers.llmb_runs import llmb_run_columns, runs_summary
from llmb_tui.answers.table import Table, toned_text
from llmb_tui.answers.writers.rows import rows
from llmb_tui.launch.llmb.import_run import ImportableRun, importable_runs
from llmb_tui.launch.llmb.run import run_of
from llmb_tui.launch.runs import Runs
from llmb_tui.store.paths import UserPaths
from tests.kit.runs import CATALOG
from tests.launch.test_adopt import CONFIG, FOLDER

WRITTEN_AT = 1_759_999_000.0


def listed_runs(home: Path) -> tuple[ImportableRun, ...]:
    """A run that can be opened, one of another release, and one with a broken file and no time."""
    jobs = (
        run_of(f"{FOLDER}/llmb-config_300.yaml", {"run": CONFIG, "written": f"{WRITTEN_AT:.0f}"}),
        run_of(
            f"{FOLDER}/llmb-config_200.yaml", {"run": CONFIG.replace("'25.12'", "'25.08'"), "written": "1759000000"}
        ),
        run_of(f"{FOLDER}/llmb-config_100.yaml", {"run": "a: b: c", "written": ""}),
    )
    return importable_runs(CATALOG, Runs(UserPaths(home, home)), "eos", jobs)


def test_a_run_that_cannot_be_opened_is_quiet_and_has_its_reason(tmp_path: Path) -> None:
    can, other, broken = Table.by(llmb_run_columns(WRITTEN_AT + 7200), listed_runs(tmp_path)).rows
    assert [toned_text(cell)[0] for cell in can[:4]] == ["300", "nemotron4-340b fp8", "256×GB200", "25.12"]
    assert [toned_text(can[5]), toned_text(other[5])] == [("2 h", "plain"), ("11 d", "quiet")]
    assert [toned_text(cell)[0] for cell in broken[2:7]] == ["–"] * 5
    assert can[-1] == ""
    assert "No preset has nemotron4-340b of release 25.08" in str(other[-1])
    assert {toned_text(cell)[1] for cell in other[:-1]} == {"quiet"}


def test_the_summary_counts_the_runs_that_can_be_opened(tmp_path: Path) -> None:
    assert runs_summary("eos", listed_runs(tmp_path)) == "eos: 3 found, 1 can be opened"
    assert runs_summary("eos", ()) == "No run of llmb-run was found on eos."


def test_a_cluster_without_an_installation_is_reported_in_one_sentence() -> None:
    answer = llmb(CATALOG, "eos", (), (), WRITTEN_AT)
    assert [row.text for row in rows(answer.make_blocks())] == [
        "No installation of NVIDIA's llmb-run was found on eos."
    ]
    assert answer.make_document() == {"installations": [], "runs": []}
