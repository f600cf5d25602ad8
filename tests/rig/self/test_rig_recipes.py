"""The stand-ins of the recipes' repositories fail like the real ones when a user runs them directly.

`tests/rig/upstream` shows that the program sets them up, launches them and trains with them.
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
"""Seconds for pip, on processor cores that other processes use as well."""


class Procedure:
    """One recipe, in a new directory."""

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
        """Run a command in the environment, in the folder with the scripts."""
        return self._run(self.scripts, words, variables)

    def _run(self, folder: Path, words: Sequence[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
        path = {"PATH": f"{self._venv}/bin:/usr/local/bin:/usr/bin:/bin"}
        return self.rig.as_operator(words, cwd=str(folder), env=path | variables, timeout_s=PATIENCE_S)

    def launch(self, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a launch.sh that submits by itself."""
        return self.run("./launch.sh", **{**self.stage, **SLURM, **variables})

    def set_up(self) -> tuple[str, str]:
        """Run setup.sh as a job; returns the job's state and output."""
        words = ["sbatch", "-A", "llmbench", "-p", "batch", "-N", "1", "./setup.sh"]
        done = self.run(*words, **self.stage)
        assert done.returncode == 0, done.stderr
        number = done.stdout.split()[-1]
        return self.end_of(number), (self.scripts / f"slurm-{number}.out").read_text()

    def pin(self) -> None:
        """Install the torch of the release, and the packages that release 25.04.02 added."""
        done = self.run("pip", "install", *PINS)
        assert done.returncode == 0, done.stderr

    def end_of(self, number: str) -> str:
        """State of a job after its end."""
        until(lambda: number not in self.rig.squeue(), "the job has ended", deadline_s=PATIENCE_S)
        query = f"sacct --noheader --allocations --parsable2 --jobs {number} --format State"

        def final_state() -> str:
            state = self.rig.as_operator(query).stdout.strip()
            return "" if state in ("RUNNING", "PENDING") else state

        return until(final_state, "accounting has the job")


@pytest.fixture(scope="module")
def _procedures() -> dict[str, Procedure]:
    return {}


@pytest.fixture
def nemotron(outside: Outside, _procedures: dict[str, Procedure]) -> Procedure:
    """Nemotron4 25.04, set up once for all tests, which do not change it."""
    if "nemotron" not in _procedures:
        outside.need_little("nemo_run")
        procedure = Procedure(outside, "v25.04", "nemotron")
        state, output = procedure.set_up()
        assert state == "COMPLETED", output
        assert (procedure.root / IMAGE).read_bytes()[:4] == b"hsqs"
        _procedures["nemotron"] = procedure
    return _procedures["nemotron"]


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
    assert "Cloning into 'NeMo'" not in output, "the script cloned NeMo again"


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
    for missing, settings in (("GPU_TYPE", nothing), ("LLMB_INSTALL", {"GPU_TYPE": "h100"})):
        done = procedure.run("bash", "./setup.sh", **settings)
        assert (done.returncode, f"{missing}: " in done.stderr) == (1, True)
    variables = {"LLMB_INSTALL": str(procedure.root), "GPU_TYPE": "h100"}
    with outside.lost(repositories.NEMO_25_12_NEW):
        done = procedure.run("bash", "./setup.sh", **variables)
        assert done.returncode != 0
        assert f"reference is not a tree: {outside.commit(repositories.NEMO_25_12_NEW)}" in done.stderr
    wrong = procedure.launch(**variables | {"GPU_TYPE": "a100", "JOB_TOTAL_GPUS": "16"})
    assert (wrong.returncode, "a100 is unsupported for this workload." in wrong.stdout) == (1, True)


def test_the_presets_name_existing_commits(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    from llmb_tui.catalog.load import load_presets

    outside.use_presets(monkeypatch)
    expected = {
        (commit.repository, commit.commit)
        for recipe in load_presets().recipes
        if recipe.upstream
        for commit in recipe.upstream.commits
    }
    assert {commit for _, commit in expected} <= set(outside.repositories.ids.values())
    folder = outside.rig.new_dir()
    for repository, commit in expected:
        answer = outside.rig.as_operator(
            f"git init -q --bare r && git -C r fetch -q --depth 1 --filter=tree:0 {repository} {commit}",
            cwd=str(folder),
        )
        assert (answer.returncode, answer.stderr) == (0, "")
