"""Where the tasks of a job run: its nodes in segments, its tasks on a node's CPUs and memory. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.params import Option
from llmb_tui.cluster.slurm.version import SEGMENT_SINCE, Version
from llmb_tui.launch.settings import Applied

# A binding that a node refuses would end the job, so it is tried first: there may be no such NUMA node, or no numactl.
_BIND = """\
bind="numactl --cpunodebind=$((SLURM_LOCALID/{0})) --membind=$((SLURM_LOCALID/{0}))"; \
if $bind true; then exec $bind "$@"; fi; \
echo "task $SLURM_PROCID is not bound to a NUMA node" >&2; exec "$@\""""


def bound(command: tuple[str, ...], settings: Applied, profile: ClusterProfile) -> tuple[str, ...]:
    """A command whose process and memory stay on one NUMA node, if the recipe and the cluster's profile want that."""
    if settings.tasks_per_numa_node is None or not profile.numa_binding or profile.cpus_per_task:
        return command
    return ("bash", "-c", _BIND.format(settings.tasks_per_numa_node), "bash", *command)


def pinning(profile: ClusterProfile) -> dict[str, str | bool]:
    """Options of srun that pin each task to CPUs of its own, as the recipes' `CPU_PER_TASK_PINNING` does."""
    if not profile.cpus_per_task:
        return {}
    return {
        "cpu-bind": "verbose",
        "cpus-per-task": str(profile.cpus_per_task),
        "hint": "multithread",
        "distribution": "*:block",
    }


def wants_segment(options: tuple[Option, ...], settings: Applied) -> bool:
    """Whether the recipe has a segment and the cluster's profile has none."""
    return settings.segment is not None and all(name != "segment" for name, _ in options)


def segmented(
    options: tuple[Option, ...], nodes: int, settings: Applied, slurm: Version | None
) -> tuple[tuple[Option, ...], str]:
    """Sbatch's options with the recipe's segment, where the cluster's profile names none; and why it is left out."""
    if settings.segment is None or not wants_segment(options, settings):
        return options, ""
    size = next(size for size in range(settings.segment, 0, -1) if nodes % size == 0)
    if slurm is not None and slurm >= SEGMENT_SINCE:
        return (*options, ("segment", str(size))), ""
    return options, f"No --segment={size}: Slurm {'unknown' if slurm is None else '{}.{:02}'.format(*slurm)}"


def placement_notes(settings: Applied, profile: ClusterProfile) -> Iterator[str]:
    """Where the placement on a node is not the recipe's."""
    if settings.tasks_per_numa_node is not None and profile.cpus_per_task:
        yield f"{profile.cpus_per_task} CPUs a task, no NUMA binding"
    elif settings.tasks_per_numa_node is not None and not profile.numa_binding:
        yield "No NUMA binding"
    elif profile.cpus_per_task:
        yield f"{profile.cpus_per_task} CPUs a task"
    if profile.memory != "0":
        yield f"{profile.memory} memory, not all of it"
    if profile.vboost:
        yield "vboost first, by sudo"
