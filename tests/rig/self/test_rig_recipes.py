"""The stand-ins of the recipes' repositories fail by hand as the real ones do.

That they set up, launch and train is seen where the program does it: `tests/rig/upstream`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kit.waiting import until
from tests.recipes import repositories
from tests.recipes.outside import GITHUB, Outside

REPOSITORY = f"{GITHUB}dgxc-benchmarking.git"
PINS = ("torch==2.7.0", "pyarrow==19.0.1", "bitsandbytes==0.46.0")
SLURM = {"SBATCH_ACCOUNT": "llmbench", "SBATCH_PARTITION": "batch"}
IMAGE = "nvidia+nemo+25.02.01.sqsh"
PATIENCE_S = 180.0
"""For pip, on cores that others use, too."""


class Procedure:
    """One recipe, in an empty directory."""

    def __init__(self, outside: Outside, tag: str, folder: str, checkout: str = "dgxc-benchmarking") -> None:
        self.rig = outside.rig
        self.root = self.rig.new_dir()
        self.scripts = self.root / checkout / folder
        self.stage = {"STAGE_PATH": str(self.root)}
        self._venv = self.root / "venv"
        clone = ["git", "clone", "-q", "--depth", "1", "-c", "advice.detachedHead=false", "--branch", tag]
        self.rig.as_operator([*clone, REPOSITORY, str(self.root / checkout)], check=True)
        self.rig.as_operator(["/usr/bin/python3", "-m", "venv", str(self._venv)], check=True)

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """In the environment, and in the folder with the scripts."""
        return self._run(self.scripts, words, variables)

    def _run(self, folder: Path, words: Sequence[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
        path = {"PATH": f"{self._venv}/bin:/usr/local/bin:/usr/bin:/bin"}
        return self.rig.as_operator(words, cwd=str(folder), env=path | variables, timeout_s=PATIENCE_S)

    def launch(self, **variables: str) -> subprocess.CompletedProcess[str]:
        """By a launch.sh that submits by itself."""
        return self.run("./launch.sh", **{**self.stage, **SLURM, **variables})

    def set_up(self) -> tuple[str, str]:
        """Run setup.sh as a job: how it ended, and what it said."""
        words = ["sbatch", "-A", "llmbench", "-p", "batch", "-N", "1", "./setup.sh"]
        done = self.run(*words, **self.stage)
        assert done.returncode == 0, done.stderr
        number = done.stdout.split()[-1]
        return self.end_of(number), (self.scripts / f"slurm-{number}.out").read_text()

    def pin(self) -> None:
        """The torch of the release, and what release 25.04.02 added."""
        done = self.run("pip", "install", *PINS)
        assert done.returncode == 0, done.stderr

    def end_of(self, number: str) -> str:
        """State of a job when it is over."""
        until(lambda: number not in self.rig.squeue(), "the job is over", deadline_s=PATIENCE_S)
        asked = f"sacct --noheader --allocations --parsable2 --jobs {number} --format State"

        def over() -> str:
            state = self.rig.as_operator(asked).stdout.strip()
            return "" if state in ("RUNNING", "PENDING") else state

        return until(over, "the accounting knows it")


@pytest.fixture(scope="module")
def _made() -> dict[str, Procedure]:
    return {}


@pytest.fixture
def nemotron(outside: Outside, _made: dict[str, Procedure]) -> Procedure:
    """Nemotron4 25.04, set up once for all tests, which leave it as it is."""
    if "nemotron" not in _made:
        outside.need_little("nemo_run")
        procedure = Procedure(outside, "v25.04", "nemotron")
        state, output = procedure.set_up()
        assert state == "COMPLETED", output
        assert (procedure.root / IMAGE).read_bytes()[:4] == b"hsqs"
        _made["nemotron"] = procedure
    return _made["nemotron"]


def test_nemotron4_with_the_torch_of_today_and_without_the_pins_of_its_release_notes(nemotron: Procedure) -> None:
    launched = nemotron.launch()
    assert (launched.returncode != 0, "'_type_utils' from 'torch.onnx'" in launched.stderr) == (True, True)
    assert nemotron.run("pip", "install", PINS[0]).returncode == 0
    launched = nemotron.launch()
    assert (launched.returncode != 0, "does not work with " in launched.stderr) == (True, True)


def test_nemotron4_with_an_unknown_size(nemotron: Procedure) -> None:
    launched = nemotron.launch(MODEL_SIZE="8b")
    assert (launched.returncode, "TP: unbound variable" in launched.stderr) == (1, True)


def test_nemotron4_that_is_set_up_twice(nemotron: Procedure) -> None:
    state, output = nemotron.set_up()
    assert state == "FAILED"
    assert f"[ERROR] File already exists: {nemotron.root / IMAGE}" in output
    assert "Cloning into 'NeMo'" not in output, "it takes NeMo as it is, however far an earlier attempt came"


def test_nemotron4_whose_nemo_was_never_patched(nemotron: Procedure) -> None:
    nemotron.pin()
    patch = ["git", "-C", "NeMo", "apply", str(nemotron.scripts / "gsw_nemo.patch")]
    assert nemotron.run(*patch, "--reverse").returncode == 0
    launched = nemotron.launch()
    assert nemotron.run(*patch).returncode == 0
    assert launched.returncode == 2
    assert "unrecognized arguments: --num_layers 32 --hidden_size 6144" in launched.stderr


def test_llama31_of_25_04_without_a_token(outside: Outside) -> None:
    launched = Procedure(outside, "v25.04", "llama3.1").launch(ENABLE_PROFILE="true", ENABLE_NCCLTRACE="true")
    assert (launched.returncode, "Required variable HF_TOKEN" in launched.stderr) == (1, True)


def test_llama31_of_24_11_without_a_token(outside: Outside) -> None:
    procedure = Procedure(outside, "v24.11.1", "llama3.1")
    early = procedure.run("bash", "./setup.sh", **procedure.stage)
    assert (early.returncode, "Required variable HF_TOKEN" in early.stderr) == (1, True)


def test_nemotron4_340b_of_25_12(outside: Outside) -> None:
    procedure = Procedure(outside, "v25.12", "nemotron4-340b", "llmb_repo")
    nothing: dict[str, str] = {}
    for missing, given in (("GPU_TYPE", nothing), ("LLMB_INSTALL", {"GPU_TYPE": "h100"})):
        done = procedure.run("bash", "./setup.sh", **given)
        assert (done.returncode, f"{missing}: " in done.stderr) == (1, True)
    variables = {"LLMB_INSTALL": str(procedure.root), "GPU_TYPE": "h100"}
    with outside.lost(repositories.NEMO_25_12_NEW):
        done = procedure.run("bash", "./setup.sh", **variables)
        assert done.returncode != 0
        assert f"reference is not a tree: {outside.commit(repositories.NEMO_25_12_NEW)}" in done.stderr
    wrong = procedure.launch(**variables | {"GPU_TYPE": "a100", "JOB_TOTAL_GPUS": "16"})
    assert (wrong.returncode, "a100 is unsupported for this workload." in wrong.stdout) == (1, True)


def test_the_presets_name_commits_that_are_there(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    from llmb_tui.catalog.load import load_presets

    outside.use_presets(monkeypatch)
    wanted = {
        (commit.repository, commit.commit)
        for recipe in load_presets().recipes
        if recipe.upstream
        for commit in recipe.upstream.commits
    }
    assert {commit for _, commit in wanted} <= set(outside.repositories.ids.values())
    folder = outside.rig.new_dir()
    for repository, commit in wanted:
        got = outside.rig.as_operator(
            f"git init -q --bare r && git -C r fetch -q --depth 1 --filter=tree:0 {repository} {commit}",
            cwd=str(folder),
        )
        assert (got.returncode, got.stderr) == (0, "")
