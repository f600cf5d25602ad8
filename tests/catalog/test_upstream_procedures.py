"""NVIDIA's own procedures of the recipes: the presets' statements about them, and invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.load import PresetError, read_preset
from llmb_tui.catalog.upstream import UpstreamScripts

PROCEDURE = """
[upstream]
repository = "https://example.org/someone/recipes.git"
tag = "v1.0"
folder = "tiny"
root_variable = "STAGE_PATH"
python = "3.10.12"
source = "a test"

[upstream.setup]
how = "job"
imports_image = true
time_limit = "01:00:00"
variables = { STAGE_PATH = "{root}" }
clear = ["OLD"]
folders = ["{root}/cache"]
undo = ["{scripts}/NeMo"]
source = "a test"

[upstream.constraints]
file = "tiny.txt"
resolved = "2025-04-30"
reason = "It drifts."
source = "a test"

[[upstream.pins]]
requirement = "one==1.0"
reason = "It breaks."
source = "a test"

[[upstream.commits]]
repository = "https://example.org/someone/code"
commit = "0123456789abcdef0123456789abcdef01234567"
gpus = ["h100"]

[upstream.launch]
how = "sbatch"
directory = "{root}"
options = ["-A", "{account}"]
job_name = "tiny"
results = "{root}/results/{dtype}"
log = "{results}/log_%j.out"
clear = ["OLDER"]
always = ["vboost"]
source = "a test"

[[upstream.launch.variables]]
values = { DTYPE = "{dtype}", STAGE_PATH = "{root}" }

[[upstream.launch.variables]]
if_given = true
when = ["gpus > 8"]
values = { MAX_STEPS = "{steps}" }

[[upstream.launch.flaws]]
when = ["save_checkpoint"]
reason = "It ends with an error."
fix = "Do not."
source = "a test"

[[options]]
name = "time limit"
variable = "TIME_LIMIT"
effective = false
source = "a test"
"""

BROKEN = {
    "place unknown": ('directory = "{root}"', 'directory = "{home}"', "launch.directory", "'{home}'"),
    "path that leads out": ('"{root}/cache"', '"{root}/../cache"', "setup.folders[0]", "not a path below"),
    "path without a place": ('"{scripts}/NeMo"', '"/NeMo"', "setup.undo[0]", "not a path below"),
    "path upwards": ('folder = "tiny"', 'folder = "../tiny"', "folder", "cannot be used"),
    "address of a local file": ("https://example.org/someone/recipes.git", "/recipes", "repository", "cannot be used"),
    "tag that is an option": ('tag = "v1.0"', 'tag = "--help"', "tag", "cannot be used"),
    "commit cut short": ("0123456789abcdef0123456789abcdef01234567", "0123456", "commits[0].commit", "cannot be used"),
    "commit for no GPU type": ('gpus = ["h100"]', 'gpus = ["a100"]', "commits[0].gpus", "'a100' is not one of h100"),
    "constraints of no day": ("2025-04-30", "in spring", "constraints.resolved", "cannot be used"),
    "module without a place": (
        'how = "sbatch"\n',
        'how = "sbatch"\nmodule = "x"\n',
        "launch.module_directory",
        "is required for a module",
    ),
    "pin without a version": ('"one==1.0"', '"one>1"', "pins[0].requirement", "cannot be used"),
    "Python of words": ('"3.10.12"', '"new"', "python", "cannot be used"),
    "two Pythons": ('"3.10.12"', '"3.10.12"\npython_exact = "3.12"', "python_exact", "is set already"),
    "way to set up unknown": ('how = "job"', 'how = "by hand"', "setup.how", "'job'"),
    "job without a time limit": ('time_limit = "01:00:00"\n', "", "setup.time_limit", "is required for a job"),
    "time limit of words": ('"01:00:00"', '"an hour"', "setup.time_limit", "cannot be used"),
    "time limit of no job": ('how = "job"', 'how = "login"', "setup.time_limit", "is required for a job"),
    "variable in small letters": ('["OLD"]', '["old"]', "setup.clear[0]", "cannot be used"),
    "variable of the setup": (
        '{ STAGE_PATH = "{root}" }',
        '{ A-B = "{root}" }',
        "setup.variables.A-B",
        "cannot be used",
    ),
    "variable to clear": ('["OLDER"]', '["-u"]', "launch.clear[0]", "cannot be used"),
    "placeholder unknown": ('DTYPE = "{dtype}"', 'DTYPE = "{precision}"', "variables[0].values.DTYPE", "precision"),
    "placeholder left open": ('DTYPE = "{dtype}"', 'DTYPE = "{dtype"', "variables[0].values.DTYPE", "'}'"),
    "product": ('DTYPE = "{dtype}"', 'DTYPE = "{tp*pp}"', "variables[0].values.DTYPE", "tp*pp"),
    "condition": ('"gpus > 8"', '"gpus > all"', "variables[1].when[0]", "not a condition"),
    "what cannot be given": ('"{steps}"', '"{nodes}"', "variables[1].values.MAX_STEPS", "not one placeholder"),
    "variable that is not read": ("MAX_STEPS =", "TIME_LIMIT =", "variables[1].values.TIME_LIMIT", "no effect"),
    "sbatch without options": ('options = ["-A", "{account}"]\n', "", "launch.options", "is required for sbatch"),
    "script with a job's name": ('how = "sbatch"', 'how = "bash"', "launch.options", "is required for sbatch"),
    "option": ('"{account}"', '"{user}"', "launch.options[1]", "user"),
    "what is always done": ('["vboost"]', '["magic"]', "launch.always[0]", "'magic' is not one of"),
    "condition of a flaw": ('["save_checkpoint"]', '["never"]', "launch.flaws[0].when[0]", "not a condition"),
    "log elsewhere": ('"{results}/log', '"{dtype}/log', "launch.log", "not a path below"),
}


@pytest.fixture
def preset(tiny_preset: Path, tiny_text: str) -> Path:
    tiny_preset.write_text(tiny_text + PROCEDURE, encoding="utf-8")
    (tiny_preset.parent / "constraints").mkdir()
    (tiny_preset.parent / "constraints/tiny.txt").write_text("# a day\none==1.0\ntwo<=2 ; python_version < '3.12'\n")
    return tiny_preset


def test_a_procedure_is_read(preset: Path) -> None:
    procedure = read_preset(preset).upstream
    assert procedure is not None
    assert procedure.setup.undo == ("{scripts}/NeMo",)
    assert procedure.constraints
    assert procedure.constraints.requirements == ("one==1.0", "two<=2 ; python_version < '3.12'")
    assert procedure.launch.variables[1].if_given


@pytest.mark.parametrize(
    ("line", "reason"), [("one>=1.0", "'one>=1.0' is not `NAME==VERSION`"), (None, "cannot be read")]
)
def test_a_constraints_file_that_cannot_be_used(preset: Path, line: str | None, reason: str) -> None:
    file = preset.parent / "constraints/tiny.txt"
    if line is None:
        file.unlink()
    else:
        file.write_text(line)
    with pytest.raises(PresetError) as caught:
        read_preset(preset)
    assert reason in str(caught.value)
    assert "upstream.constraints.file" in str(caught.value)


def test_a_recipe_needs_no_procedure(tiny_preset: Path) -> None:
    assert read_preset(tiny_preset).upstream is None


@pytest.mark.parametrize(("old", "new", "field", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_procedure_that_does_not_fit(preset: Path, old: str, new: str, field: str, reason: str) -> None:
    before, _, tiny = preset.read_text(encoding="utf-8").partition("[upstream]")
    assert tiny.count(old) >= 1
    preset.write_text(before + "[upstream]" + tiny.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(PresetError) as caught:
        read_preset(preset)
    assert caught.value.field.endswith(field)
    assert reason in str(caught.value)


def procedures(catalog: Catalog) -> dict[str, UpstreamScripts]:
    return {recipe.id: recipe.upstream for recipe in catalog.recipes if recipe.upstream is not None}


def test_each_public_recipe_has_a_procedure(catalog: Catalog) -> None:
    assert {
        recipe: (procedure.tag, procedure.folder, procedure.setup.how, procedure.launch.how)
        for recipe, procedure in procedures(catalog).items()
    } == {
        "nemotron4@25.04": ("v25.04", "nemotron", "job", "bash"),
        "llama3.1@25.04": ("v25.04", "llama3.1", "job", "bash"),
        "llama3.1@24.11": ("v24.11.1", "llama3.1", "login-pty", "sbatch"),
        "grok1@25.02": ("v25.02", "grok1", "job", "sbatch"),
        "nemotron4-340b@25.12": ("v25.12", "nemotron4-340b", "login", "bash"),
    }


def test_a_recipe_needs_a_hub_token_only_if_a_script_reads_it(catalog: Catalog) -> None:
    result = procedures(catalog)
    assert [recipe for recipe, procedure in result.items() if procedure.setup.needs_hub_token] == ["llama3.1@24.11"]
    assert [recipe for recipe, procedure in result.items() if procedure.launch.needs_hub_token] == ["llama3.1@25.04"]


def test_every_gpu_type_has_its_commits(catalog: Catalog) -> None:
    procedure = catalog.recipe("nemotron4-340b@25.12").upstream
    assert procedure is not None
    by_gpu = {
        gpu: [commit.commit[:7] for commit in procedure.commits if gpu in commit.gpus or not commit.gpus]
        for gpu in ("h100", "gb300", "b200", "gb200")
    }
    assert by_gpu["h100"] == by_gpu["gb300"] == ["f260da5", "20d73fe", "04f900a"]
    assert by_gpu["b200"] == by_gpu["gb200"] == ["1f422a1", "ac198fc", "04f900a"]
