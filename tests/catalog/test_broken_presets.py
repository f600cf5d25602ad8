"""A preset with contradictions is refused; the message names the file, the line and the field."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.catalog.load import PresetError, read_preset


class Break(NamedTuple):
    old: str
    new: str
    field: str
    line: str
    """Beginning of the line that the message names."""
    reason: str


BROKEN = {
    "field missing": ('title = "Tiny"\n', "", "title", "workload =", "is missing"),
    "field of a table missing": ('gbs_rule = "4/1"\n', "", "tables[0].gbs_rule", "[[tables]]", "is missing"),
    "field unknown": ('title = "Tiny"', 'title = "Tiny"\ntitel = 1', "titel", "titel", "is not a field"),
    "field of a table unknown": ("[flops]", "[flops]\nfast = true", "flops.fast", "fast", "is not a field"),
    "table missing": ('[access]\nhub_token = false\nsource = "a test"', "", "access", "workload =", "is missing"),
    "text for a number": ("layers = 16", 'layers = "16"', "models.1b.layers", "layers", "integer"),
    "fraction for a count": ("heads = 32", "heads = 32.0", "models.1b.heads", "heads", "integer"),
    "number for a truth": ("gated = true", "gated = 1", "models.1b.gated", "gated", "boolean"),
    "date for a text": ('source = "a test"\ndtypes', "source = 1\ndtypes", "source", "source = 1", "string"),
    "negative": ("memory_gb = 80", "memory_gb = -80", "gpus.h100.memory_gb", "memory_gb", "greater than 0"),
    "infinite": ("memory_gb = 80", "memory_gb = inf", "gpus.h100.memory_gb", "memory_gb", "finite"),
    "launcher unknown": ('"hydra"', '"torchrun"', "launch.kind", "kind", "'nemo2'"),
    "cell of text": ("[16, 16, 2, 2", '[16, 16, 2, "two"', "tables[0].rows[1][3]", "[16,", "integer"),
    "cell of zero": ("[16, 16, 2, 2", "[16, 16, 2, 0", "tables[0].rows[1][3]", "[16,", "pp cannot be 0"),
    "cell NA": ("[16, 16, 2, 2", '[16, 16, 2, "NA"', "tables[0].rows[1][3]", "[16,", "pp cannot be NA"),
    "cell missing": ("[16, 16, 2, 2,", "[16, 16, 2,", "tables[0].rows[1]", "[16,", "10 cells for 11 columns"),
    "cells missing": ("[16, 16, 2, 2, 1, 4, 4, 4, 2, 64, 8]", "[]", "tables[0].rows[1]", "[],", "0 cells for 11"),
    "rows missing": (
        'rows = [\n    [8, 8, 2, 1, 1, 4, 4, "NA", 2, 32, 4], # a proxy\n    [16, 16, 2, 2, 1, 4, 4, 4, 2, 64, 8],\n'
        "    [32, 16, 2, 2, 1, 4, 8, 4, 2, 128, 8],\n]",
        "rows = []",
        "tables[0].rows",
        "rows = []",
        "is empty",
    ),
    "column unknown": ('"cp", "ep"', '"cp", "etp"', "tables[0].columns", "columns", "'etp'"),
    "column missing": ('"gbs", "ga"]', '"ga"]', "tables[0].columns", "columns", "gbs missing"),
    "column twice": ('"vp", "mbs"', '"ep", "mbs"', "tables[0].columns", "columns", "twice"),
    "size without a table": ("[models.1b]", "[models.2b]", "models.2b", "[models.2b]", "no table"),
    "GPU type unknown": ('gpu = "h100"', 'gpu = "b200"', "tables[0].gpu", "gpu", "'b200' is not one of h100"),
    "precision unknown": ('"fp8"]\nscaling', '"fp4"]\nscaling', "tables[0].dtypes", "dtypes", "'fp4'"),
    "precision without a peak": (", fp8 = 1979", "", "gpus.h100.peak_tflops", "peak_tflops", "bf16, fp8"),
    "peak of an unknown precision": (
        "fp8 = 1979",
        "fp8 = 1979, fp4 = 1",
        "gpus.h100.peak_tflops.fp4",
        "peak_tflops",
        "'fp4' is not one of bf16, fp8",
    ),
    "rule of words": ('"4/1"', '"four"', "tables[0].gbs_rule", "gbs_rule", "'four'"),
    "rule that divides by zero": ('"4/1"', '"4/0"', "tables[0].gbs_rule", "gbs_rule", "'4/0'"),
    "rule not followed": (
        "2, 64, 8]",
        "2, 32, 4]",
        "tables[0].rows[1]",
        "[16,",
        "GBS 32 differs from gbs_rule, which gives 64",
    ),
    "GPUs do not divide": ("[16, 16, 2, 2", "[16, 16, 2, 3", "tables[0].rows[1]", "[16,", "does not divide 16 GPUs"),
    "batch does not divide": ("2, 64, 8]", "3, 64, 8]", "tables[0].rows[1]", "[16,", "MBS 3 * DP 4"),
    "layers do not divide": ("4, 4, 2, 64", "4, 3, 2, 64", "tables[0].rows[1]", "[16,", "PP 2 * VP 3"),
    "experts do not divide": ("2, 2, 1, 4, 4, 4", "2, 2, 1, 3, 4, 4", "tables[0].rows[1]", "[16,", "EP 3"),
    "heads do not divide": (
        "query_groups = 8",
        "query_groups = 1",
        "tables[0].rows[0]",
        "[8,",
        "TP 2 does not divide 32",
    ),
    "nodes that are not filled": (
        "gpus_per_node = 8",
        "gpus_per_node = 16",
        "tables[0].rows[0]",
        "[8,",
        "8 GPUs do not fill nodes of 16",
    ),
    "experts do not divide over groups": (
        "experts = 4",
        "experts = 6",
        "tables[0].rows[0]",
        "[8,",
        "EP 4 does not divide 6 experts",
    ),
    "virtual stages without a pipeline": (
        '"NA", 2, 32, 4]',
        "2, 2, 32, 4]",
        "tables[0].rows[0]",
        "[8,",
        "VP 2 needs a pipeline, and PP is 1",
    ),
    "pipeline that is not filled": (
        "2, 64, 8]",
        "16, 64, 1]",
        "tables[0].rows[1]",
        "[16,",
        "GA 1 is not a multiple of PP 2; virtual stages need that",
    ),
    "sequence that does not split": (
        "seq_len = 8192",
        "seq_len = 8191",
        "tables[0].rows[0]",
        "[8,",
        "sequence length 8191 does not split into 2 pieces",
    ),
    "layers above the model's": ("[16, 16", "[16, 32", "tables[0].rows[1]", "[16,", "more than the model's 16"),
    "printed GA odd": ("2, 64, 8]", "2, 64, 4]", "tables[0].rows[1]", "[16,", "the README prints GA 4"),
    "printed DP odd": ("2, 2, 1, 4, 4, 4", "2, 2, 1, 4, 2, 4", "tables[0].rows[1]", "[16,", "the README prints DP 2"),
    "configuration twice": ('"fp8"]\nscaling', '"bf16"]\nscaling', "tables[0].rows[0]", "[8,", "is there twice"),
    "note for no scale": ('8 = "Eight', '9 = "Eight', "tables[0].notes.9", "9 =", "'9'"),
    "corrected column unknown": ('column = "vp"', 'column = "ga"', "corrections[0].column", "column", "'ga'"),
    "corrected layers do not divide": ("value = 8", "value = 7", "tables[0].rows[2]", "[32,", "PP 2 * VP 7"),
    "result without configuration": (
        "gpus = [8, 16]",
        "gpus = [64, 16]",
        "results[0].gpus[0]",
        "gpus",
        "no configuration row",
    ),
    "results of no release": (
        "[[results]]",
        '[[results]]\nrelease = "v1.1"',
        "results[0].release",
        'release = "v1.1"',
        "'v1.1' is not a release",
    ),
    "example without configuration": (
        "gpus = 32\n",
        "gpus = 64\n",
        "examples[0].gpus",
        "gpus = 64",
        "no configuration row",
    ),
    "result twice": ("gpus = [8, 16]", "gpus = [16, 16]", "results[0].gpus[1]", "gpus", "is there twice"),
    "lists of unequal length": ("[40, 40.5]", "[40]", "results[0].mfu_pct", "mfu_pct", "1 values for 2 scales"),
    "window beyond the run": ("last = 44", "last = 50", "rule", "[rule]", "below 50 steps"),
    "window for the last step": ('"mean"', '"last"', "rule.first", "first", "`mean`"),
    "placeholder unknown": ("{fp8}", "{fp4}", "settings[0].overrides[1]", '"model.fp8', "{fp4}"),
    "placeholder left open": ("{fp8}", "{fp8", "settings[0].overrides[1]", '"model.fp8', "{fp8"),
    "placeholder that reaches inside": ("{fp8}", "{fp8.real}", "settings[0].overrides[1]", '"model.fp8', "{fp8.real}"),
    "placeholder with a format": ("{fp8}", "{fp8:d}", "settings[0].overrides[1]", '"model.fp8', "{fp8}"),
    "product with an unknown factor": (
        "{steps*gbs}",
        "{steps*gas}",
        "settings[0].recipe.data.num_train_samples",
        '"data.num_train',
        "{steps*gas}",
    ),
    "product of a word": (
        "{steps*gbs}",
        "{steps*dtype}",
        "settings[0].recipe.data.num_train_samples",
        '"data.num_train',
        "{steps*dtype}",
    ),
    "placeholder in a table": (
        'tp = "{tp}"',
        'tp = "{rp}"',
        "settings[0].recipe.trainer.callbacks[TimingCallback].log_tokens",
        '"trainer.callbacks',
        "{rp}",
    ),
    "placeholder in a list": ('["{layers}"]', '["{layer}"]', "settings[0].base.model.layers", '"model.la', "{layer}"),
    "placeholder in a prefix": ("{dtype}", "{type}", "settings[0].prefix[1]", "prefix", "{type}"),
    "placeholder in an argument": ("{nodes}", "{node}", "launch.arguments", "arguments", "{node}"),
    "condition unknown": (
        "not profile",
        "no profile",
        "settings[0].when[1]",
        "when",
        "'no profile' is not a condition",
    ),
    "condition on an unknown name": ("pp > 1", "rp > 1", "settings[0].when[0]", "when", "'rp > 1'"),
    "comparison of a text": ("pp > 1", "dtype > 1", "settings[0].when[0]", "when", "'dtype > 1'"),
    "comparison that is denied": ("pp > 1", "not pp > 1", "settings[0].when[0]", "when", "'not pp > 1'"),
    "field of no recipe": (
        '"data.num_train_samples"',
        '"data..num"',
        "settings[0].recipe.data..num",
        '"data..num"',
        "not a field of a recipe",
    ),
    "settings without a source": (
        '[[settings]]\nsource = "a test"',
        "[[settings]]",
        "settings[0].source",
        "[[settings]]",
        "is missing",
    ),
    "settings for another container": (
        '["nvidia/nemo:25',
        '["nemo:25',
        "settings[0].containers",
        "containers",
        "'nemo:25",
    ),
    "versions of another container": (
        "[flops]",
        '[containers."nvidia/nemo:24.09"]\nversions = { NeMo = "2.0.0" }\nsource = "a test"\n\n[flops]',
        "containers.nvidia/nemo:24.09",
        "[containers",
        "'nvidia/nemo:24.09' is not one of nvidia/nemo:25.02.01",
    ),
    "versions without a source": (
        "[flops]",
        '[containers."nvidia/nemo:25.02.01"]\nversions = { NeMo = "2.2.1" }\n\n[flops]',
        "containers.nvidia/nemo:25.02.01.source",
        "[containers",
        "is missing",
    ),
    "version without a minor number": (
        "[flops]",
        '[containers."nvidia/nemo:25.02.01"]\nversions = { NeMo = "2" }\nsource = "a test"\n\n[flops]',
        "containers.nvidia/nemo:25.02.01.versions.NeMo",
        "versions =",
        "'2' does not begin with two numbers, such as 2.2",
    ),
    "version of a library that no log prints": (
        "[flops]",
        '[containers."nvidia/nemo:25.02.01"]\nversions = { Nemo = "2.2.1" }\nsource = "a test"\n\n[flops]',
        "containers.nvidia/nemo:25.02.01.versions.Nemo",
        "versions =",
        "'NeMo'",
    ),
    "settings for another size": (
        'sizes = ["1b"]',
        'sizes = ["2b"]',
        "settings[0].sizes",
        "sizes",
        "'2b' is not one of 1b",
    ),
    "settings for another GPU type": ('gpus = ["h100"]', 'gpus = ["b200"]', "settings[0].gpus", "gpus", "'b200'"),
    "settings for another precision": ('= ["fp8"]', '= ["fp4"]', "settings[0].dtypes", "dtypes", "'fp4'"),
    "tasks on no NUMA node": (
        "tasks_per_numa_node = 4",
        "tasks_per_numa_node = 0",
        "settings[0].tasks_per_numa_node",
        "tasks_per",
        "greater than or equal to 1",
    ),
    "option of srun": ("container-writable", "--wait", "settings[0].srun.--wait", "--wait", "long option of srun"),
    "option's time limit": ('"00:15:00"', '"15"', "options[0].time_limit", "time_limit", "'15' is not a time HH:MM:SS"),
    "time limit of 90 minutes": (
        "[launch]",
        '[launch]\ntime_limit = "00:90:00"',
        "launch.time_limit",
        "time_limit",
        "'00:90:00' is not a time HH:MM:SS",
    ),
    "time limit of nothing": (
        '"00:15:00"',
        '"0:00:00"',
        "options[0].time_limit",
        "time_limit",
        "'0:00:00' is not a time HH:MM:SS above zero",
    ),
    "time limit of years": (
        "[launch]",
        '[launch]\ntime_limit_strong = "1000:00:00"',
        "launch.time_limit_strong",
        "time_limit_strong",
        "'1000:00:00' is not a time HH:MM:SS",
    ),
    "command empty": ('["python3"]', "[]", "launch.command", "command", "empty"),
    "factory missing": ('"hydra"', '"nemo2"', "launch.factories", "[launch]", "1b"),
    "variable's name": ("NCCL_NVLS_ENABLE", '"A B"', "settings[0].env.A B", '"A B"', "environment"),
    "time limit": ("[launch]", '[launch]\ntime_limit = "30"', "launch.time_limit", "time_limit", "HH:MM:SS"),
    "layout that no setting hands on": (
        '"model.gbs={gbs}"',
        '"model.gbs=8"',
        "tables[0]",
        "[[tables]]",
        "no setting passes {gbs}: NeMo's defaults would run",
    ),
    "layout that is handed on in some rows only": (
        'base = { "model.tp"',
        'when = ["pp > 1"]\nbase = { "model.tp"',
        "tables[0]",
        "[[tables]]",
        "no setting passes {tp}, {pp}",
    ),
    "layout in a product only": ("gbs={gbs}", "gbs={gbs*mbs}", "tables[0]", "[[tables]]", "no setting passes {gbs}:"),
    "nodes that no setting passes": ('"{nodes}"', '"1"', "tables[0]", "[[tables]]", "no setting passes {nodes}:"),
    "precision that no setting passes in some rows": (
        "precision={dtype}",
        "precision=x{dtype}",
        "tables[0]",
        "[[tables]]",
        "no setting passes fp8:",
    ),
    "variant of an unknown precision": (
        "[flops]",
        '[precision_variants.fp4]\nvariant = "mx"\nsource = "a test"\n\n[flops]',
        "precision_variants.fp4",
        "[precision_variants.fp4]",
        "'fp4' is not one of bf16, fp8",
    ),
    "workload's name": ('"tiny"', '"tiny; rm"', "workload", "workload", "'tiny; rm'"),
    "release's name": ('"1.0"', '"newest"', "release", "release", "'newest'"),
    "query groups": ("query_groups = 8", "query_groups = 5", "models.1b.query_groups", "query_groups", "32 heads"),
    "experts for each token": ("experts = 4", "experts = 1", "models.1b.experts_per_token", "experts_per", "1 experts"),
    "scale of another GPU type": (
        "{ h100 = 16",
        "{ b200 = 16",
        "models.1b.save_min_gpus.b200",
        "save_min_gpus",
        "'b200'",
    ),
}


@pytest.mark.parametrize("case", [Break(*case) for case in BROKEN.values()], ids=BROKEN.keys())
def test_a_broken_preset_is_refused_with_file_line_and_field(tiny_preset: Path, case: Break) -> None:
    whole = tiny_preset.read_text(encoding="utf-8")
    assert case.old in whole
    broken = whole.replace(case.old, case.new, 1)
    tiny_preset.write_text(broken, encoding="utf-8")

    with pytest.raises(PresetError) as caught:
        read_preset(tiny_preset)

    problem = caught.value
    assert problem.exit_code == 1
    assert (problem.file, problem.field) == (tiny_preset, case.field)
    assert problem.line is not None
    assert broken.splitlines()[problem.line - 1].strip().startswith(case.line)
    assert case.reason in problem.what
    for part in (str(tiny_preset), f"line {problem.line}", case.field):
        assert part in str(problem)


def test_the_preset_from_which_broken_presets_are_derived_is_valid(tiny_preset: Path) -> None:
    assert read_preset(tiny_preset).id == "tiny@1.0"


def test_a_gpu_type_needs_a_peak_only_for_the_precisions_in_its_tables(tiny_preset: Path) -> None:
    whole = tiny_preset.read_text(encoding="utf-8")
    tiny_preset.write_text(whole.replace('"fp8"]\n\n[gpus', '"fp8", "nvfp4"]\n\n[gpus'), encoding="utf-8")
    assert read_preset(tiny_preset).dtypes == ("bf16", "fp8", "nvfp4")


def test_a_syntax_error_names_its_line(tiny_preset: Path) -> None:
    tiny_preset.write_text('workload = "tiny"\nrelease = \n', encoding="utf-8")
    with pytest.raises(PresetError, match="is not TOML") as caught:
        read_preset(tiny_preset)
    assert (caught.value.line, caught.value.field) == (2, "")


def test_a_file_that_is_no_text_is_refused(tiny_preset: Path) -> None:
    tiny_preset.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PresetError, match="cannot be read") as caught:
        read_preset(tiny_preset)
    assert (caught.value.file, caught.value.line) == (tiny_preset, None)


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(PresetError, match="cannot be read"):
        read_preset(tmp_path / "folder.toml")


def test_further_faults_are_named_too(tiny_preset: Path) -> None:
    whole = tiny_preset.read_text(encoding="utf-8")
    tiny_preset.write_text(
        whole.replace("2, 64, 8]", "2, 64, 4]").replace("2, 128, 8]", "2, 128, 4]").replace("value = 8", "value = 7"),
        encoding="utf-8",
    )
    with pytest.raises(PresetError) as caught:
        read_preset(tiny_preset)
    assert caught.value.what.endswith("tables[0].rows[1]: the README prints GA 4, the other columns give 8: add a note")
    row = tiny_preset.read_text(encoding="utf-8").splitlines().index("    [32, 16, 2, 2, 1, 4, 8, 4, 2, 128, 4],") + 1
    assert caught.value.why == f"line {row}: tables[0].rows[2]: 16 layers do not divide over PP 2 * VP 7"


def test_notes_of_a_table_with_invalid_rows_are_not_checked(tiny_preset: Path) -> None:
    whole = tiny_preset.read_text(encoding="utf-8")
    tiny_preset.write_text(whole.replace('[8, 8, 2, 1, 1, 4, 4, "NA", 2, 32, 4]', "[]"), encoding="utf-8")
    with pytest.raises(PresetError) as caught:
        read_preset(tiny_preset)
    assert (caught.value.field, caught.value.others) == ("tables[0].rows[0]", ())


def test_every_fault_of_types_is_named_once_with_its_line(tiny_preset: Path) -> None:
    text = (
        tiny_preset.read_text(encoding="utf-8").replace('title = "Tiny"', "title = 1").replace("[8, 8, 2", '[8, "x", 2')
    )
    text = text.replace("gated = true", "gated = 1").replace("memory_gb = 80", "memory_gb = -80\nfast = 1")
    tiny_preset.write_text(text, encoding="utf-8")
    with pytest.raises(PresetError) as caught:
        read_preset(tiny_preset)
    found = [(one.line, one.field) for one in (caught.value, *caught.value.others)]
    lines = {line.split(" =")[0]: number for number, line in enumerate(text.splitlines(), start=1)}
    assert sorted(found) == sorted(
        [
            (lines["title"], "title"),
            (lines["memory_gb"], "gpus.h100.memory_gb"),
            (lines["fast"], "gpus.h100.fast"),
            (lines["gated"], "models.1b.gated"),
            (text[: text.index('[8, "x"')].count("\n") + 1, "tables[0].rows[0][1]"),
        ]
    )


def test_the_error_for_a_preset_without_settings_lists_all_missing_ones(tiny_preset: Path) -> None:
    text = tiny_preset.read_text(encoding="utf-8")
    start, end = text.index("[[settings]]"), text.index("[[options]]")
    tiny_preset.write_text(text[:start] + text[end:], encoding="utf-8")
    with pytest.raises(PresetError) as caught:
        read_preset(tiny_preset)
    missing = "{tp}, {pp}, {cp}, {vp}, {mbs}, {gbs}, {seq_len}, {layers}, {steps}, {ep}, fp8"
    assert f"tables[0]: no setting passes {missing}:" in caught.value.what


# Pieces of presets: their combination is often valid TOML and sometimes a preset.
_PIECES = st.sampled_from(
    [
        '"NA"',
        "0",
        "1",
        "-1",
        "7",
        "1.5",
        "inf",
        "true",
        '""',
        '"x"',
        "[]",
        "[[]]",
        "{}",
        "[a]",
        "[[a]]",
        "=",
        "#",
        "\n",
        ",",
    ]
)


@given(where=st.floats(0, 1), length=st.integers(0, 3), pieces=st.lists(_PIECES, max_size=3))
def test_whatever_is_in_a_preset_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, tiny_text: str, where: float, length: int, pieces: list[str]
) -> None:
    words = re.findall(r"\s+|[^\s,=\[\]{}]+|[,=\[\]{}]", tiny_text)
    start = int(where * len(words))
    words[start : start + length] = pieces
    file = tmp_path_factory.mktemp("preset") / "broken.toml"
    file.write_text("".join(words), encoding="utf-8")
    with contextlib.suppress(PresetError):
        read_preset(file)
