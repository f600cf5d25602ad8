"""The SLURM_ variables of a job and of its steps."""

from __future__ import annotations

import platform
from pathlib import Path

from llmb_tui.demo.slurm import facts, hostlist
from llmb_tui.demo.slurm.job import Job


def job_environment(job: Job, submitted_from: dict[str, str], root: Path) -> dict[str, str]:
    """Environment of a batch script."""
    kept = {name: value for name, value in submitted_from.items() if not name.startswith("SLURM_")}
    path = f"{root / 'node-bin'}:{kept.get('PATH', '')}"
    return {**kept, "PATH": path, **_job_variables(job)}


def step_environment(job: Job, current: dict[str, str], step: str, nodes: list[str], tasks: int) -> dict[str, str]:
    """Environment of task 0 of a step on these nodes."""
    per_node = str(-(-tasks // len(nodes)))
    return {
        **current,
        **_job_variables(job),
        "SLURM_NNODES": str(len(nodes)),
        "SLURM_NTASKS": str(tasks),
        "SLURM_NPROCS": str(tasks),
        "SLURM_TASKS_PER_NODE": f"{per_node}(x{len(nodes)})" if len(nodes) > 1 else per_node,
        "SLURM_STEP_ID": step,
        "SLURM_STEPID": step,
        "SLURM_STEP_NODELIST": hostlist.compress(nodes),
        "SLURM_STEP_NUM_NODES": str(len(nodes)),
        "SLURM_STEP_NUM_TASKS": str(tasks),
        "SLURMD_NODENAME": nodes[0],
    }


def _job_variables(job: Job) -> dict[str, str]:
    nodes = str(job.nodes)
    per_node = str(job.tasks_per_node)
    multiple = f"(x{nodes})" if job.nodes > 1 else ""
    variables = {
        "SLURM_CLUSTER_NAME": facts.CLUSTER,
        "SLURM_CPUS_ON_NODE": str(facts.CPUS_PER_NODE),
        "SLURM_JOBID": str(job.id),
        "SLURM_JOB_ACCOUNT": job.account,
        "SLURM_JOB_CPUS_PER_NODE": f"{facts.CPUS_PER_NODE}{multiple}",
        "SLURM_JOB_ID": str(job.id),
        "SLURM_JOB_NAME": job.name,
        "SLURM_JOB_NODELIST": job.node_list,
        "SLURM_JOB_NUM_NODES": nodes,
        "SLURM_JOB_PARTITION": job.partition,
        "SLURM_JOB_QOS": facts.QOS,
        "SLURM_JOB_UID": str(job.uid),
        "SLURM_JOB_USER": job.user,
        "SLURM_LOCALID": "0",
        "SLURM_NNODES": nodes,
        "SLURM_NODEID": "0",
        "SLURM_NODELIST": job.node_list,
        "SLURM_NPROCS": str(job.tasks),
        "SLURM_NTASKS": str(job.tasks),
        "SLURM_NTASKS_PER_NODE": per_node,
        "SLURM_OPEN_MODE": "a" if job.append else "t",
        "SLURM_PROCID": "0",
        "SLURM_SUBMIT_DIR": job.work_dir,
        "SLURM_SUBMIT_HOST": platform.node(),
        "SLURM_TASKS_PER_NODE": f"{per_node}{multiple}",
        "SLURMD_NODENAME": job.node_names[0],
    }
    if job.gpus_per_node:
        gpus = ",".join(str(index) for index in range(job.gpus_per_node))
        variables |= {"SLURM_GPUS_PER_NODE": str(job.gpus_per_node), "SLURM_GPUS_ON_NODE": str(job.gpus_per_node)}
        variables |= {"SLURM_JOB_GPUS": gpus, "CUDA_VISIBLE_DEVICES": gpus}
    if job.restarts:
        variables["SLURM_RESTART_COUNT"] = str(job.restarts)
    return variables
