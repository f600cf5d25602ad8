"""A stand-in for an installation of llmb-install and llmb-run, in the layout of v25.12; contains no file of NVIDIA.

It does the submission itself that llmb-run would do: NeMo-Run's folders, batch script and log names, `sbatch`, and the
file next to the logs.
"""

from __future__ import annotations

import time
from pathlib import Path

from tests.kit.waiting import until
from tests.rig.cluster import Rig

SECRET = "hf_abcdefghijklmnopqrstuvwxyz"
WORKLOAD = "pretrain_nemotron4-340b"
IMAGE = "nvidia+nemo+25.07.01.sqsh"
TASK = "pretrain_nemotron4_340b_fp8_gpus128_tp8_pp4_cp1_vp12_mbs1_gbs32"
JOB_NAME = f"llmbench-llmbench.{TASK}"

CONFIG = """\
launcher:
  llmb_repo: {root}/llmb_repo
  llmb_install: {root}
  gpu_type: gb200
  node_architecture: aarch64
install:
  venv_type: uv
  method: slurm
  node_architecture: aarch64
environment:
  HF_TOKEN: {secret}
slurm:
  account: llmb_other
  gpu_partition: small
  gpu_gres: 4
  cpu_partition: cpu
  cpu_gres: null
workloads:
  installed:
  - pretrain_nemotron4-340b
  - pretrain_llama3.1
  config:
    pretrain_nemotron4-340b:
      venv_path: {root}/venvs/venv_1
      venv_type: uv
    pretrain_llama3.1:
      venv_path: {root}/venvs/venv_2
      venv_type: uv
"""

# Written as `create_cluster_config` of v26.06.01 writes it.
CONFIG_2 = """\
schema_version: 2
llmb_repo: {root}/llmb_repo
llmb_install: {root}
gpu_type: gb200
install:
  venv_type: uv
  method: local
  node_architecture: aarch64
environment:
  HF_TOKEN: {secret}
slurm:
  account: llmbench
  qos: short
  gpu:
    partition: debug
    gres: null
  cpu:
    partition: cpu
    gres: null
workloads:
  installed: [pretrain_llama3.1]
  config: {{}}
"""

_RUN = """\
job_info:
  job_id: '{job}'
  launch_time: '2026-01-21T21:05:18.298517'
  experiment_id: null
workload_info:
  framework: {framework}
  gsw_version: '{release}'
  fw_version: 25.07.01
  workload_type: pretrain
  synthetic_dataset: true
model_info:
  model_name: nemotron4
  model_size: 340b
  dtype: fp8
  scale: 128
  gpu_type: gb200
cluster_info:
  cluster_name: rig
  gpus_per_node: 4
  llmb_install: {root}
  llmb_repo: {root}/llmb_repo
  slurm_account: llmbench
  slurm_gpu_partition: batch
  slurm_cpu_partition: cpu
container_info:
  images:
  - nvcr.io#nvidia/nemo:25.07.01
job_config:
  profile_enabled: false
  strong_scaling: false
  env_overrides:
    HF_TOKEN: {secret}
  model_overrides: {{}}
"""

# NeMo-Run's script starts the training with `srun --output …`; here the script itself writes the log. Each start
# writes some more steps, and waits if a file requests it.
_SCRIPT = """\
#!/bin/bash
#SBATCH --account=llmbench
#SBATCH --job-name={name}
#SBATCH --nodes=1
#SBATCH --open-mode=append
#SBATCH --output={folder}/sbatch_{name}_%j.out
#SBATCH --partition=batch
restart=${{SLURM_RESTART_COUNT:-0}}
log={folder}/log-{name}_${{SLURM_JOB_ID}}_$restart.out
echo "[NeMo I] start $restart" > "$log"
head -n 3 {folder}/steps >> "$log"
[ "$restart" -gt 0 ] || until [ -e {folder}/again ]; do sleep 0.1; done
tail -n +4 {folder}/steps >> "$log"
until [ -e {folder}/end ]; do sleep 0.1; done
echo "job exited with code 0"
"""
_STEP = (
    "Training epoch 0, iteration {i}/49 | lr: 4.491e-06 | global_batch_size: 32 | global_step: {i} | "
    "reduced_train_loss: 12.81 | train_step_timing in s: {seconds:.4f} | TFLOPS_per_GPU: 1058.\n"
)


class Installation:
    """One installation."""

    def __init__(self, rig: Rig, root: Path | None = None, config: str = CONFIG, release: str = "25.12") -> None:
        self.rig = rig
        self.root = root or rig.new_dir()
        self.write("cluster_config.yaml", config.format(root=self.root, secret=SECRET))
        self.write("llmb_repo/release.yaml", f"# Top-level release metadata\n\nllmb_version: '{release}'\n")
        self.write("venvs/venv_1/bin/python3", "")
        # With `-i` the images are in another directory, and this one contains links to them.
        self.write("shared/images", "hsqs, an image")
        self.sh(f"mkdir {self.root}/images && ln -s {self.root}/shared/images {self.root}/images/{IMAGE}")

    def launch(self, release: str = "25.12", framework: str = "nemo2", step_s: float = 1.0) -> LaunchedJob:
        """Submit a job as llmb-run does."""
        top = f"workloads/{WORKLOAD}/experiments/{TASK}/{TASK}_{time.time_ns()}"
        folder = f"{self.root}/{top}/{TASK}"
        steps = "".join(_STEP.format(i=i, seconds=step_s) for i in range(50))
        self.write(f"{top}/{TASK}/steps", steps)
        self.write(f"{top}/{TASK}_sbatch.sh", _SCRIPT.format(name=JOB_NAME, folder=folder))
        argv = ["sbatch", "--requeue", "--parsable", f"{folder}_sbatch.sh"]
        job = self.rig.as_operator(argv, check=True).stdout.strip()
        text = _RUN.format(job=job, root=self.root, release=release, framework=framework, secret=SECRET)
        self.write(f"{top}/{TASK}/llmb-config_{job}.yaml", text)
        return LaunchedJob(self.rig, job, Path(folder))

    def write(self, below: str, text: str) -> None:
        """Write a file as the operator."""
        path = f"{self.root}/{below}"
        command = ["sh", "-c", 'umask 022; mkdir -p "$(dirname "$1")"; cat > "$1"', "sh", path]
        self.rig.as_operator(command, stdin=text, check=True)

    def sh(self, line: str) -> str:
        """Run a line of sh as the operator in the installation."""
        return str(self.rig.as_operator(line, check=True).stdout)


class LaunchedJob:
    """One job, as the cluster sees it."""

    def __init__(self, rig: Rig, job: str, folder: Path) -> None:
        self.rig = rig
        self.job = job
        self.folder = folder

    def log(self, restart: int = 0) -> Path:
        """Path of the log that NeMo-Run's job writes."""
        return self.folder / f"log-{JOB_NAME}_{self.job}_{restart}.out"

    def state(self) -> str:
        """Slurm's state of the job; empty after Slurm has forgotten it."""
        return str(self.rig.as_operator(["squeue", "-h", "-j", self.job, "-o", "%T"]).stdout.strip())

    def requeue(self) -> None:
        """Have Slurm start the job again, soon."""
        self.rig.as_operator(["scontrol", "requeue", self.job], check=True)
        waiting = ["squeue", "-h", "-j", self.job, "-t", "PENDING", "-o", "%r"]
        until(lambda: self.rig.as_operator(waiting).stdout.strip() == "BeginTime", "it waits")
        self.rig.as_operator(["scontrol", "update", f"jobid={self.job}", "StartTime=now+3"], check=True)

    def finish(self) -> None:
        """Let the job write its remaining steps and end."""
        for name in ("again", "end"):
            (self.folder / name).touch()
