"""A suite's file: its runs, and each error with file, line, field and the nearest valid value."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb_tui.errors import LlmbError
from llmb_tui.suites.suite import Suite
from llmb_tui.suites.suite_file import read_suite
from llmb_tui.suites.suite_text import SuiteFileError
from tests.kit.runs import CATALOG

LISTS = """
cluster = "eos"
at_most = 4
stop_after = 2
workloads = ["nemotron4@25.04"]
sizes = ["15b"]
precisions = ["bf16", "fp8"]
scales = [16, 64]
repeats = 2
steps = 40
"""
BULK = """
pretrain_nemotron4_15b:
  scales: [16, 32]
  repeats: 2
  tasks:
    - dtypes: fp8
      add_profile: true
    - dtypes: [bf16]
      scales: 64
      repeats: 1
      overrides:
        params: {mbs: [1, 2]}
"""


def read(tmp_path: Path, text: str, name: str = "weekly.toml", **given: str) -> Suite:
    file = tmp_path / name
    file.write_text(text)
    return read_suite(file, CATALOG, **given)  # type: ignore[arg-type]


def refused(tmp_path: Path, text: str, name: str = "weekly.toml") -> SuiteFileError:
    with pytest.raises(SuiteFileError) as raised:
        read(tmp_path, text, name, cluster="eos")
    assert raised.value.exit_code == 1
    assert "Nothing was submitted" in raised.value.fix
    return raised.value


def test_lists_multiply(tmp_path: Path) -> None:
    suite = read(tmp_path, LISTS)
    assert (suite.name, suite.cluster, suite.at_most, suite.stop_after) == ("weekly", "eos", 4, 2)
    assert [row.key for row in suite.rows] == [
        f"nemotron4@25.04 15b {dtype} {scale} 40 steps #{n}"
        for dtype in ("bf16", "fp8")
        for scale in (16, 64)
        for n in (1, 2)
    ]


def test_layouts_multiply_too(tmp_path: Path) -> None:
    suite = read(tmp_path, LISTS.replace("repeats = 2", "layouts = [{}, {tp = 4}]"))
    assert [row.selection.overrides.tp for row in suite.rows] == [None, 4] * 4


def test_a_row_with_a_duplicate_key_is_rejected(tmp_path: Path) -> None:
    text = '[[runs]]\nworkload = "nemotron4@25.04"\nprecision = "bf16"\ndtype = "fp8"\n'
    problem = refused(tmp_path, text)
    assert (problem.line, problem.field) == (4, "runs[0].dtype")
    assert "twice" in problem.words


def test_rows_are_listed_one_by_one(tmp_path: Path) -> None:
    text = """
gpu = "h100"
options = {profile = true}
[[runs]]
workload = "nemotron4@25.04"
size = "15b"
precision = "fp8"
scale = 64
repeats = 2
[[runs]]
workload = "llama3.1@25.04"
size = "8b"
dtype = "bf16"
scale = 8
procedure = "upstream"
"""
    suite = read(tmp_path, text, cluster="eos")
    assert [(row.selection.workload, row.procedure) for row in suite.rows] == [
        ("nemotron4", "direct"),
        ("nemotron4", "direct"),
        ("llama3.1", "upstream"),
    ]
    assert all(row.selection.options.profile for row in suite.rows)


def test_comments_and_spaces_are_no_content(tmp_path: Path) -> None:
    assert read(tmp_path, LISTS).digest == read(tmp_path, "# weekly\n" + LISTS.replace(" = ", "=")).digest


def test_a_cluster_must_be_given(tmp_path: Path) -> None:
    text = LISTS.replace('cluster = "eos"', "")
    assert read(tmp_path, text, cluster="dgx").cluster == "dgx"
    with pytest.raises(LlmbError, match="names no cluster"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "line", "field", "words"),
    [
        (LISTS.replace("fp8", "fp9"), 7, "precisions[1]", "Did you mean fp8"),
        (LISTS.replace("[16, 64]", "[\n16,\n48]"), 10, "scales[1]", "32 or 64"),
        (LISTS.replace("nemotron4@", "nemotron5@"), 5, "workloads[0]", "Did you mean nemotron4"),
        (LISTS.replace("25.04", "25.40"), 5, "workloads[0]", "25.04"),
        (LISTS.replace('"15b"', '"16b"'), 6, "sizes[0]", "15b"),
        (LISTS + "layouts = [{tpp = 2}]", 11, "layouts[0].tpp", "Did you mean tp?"),
        (LISTS + "layouts = [{tp = 3}]", 11, "layouts[0].tp", "TP 3"),
        (LISTS + "at_mots = 3", 11, "at_mots", "Did you mean at_most?"),
        (LISTS.replace("at_most = 4", "at_most = 0"), 3, "at_most", "greater than or equal to 1"),
        (LISTS.replace("scales = [16, 64]", ""), 1, "scales", "is missing"),
        (LISTS.replace("repeats = 2", "repeats = 300"), 1, "", "more than 1,000 runs"),
        (LISTS + 'procedure = "mine"', 11, "procedure", "direct"),
        ('cluster = "eos"', 1, "", "has no runs"),
        ("cluster = ", 1, "", "is not TOML"),
        ('[[runs]]\nworkload = "nemotron4"\nsizze = "15b"', 3, "runs[0].sizze", "Did you mean size"),
        ('[[runs]]\nworkload = "nemotron4"\nsize = "15b"\ndtype = "fp8"', 1, "runs[0]", "scale is missing"),
        ("options = {profil = true}\n" + LISTS, 1, "options.profil", "not a field"),
    ],
)
def test_an_error_names_its_place_and_a_valid_value(
    tmp_path: Path, text: str, line: int, field: str, words: str
) -> None:
    problem = refused(tmp_path, text)
    assert (problem.line or 1, problem.field) == (line, field)
    assert words in problem.words


def test_all_errors_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    problem = refused(tmp_path, LISTS.replace("fp8", "fp9").replace("64", "65"))
    assert {problem.field, *(other.field for other in problem.others)} == {"precisions[1]", "scales[1]"}


def test_llmb_runs_bulk_file_is_read_as_llmb_run_reads_it(tmp_path: Path) -> None:
    suite = read(tmp_path, BULK, "bulk.yaml", cluster="eos")
    asked = [
        (one.dtype, one.scale, one.options.profile, one.overrides.mbs) for one in (row.selection for row in suite.rows)
    ]
    assert asked == [
        ("fp8", 16, False, None),
        ("fp8", 16, False, None),
        ("fp8", 16, True, None),
        ("fp8", 32, False, None),
        ("fp8", 32, False, None),
        ("fp8", 32, True, None),
        ("bf16", 64, False, 1),
        ("bf16", 64, False, 2),
    ]


def test_the_text_form_too(tmp_path: Path) -> None:
    text = "# mine\npretrain_nemotron4_15b:\n(['fp8', 'bf16'], [16, 32], 2)\n('fp8', [64], 1, True)\n"
    suite = read(tmp_path, text, "bulk.txt", cluster="eos")
    assert len(suite.rows) == 9
    assert suite.rows[-1].selection.options.profile


@pytest.mark.parametrize(
    ("text", "line", "field", "words"),
    [
        (BULK.replace("nemotron4", "nemotron5"), 2, "pretrain_nemotron4_15b".replace("4", "5", 1), "nemotron4"),
        (BULK.replace("fp8", "fp9"), 6, "pretrain_nemotron4_15b.tasks[0].dtypes", "Did you mean fp8"),
        (BULK.replace("[16, 32]", "[16, 48]"), 3, "pretrain_nemotron4_15b.scales", "32 or 64"),
        (
            BULK.replace("params:", "prams:"),
            12,
            "pretrain_nemotron4_15b.tasks[1].overrides.prams",
            "Did you mean params",
        ),
        (BULK.replace("{mbs", "{foo"), 12, "pretrain_nemotron4_15b.tasks[1].overrides.params.foo", "mbs"),
        (BULK.replace("params: {mbs: [1, 2]}", "env: {A: 1}"), 12, "", "in its profile"),
        (BULK + "      proxy: true", 13, "pretrain_nemotron4_15b.tasks[1].proxy", "remove `proxy`"),
        (BULK + "      repeats: 3", 13, "repeats", "given twice"),
        (BULK.replace("tasks:", "task:"), 5, "pretrain_nemotron4_15b.task", "Did you mean tasks?"),
        (BULK.replace("_15b:", ":"), 2, "pretrain_nemotron4", "not a workload and size"),
        ("a: [", 1, "", "is not YAML"),
        ("a: !!bool maybe", 1, "", "is not YAML"),
        ("a: [16\nb: 1", 2, "", "expected ',' or ']'"),
        ("pretrain_nemotron4_15b: &a\n  tasks: *a", 1, "", "refers to itself"),
        (BULK.replace("{mbs: [1, 2]}", "{mbs: 1, MBS: 2}"), 12, "", "given twice"),
        ("- 1", 1, "", "no workloads"),
        ("", 1, "", "no workloads"),
    ],
)
def test_a_fault_of_a_bulk_file_names_its_line(tmp_path: Path, text: str, line: int, field: str, words: str) -> None:
    problem = refused(tmp_path, text, "bulk.yaml")
    assert (problem.line or 1, problem.field if field else "") == (line, field)
    assert words in problem.words


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("('fp8', [16], 1)", 1, "not below a header"),
        ("pretrain_nemotron4_15b:\n\n('fp8', [16]", 3, "neither"),
        ("pretrain_nemotron4_15b:\n('fp8', [16], 1) # once", 2, "neither"),
        ("pretrain_nemotron4_15b:\n('fp8', 1)", 2, "repeats"),
        ("pretrain_nemotron4_15b:\n('fp8', [48], 1)", 2, "32 or 64"),
        ("pretrain_nemotron4_15b:\n(open('x'), [16], 1)", 2, "not a list of values"),
        ("pretrain_nemotron4_15b:\n({[16]}, [16], 1)", 2, "not a list of values"),
    ],
)
def test_a_fault_of_the_text_form_names_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    problem = refused(tmp_path, text, "bulk.txt")
    assert problem.line == line
    assert words in problem.words


def test_a_bomb_of_aliases_is_rejected(tmp_path: Path) -> None:
    layers = ["l0: &l0 [x, x, x, x, x, x, x, x, x]"]
    layers += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 9)]
    assert "too many values" in refused(tmp_path, "\n".join(layers), "bulk.yaml").words


def test_a_file_that_is_not_a_suite_is_rejected(tmp_path: Path) -> None:
    assert "No such file" in _missing(tmp_path / "none.toml").words
    assert "llmb-run" in _missing(tmp_path / "suite.json").words
    (tmp_path / "folder.toml").mkdir()
    assert "it is not a regular file" in _missing(tmp_path / "folder.toml").words


def _missing(file: Path) -> SuiteFileError:
    with pytest.raises(SuiteFileError) as raised:
        read_suite(file, CATALOG, cluster="eos")
    return raised.value
