"""The stand-ins for Pyxis, Enroot and the training keep their contracts, and identify themselves as stand-ins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.demo.demo_client import PLAN
from tests.rig import cgroup
from tests.rig.cluster import Rig

IMPORT = "enroot import -o {} docker://nvcr.io#nvidia/nemo:25.02.01"
TRAIN = "python /nemo_run/code/pretrain.py /nemo_run/configs/launch.json"
HYDRA = "python3 -u /opt/NeMo/examples/nlp/language_modeling/megatron_gpt_pretraining.py"


@pytest.fixture
def task(rig: Rig) -> Path:
    """A directory on the cluster with an image and the other files of a run."""
    folder = rig.new_dir()
    rig.as_operator(IMPORT.format(folder / "image.sqsh"), check=True)
    for name, text in {"code/pretrain.py": "", "configs/launch.json": "{}", "configs/plan.json": plan()}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def plan(**changes: Any) -> str:
    return json.dumps({**PLAN, "steps": 3, **changes})


def srun(task: Path, command: str, *options: str) -> str:
    usual = f"--container-image={task}/image.sqsh --container-mounts={task}:/nemo_run,{task}/configs:/cfg:ro"
    return f"srun {usual} {' '.join(options)} {command}"


def test_the_container_has_the_requested_mounts_and_working_directory(rig: Rig, task: Path) -> None:
    look = f"sh -c 'hostname; pwd; ls /cfg; cat /nemo_run/code/pretrain.py; ls {rig.directory}; echo x > /cfg/new'"
    done = rig.as_operator(srun(task, look, "--nodes=2", "--container-workdir=/nemo_run/code"))
    assert sorted(done.stdout.split("\n")) == sorted(
        ["", *["/nemo_run/code", "launch.json", "plan.json"] * 2, "cn001", "cn002"]
    )
    assert done.stderr.count("Read-only file system") == 2
    assert done.stderr.count(f"TEST DOUBLE: no container was started for image {task}/image.sqsh") == 2
    assert done.stderr.count("cannot access") == 2, "a directory of the cluster is visible without a mount"


def test_path_comes_from_the_image_unless_container_env_names_it(rig: Rig, task: Path) -> None:
    command = "env PATH=/mine:/usr/bin srun --container-image=$0/image.sqsh {} printenv PATH"
    for option, expected in {"": "/usr/local/sbin:", "--container-env=FOO,PATH": "/mine:"}.items():
        done = rig.as_operator(["sh", "-c", command.format(option), str(task)], check=True)
        assert done.stdout.startswith(expected)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--container-image=/no/such.sqsh", "[ERROR] No such file or directory: /no/such.sqsh"),
        ("--container-image=/etc/hosts", "[ERROR] Invalid image format: /etc/hosts"),
        ("--container-image=nvcr.io#nvidia/nemo:25.02", "pyxis: failed to import docker image: nvcr.io#nvidia/nemo"),
        ("--container-image={0}/image.sqsh --container-mounts=/gone:/x", "source path does not exist: /gone"),
        ("--container-image={0}/image.sqsh --container-workdir=/gone", "pyxis: couldn't chdir to /gone"),
    ],
)
def test_container_errors_are_reported_in_the_words_of_pyxis(rig: Rig, task: Path, options: str, expected: str) -> None:
    done = rig.as_operator(f"srun {options.format(task)} true")
    assert done.returncode == 1
    assert expected in done.stderr
    assert "Failed to invoke spank plugin stack" in done.stderr


def test_a_training_prints_the_steps_of_rank_zero_and_that_it_is_simulated(rig: Rig, task: Path) -> None:
    done = rig.as_operator(srun(task, TRAIN, "--mpi=pmix", "--nodes=2", "--ntasks-per-node=8", "--gpus-per-node=8"))
    assert done.returncode == 0, done.stderr
    steps = [line for line in done.stdout.split("\n") if line.startswith("Training epoch 0")]
    assert [line.partition("global_step: ")[2][0] for line in steps] == ["0", "1", "2"]
    assert "simulated: no training happens" in done.stderr


def test_a_hydra_training_draws_its_bar(rig: Rig, task: Path) -> None:
    (task / "configs" / "model.yaml").write_text("")
    command = f"{HYDRA} --config-path=/cfg --config-name=model.yaml trainer.max_steps=2"
    done = rig.as_operator(srun(task, command), check=True)
    assert "| 2/2 [" in done.stdout.rsplit("Epoch 0", 1)[1]


def test_other_programs_are_run_by_the_real_python(rig: Rig, task: Path) -> None:
    done = rig.as_operator(srun(task, "python -c 'import sys; print(sys.version_info.major)'"), check=True)
    assert done.stdout == "3\n"


def test_a_training_that_fails_ends_its_job(rig: Rig, task: Path) -> None:
    with rig.knob("faults/fail-at-step", "1"):
        done = rig.as_operator(srun(task, TRAIN, "--ntasks=4", "--kill-on-bad-exit=1"))
    assert done.returncode
    assert "Traceback (most recent call last)" in done.stderr
    assert "global_step: 0" in done.stdout
    assert "global_step: 1" not in done.stdout


def test_slurm_kills_a_run_that_uses_too_much_memory(rig: Rig, task: Path) -> None:
    with rig.knob("faults/oom"):
        done = rig.as_operator(srun(task, TRAIN, "--mem=200M"))
    assert done.returncode
    words = "Detected 1 oom-kill event(s) in StepId=" if cgroup.available() else "exceeded memory limit"
    assert words in done.stderr


def test_enroot_shows_its_progress_and_never_overwrites(rig: Rig) -> None:
    image = rig.new_dir() / "image.sqsh"
    first, second = (rig.as_operator(IMPORT.format(image)) for _ in range(2))
    assert rig.as_operator("enroot version").stdout == "3.5.0\n"
    assert (first.returncode, second.returncode) == (0, 1)
    assert "[INFO] Fetching image manifest" in first.stderr
    assert "Test double: nothing is downloaded" in first.stderr
    assert second.stderr == f"[ERROR] File already exists: {image}\n"
    assert image.read_bytes().startswith(b"hsqs Test double")


@pytest.mark.parametrize(
    ("fault", "code", "expected"),
    [
        ("no-network", 6, "curl: (6) Could not resolve host: nvcr.io"),
        ("not-json", 1, "[ERROR] Could not process JSON input\ncurl: (22) The requested URL returned error: 401"),
        ("not-found", 1, "returned error code: 404 Not Found"),
        ("no-space", 1, "No space left on device"),
    ],
)
def test_enroot_fails_with_its_genuine_exit_code_and_message(rig: Rig, fault: str, code: int, expected: str) -> None:
    image = rig.new_dir() / "image.sqsh"
    with rig.knob("faults/enroot", fault):
        done = rig.as_operator(IMPORT.format(image))
    assert done.returncode == code
    assert expected in done.stderr
    assert not image.exists()


def test_enroot_reads_the_key_from_its_credentials_file(rig: Rig) -> None:
    image = rig.new_dir() / "image.sqsh"
    with rig.fresh_home(), rig.knob("needs-key", "nvapi-right"):
        assert "401 Unauthorized" in rig.as_operator(IMPORT.format(image)).stderr
        for key, code in {"nvapi-wrong": 1, "nvapi-right": 0}.items():
            rig.as_operator("mkdir -p .config/enroot && cat > .config/enroot/.credentials", stdin=_netrc(key))
            assert rig.as_operator(IMPORT.format(image)).returncode == code


def _netrc(key: str) -> str:
    return f"machine nvcr.io login $oauthtoken password {key}\n"


def test_a_full_disk_is_full_on_every_node(rig: Rig) -> None:
    folder = rig.new_dir()
    write = f"head -c 3000000 /dev/zero > {folder}/file"
    with rig.full_disk(folder, megabytes=1):
        assert "No space left on device" in rig.as_operator(write).stderr
        assert "No space left on device" in rig.as_operator(["srun", "sh", "-c", write]).stderr
    assert rig.as_operator(write).returncode == 0
