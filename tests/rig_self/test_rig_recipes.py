"""The stand-ins of the recipes' repositories, by hand as they say: set up, launch, and the log where it belongs."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.recipes import repositories
from tests.recipes.outside import GITHUB, HUB_TOKEN, Outside
from tests.rig.waiting import wait_for

REPOSITORY = f"{GITHUB}dgxc-benchmarking.git"
PINS = ("pyarrow==19.0.1", "bitsandbytes==0.46.0")
SLURM = {"SBATCH_ACCOUNT": "llmbench", "SBATCH_PARTITION": "batch"}
IMAGE = "nvidia+nemo+25.02.01.sqsh"
PATIENCE_S = 180.0
"""For pip, on cores that others use, too."""
TASK = re.compile(
    r"^Task (\d): (\S+)\n- Status: .*\n- Executor: .*\n- Job id: (\d+)\n- Local Directory: (\S+)$", re.MULTILINE
)


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

    def submit(self, script: str, nodes: int = 1, **variables: str) -> str:
        """The number of the job; launch.sh is submitted in the root, where setup.sh has copied it."""
        folder = self.root if script == "launch.sh" else self.scripts
        words = ["sbatch", "-A", "llmbench", "-p", "batch", "-N", f"{nodes}", f"./{script}"]
        done = self._run(folder, words, {**self.stage, **variables})
        assert done.returncode == 0, done.stderr
        return done.stdout.split()[-1]

    def set_up(self) -> tuple[str, str]:
        """Run setup.sh as a job: how it ended, and what it said."""
        number = self.submit("setup.sh")
        return self.end_of(number), (self.scripts / f"slurm-{number}.out").read_text()

    def pin(self) -> None:
        """What release 25.04.02 added."""
        done = self.run("pip", "install", *PINS)
        assert done.returncode == 0, done.stderr

    def end_of(self, number: str) -> str:
        """State of a job when it is over."""
        wait_for("the job is over", lambda: number not in self.rig.squeue(), PATIENCE_S)
        asked = f"sacct --noheader --allocations --parsable2 --jobs {number} --format State"

        def over() -> str:
            state = self.rig.as_operator(asked).stdout.strip()
            return "" if state in ("RUNNING", "PENDING") else state

        return wait_for("the accounting knows it", over)

    def text(self, pattern: str) -> str:
        """Of the one file with such a path below the root."""
        (file,) = self.root.glob(pattern)
        return file.read_text()


@pytest.fixture(scope="module")
def _made() -> dict[str, Procedure]:
    return {}


@pytest.fixture
def nemotron(outside: Outside, _made: dict[str, Procedure]) -> Procedure:
    """Nemotron4 25.04, set up once for all tests that leave it as it is."""
    if "nemotron" not in _made:
        procedure = Procedure(outside, "v25.04", "nemotron")
        state, said = procedure.set_up()
        assert state == "COMPLETED", said
        _made["nemotron"] = procedure
    return _made["nemotron"]


@pytest.fixture
def _quick(outside: Outside) -> Iterator[None]:
    with outside.rig.knob("speed", "2000"), outside.rig.knob("step-s", "2.7"):
        yield


def tasks(launched: subprocess.CompletedProcess[str]) -> list[tuple[str, str, str, str]]:
    """What a launch said about each task: number, name, job, folder."""
    assert launched.returncode == 0, launched.stdout + launched.stderr
    return TASK.findall(launched.stdout)


@pytest.mark.usefixtures("_quick")
def test_nemotron4_of_25_04(nemotron: Procedure) -> None:
    root = nemotron.root
    assert (root / IMAGE).read_bytes()[:4] == b"hsqs"
    variables = {**nemotron.stage, **SLURM, "MODEL_SIZE": "15b", "DTYPE": "fp8", "JOB_TOTAL_GPUS": "16"}

    early = nemotron.run("./launch.sh", **variables)
    assert early.returncode != 0
    assert "does not work with pyarrow" in early.stderr
    nemotron.pin()
    launched = nemotron.run("./launch.sh", **variables)

    ((number, name, job, folder),) = tasks(launched)
    assert (number, name) == ("0", "pretrain_nemotron4_15b_fp8_16")
    experiment = re.search(r"Experiment Status for (\S+)", launched.stdout)
    assert experiment
    assert re.fullmatch(rf"{name}_\d{{10}}", experiment[1])
    assert Path(folder) == root / "experiments" / name / experiment[1] / name
    assert nemotron.end_of(job) == "COMPLETED"
    log = (Path(folder) / f"log-llmbench-llmbench.{name}_{job}_0.out").read_text()
    assert "Training epoch 0, iteration 49/49 | " in log
    assert "| global_batch_size: 64 |" in log
    assert "job exited with code 0" in (Path(folder) / f"sbatch_llmbench-llmbench.{name}_{job}.out").read_text()
    assert (root / ".slurm_jobs").read_text().startswith(f"{job} = {folder}/log")
    script = (root / "experiments" / name / experiment[1] / f"{name}_sbatch.sh").read_text()
    assert "srun --ntasks=2 --output" in script, "the step that asks for more power"
    assert f"{root}:{root}" in script
    assert "export NVTE_FWD_LAYERNORM_SM_MARGIN=16" in script


def test_nemotron4_that_is_set_up_twice(nemotron: Procedure) -> None:
    state, said = nemotron.set_up()
    assert state == "FAILED"
    assert f"[ERROR] File already exists: {nemotron.root / IMAGE}" in said
    assert "Cloning into 'NeMo'" not in said


def test_nemotron4_with_an_unknown_size(nemotron: Procedure) -> None:
    launched = nemotron.run("./launch.sh", **nemotron.stage, **SLURM, MODEL_SIZE="8b")
    assert (launched.returncode, "TP: unbound variable" in launched.stderr) == (1, True)


def test_nemotron4_whose_nemo_was_never_patched(outside: Outside) -> None:
    procedure = Procedure(outside, "v25.04", "nemotron")
    clone = f"git clone -q {GITHUB}NeMo && git -C NeMo checkout -q {outside.commit(repositories.NEMO_25_04)}"
    assert procedure.run("sh", "-c", clone).returncode == 0
    state, said = procedure.set_up()
    assert state == "COMPLETED", said
    assert "All done!" not in said, "it takes NeMo as it is"

    launched = procedure.run("./launch.sh", **procedure.stage, **SLURM)
    assert launched.returncode == 2
    assert "unrecognized arguments: --num_layers 32 --hidden_size 6144" in launched.stderr


@pytest.mark.usefixtures("_quick")
def test_llama31_of_25_04_with_three_tasks(outside: Outside) -> None:
    procedure = Procedure(outside, "v25.04", "llama3.1")
    state, said = procedure.set_up()
    assert state == "COMPLETED", said
    procedure.pin()
    variables = {**procedure.stage, **SLURM, "ENABLE_PROFILE": "true", "ENABLE_NCCLTRACE": "true"}

    early = procedure.run("./launch.sh", **variables)
    assert (early.returncode, "Required variable HF_TOKEN" in early.stderr) == (1, True)
    launched = procedure.run("./launch.sh", HF_TOKEN=HUB_TOKEN, **variables)

    found = tasks(launched)
    name = "pretrain_llama3.1_8b_bf16_8"
    assert [(number, task) for number, task, _, _ in found] == [
        ("0", name),
        ("1", f"{name}_nsys"),
        ("2", f"{name}_nccltrace"),
    ]
    lasts = {name: "24/24", f"{name}_nsys": "24/24", f"{name}_nccltrace": "4/4"}
    for _, task, job, folder in found:
        assert procedure.end_of(job) == "COMPLETED"
        log = (Path(folder) / f"log-llmbench-llmbench.{task}_{job}_0.out").read_text()
        assert f"iteration {lasts[task]} |" in log
        script = (Path(folder).parent / f"{task}_sbatch.sh").read_text()
        assert f"export HF_TOKEN={HUB_TOKEN}" in script, "as the real one does"
    assert list(procedure.root.glob(f"experiments/{name}/*/{name}_nsys/nsys_profile/profile_*.nsys-rep"))


@pytest.mark.usefixtures("_quick")
def test_nemotron4_340b_of_25_12(outside: Outside) -> None:
    procedure = Procedure(outside, "v25.12", "nemotron4-340b", "llmb_repo")
    root = procedure.root
    nothing: dict[str, str] = {}
    for missing, given in (("GPU_TYPE", nothing), ("LLMB_INSTALL", {"GPU_TYPE": "h100"})):
        done = procedure.run("bash", "./setup.sh", **given)
        assert (done.returncode, f"{missing}: " in done.stderr) == (1, True)
    variables = {"LLMB_INSTALL": str(root), "GPU_TYPE": "h100"}
    with outside.lost(repositories.NEMO_25_12_NEW):
        done = procedure.run("bash", "./setup.sh", **variables)
        assert done.returncode != 0
        assert f"reference is not a tree: {outside.commit(repositories.NEMO_25_12_NEW)}" in done.stderr
    done = procedure.run("bash", "./setup.sh", **variables)
    assert done.returncode == 0, done.stdout + done.stderr

    image = f"enroot import --output {root}/images/nvidia+nemo+25.09.00.sqsh docker://nvcr.io#nvidia/nemo:25.09.00"
    assert procedure.run(*shlex.split(image)).returncode == 0
    (root / ".cache" / "huggingface").mkdir(parents=True)
    variables |= SLURM
    wrong = procedure.run("./launch.sh", **variables | {"GPU_TYPE": "a100", "JOB_TOTAL_GPUS": "16"})
    assert (wrong.returncode, "a100 is unsupported for this workload." in wrong.stdout) == (1, True)
    launched = procedure.run("./launch.sh", JOB_TOTAL_GPUS="16", DTYPE="bf16", **variables)

    ((_, name, job, folder),) = tasks(launched)
    assert name == "pretrain_nemotron4_340b_bf16_gpus16_tp8_pp8_cp1_vp12_mbs1_gbs4"
    assert Path(folder).is_relative_to(root / "workloads" / "pretrain_nemotron4-340b" / "experiments")
    assert procedure.end_of(job) == "COMPLETED"
    log = (Path(folder) / f"log-llmbench-llmbench.{name}_{job}_0.out").read_text()
    assert "iteration 49/49 |" in log
    assert "numactl --cpunodebind=$((SLURM_LOCALID/4))" in procedure.text(f"workloads/*/experiments/*/*/{name}/**/*.sh")


@pytest.mark.usefixtures("_quick")
def test_grok1_of_25_02(outside: Outside) -> None:
    procedure = Procedure(outside, "v25.02", "grok1")
    state, said = procedure.set_up()
    assert state == "COMPLETED", said

    job = procedure.submit("launch.sh", DTYPE="bf16")
    assert procedure.end_of(job) == "COMPLETED"
    log = procedure.text(f"results/25.02/bf16/314b/8/log-nemo_grok1_314b_8_{job}.out")
    assert "GSW: MODEL=grok1 FRAMEWORK=nemo MODEL_SIZE=314b JOB_NUM_NODES=1 " in log
    assert re.search(r"\n(Epoch 0: : 100%.* 50/50 \[.*consumed_samples=51200\.0.*)\n", log)
    assert (
        procedure.text(f"results/25.02/bf16/314b/8/log-nemo_grok1_314b_8_{job}.err").count("no training happens") == 1
    )


@pytest.mark.usefixtures("_quick")
def test_grok1_where_srun_is_older_than_23_02(outside: Outside) -> None:
    procedure = Procedure(outside, "v25.02", "grok1")
    assert procedure.set_up()[0] == "COMPLETED"
    with outside.rig.knob("faults/old-srun"):
        job = procedure.submit("launch.sh")
        assert procedure.end_of(job) == "COMPLETED"
    assert not list(procedure.root.glob("results/25.02/fp8/314b/8/log-*"))
    assert " 50/50 [" in (procedure.root / f"slurm-{job}.out").read_text()


@pytest.mark.usefixtures("_quick")
def test_llama31_of_24_11(outside: Outside) -> None:
    procedure = Procedure(outside, "v24.11.1", "llama3.1")
    early = procedure.run("bash", "./setup.sh", **procedure.stage)
    assert (early.returncode, "Required variable HF_TOKEN" in early.stderr) == (1, True)
    variables = {**procedure.stage, "HF_TOKEN": HUB_TOKEN, "SLURM_ACCOUNT": "llmbench", "SLURM_PARTITION": "batch"}
    done = procedure.run("script", "-qec", "bash ./setup.sh", "/dev/null", TERM="dumb", **variables)
    assert done.returncode == 0, done.stdout
    assert (procedure.root / "llama3.1-dataset" / "llama" / "tokenizer.json").is_file()
    assert (procedure.root / "launcher_scripts").is_dir()

    job = procedure.submit("launch.sh", nodes=4, DTYPE="bf16", MODEL_SIZE="405b")
    assert procedure.end_of(job) == "COMPLETED"
    log = procedure.text(f"results/24.11/bf16/405b/32/log-nemo_llama3.1_405b_32_{job}.out")
    assert re.search(r"50/50 \[.*v_num=\w{4}.*consumed_samples=6300\.0", log), "global batch size 126, as a proxy has"
    assert "trainer.max_steps=50" in log


def test_a_token_that_the_hub_does_not_take(outside: Outside) -> None:
    procedure = Procedure(outside, "v24.11.1", "llama3.1")
    pip = procedure.run("pip", "install", "-q", "huggingface_hub")
    assert pip.returncode == 0, pip.stderr
    words = ("huggingface-cli", "download", "--local-dir", "tokenizer", "meta-llama/Meta-Llama-3-8B", "config.json")
    assert "401 Client Error" in procedure.run(*words, HF_TOKEN="hf_other").stderr
    with outside.rig.knob("faults/hub", "gated"):
        assert "Cannot access gated repo" in procedure.run(*words, HF_TOKEN=HUB_TOKEN).stderr
    assert procedure.run(*words, HF_TOKEN=HUB_TOKEN).returncode == 0


def test_setup_that_is_held_and_a_package_that_cannot_be_built(outside: Outside) -> None:
    rig = outside.rig
    procedure = Procedure(outside, "v25.04", "nemotron")
    for name in ("NeMo.git", "reinstall", "nemo_toolkit"):
        with rig.knob(f"hold/{name}"):
            job = procedure.submit("setup.sh")
            wait_for(f"{name} is reached", (rig.knobs / "hold" / f"{name}.reached").exists, PATIENCE_S)
            rig.cancel_jobs()
        assert procedure.end_of(job).startswith("CANCELLED")
        procedure.run("rm", "-rf", "NeMo")
    with rig.knob("faults/pip", "megatron-core"):
        state, said = procedure.set_up()
    assert state == "FAILED"
    assert "stand-in: megatron-core cannot be built" in said


def test_what_a_person_brings_to_a_cluster_without_internet(outside: Outside) -> None:
    procedure = Procedure(outside, "v25.02", "grok1")
    brought = procedure.root / "offline"
    outside.bring(brought)
    with outside.no_internet():
        failed = procedure.run("git", "ls-remote", REPOSITORY)
        assert "Could not resolve host" in failed.stderr or "Failed to connect" in failed.stderr
        assert procedure.run("pip", "install", "scipy").returncode != 0
        wheels = ("--no-index", "--find-links", str(brought / "wheels"))
        assert procedure.run("pip", "install", "-q", *wheels, "nemo_run", "scipy").returncode == 0
        for name in repositories.NAMES:
            cloned = procedure.run("git", "clone", "-q", str(brought / f"{name}.bundle"), name)
            assert cloned.returncode == 0, cloned.stderr
        (procedure.scripts / "NeMo" / "reinstall.sh").resolve(strict=True)


def test_the_presets_name_commits_that_are_there(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    from llmb_tui.catalog.load import load_presets

    outside.use_presets(monkeypatch)
    wanted = {
        (commit.repository, commit.commit)
        for recipe in load_presets().recipes
        if recipe.published
        for commit in recipe.published.commits
    }
    assert {commit for _, commit in wanted} <= set(outside.repositories.ids.values())
    folder = outside.rig.new_dir()
    for repository, commit in wanted:
        got = outside.rig.as_operator(
            f"git init -q --bare r && git -C r fetch -q --depth 1 --filter=tree:0 {repository} {commit}",
            cwd=str(folder),
        )
        assert (got.returncode, got.stderr) == (0, "")
