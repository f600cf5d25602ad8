"""What a submission asks for: the resource options of `sbatch` and `srun`, checked as the controller checks them."""

from __future__ import annotations

import os
import re
import shlex
import time
from dataclasses import dataclass

from llmb_tui.demo import faults
from llmb_tui.demo.slurm import facts, times
from llmb_tui.demo.slurm.job import FAILED, Job
from llmb_tui.demo.slurm.options import Parsed, Refusal
from llmb_tui.demo.slurm.store import Store

RESOURCES = (
    "account=/A chdir=/D comment= cpus-per-gpu= cpus-per-task=/c dependency=/d error=/e exclusive? export= "
    "gpus-per-node= gpus-per-task= gres= hint= job-name=/J mem= nice? nodes=/N ntasks=/n ntasks-per-node= open-mode= "
    "output=/o partition=/p qos=/q signal= threads-per-core= time=/t"
)
"""Options that `sbatch` and `srun` share, as words for `options.Parser`."""

QUEUE_WAIT_S = 45.0
"""How long a job waits for its turn even on an empty cluster, simulated seconds."""

_REFUSED = {
    "account": "Invalid account or account/partition combination specified",
    "partition": "Invalid partition name specified",
    "nodes": "Node count specification invalid",
    "shape": "Requested node configuration is not available",
    "time": "Requested time limit is invalid (missing or exceeds some limit)",
    "qos": "Invalid qos specification",
    "dependency": "Job dependency problem",
}
_DEPENDENCY = re.compile(r"singleton|(after|afterok|afterany|afternotok|aftercorr|afterburstbuffer|expand):\d+(:\d+)*")


class Refused(Exception):
    """The controller refuses the job. `recorded`: accounting keeps a FAILED line of it, as Slurm's does."""

    def __init__(self, what: str, *, detail: str = "") -> None:
        super().__init__(what)
        self.text = _REFUSED[what]
        self.recorded = what == "shape"
        self._detail = detail

    def words(self, program: str, failed: str) -> str:
        """What the program says, in one line or two; `failed` is what it could not do."""
        lines = [self._detail] if self._detail else []
        return "\n".join(f"{program}: error: {line}" for line in [*lines, f"{failed}: {self.text}"])


@dataclass(frozen=True)
class Shape:
    """Size of a job."""

    nodes: int
    tasks: int
    tasks_per_node: int
    gpus_per_node: int


def job_of(store: Store, program: str, asked: Parsed, *, name: str, command: str) -> Job:
    """The job that these options ask for, not yet queued.

    Raises Refusal for an option that the command itself finds wrong, and Refused for what the controller
    refuses; then nothing is queued.
    """
    if asked.get("open-mode", "a")[:1] not in ("a", "t"):
        raise Refusal(f"{program}: error: Invalid --open-mode specification", 255)
    partition = facts.partition(asked.get("partition") or next(p.name for p in facts.PARTITIONS if p.default))
    minutes = _minutes(program, asked)
    shape = _shape(program, asked)
    if asked.get("account", facts.ACCOUNT) != facts.ACCOUNT:
        raise Refused("account")
    if partition is None:
        raise Refused("partition", detail=f"invalid partition specified: {asked.get('partition')}")
    if asked.get("qos", facts.QOS) != facts.QOS:
        raise Refused("qos")
    if not all(_DEPENDENCY.fullmatch(word) for word in re.split("[,?]", asked.get("dependency", "singleton"))):
        raise Refused("dependency")
    if not 1 <= shape.nodes <= (partition.max_nodes or len(facts.NODES)):
        raise Refused("nodes")
    if minutes is not None and minutes > partition.max_minutes:
        raise Refused("time")
    created = time.time()
    wait = faults.number(store.path, "queue-wait")
    return Job(
        id=0,
        name=asked.get("job-name", name),
        user=str(store.settings["user"]),
        uid=os.getuid(),
        account=facts.ACCOUNT,
        partition=partition.name,
        nodes=shape.nodes,
        tasks=shape.tasks,
        tasks_per_node=shape.tasks_per_node,
        gpus_per_node=shape.gpus_per_node,
        minutes=minutes or partition.default_minutes,
        command=command,
        work_dir=os.path.abspath(asked.get("chdir", os.getcwd())),
        output=asked.get("output", "slurm-%j.out"),
        error=asked.get("error"),
        append=asked.get("open-mode", "t").startswith("a"),
        requeue="no-requeue" not in asked,
        submit_line="",
        speed=store.speed,
        created=created,
        eligible=created + (QUEUE_WAIT_S if wait is None else wait),
        reason="Priority",
    )


def check_shape(job: Job) -> None:
    """Raises Refused where no node of the site is as the job asks for it."""
    if job.gpus_per_node > facts.GPUS_PER_NODE:
        raise Refused("shape")
    if job.tasks_per_node > facts.CPUS_PER_NODE:
        raise Refused("shape", detail="CPU count per node can not be satisfied")


def record_refusal(store: Store, job: Job) -> None:
    """Leave the line in accounting that Slurm leaves of a job it refused for its shape."""
    job.state, job.exit_code, job.reason = FAILED, 1, "None"
    job.started = job.ended = job.created  # never `closed`: the controller does not remember it
    os.close(store.add(job)[1])


def directives(script: str) -> list[str]:
    """The words of a batch script's #SBATCH lines; they end at the first command."""
    words: list[str] = []
    for line in script.splitlines():
        if line.startswith("#SBATCH") and line[7:8].isspace():
            words += shlex.split(line[7:], comments=True)
        elif line.strip() and not line.startswith("#"):
            break
    return words


def _minutes(program: str, asked: Parsed) -> int | None:
    if "time" not in asked:
        return None
    try:
        return times.parse_minutes(asked.get("time"))
    except ValueError:
        raise Refusal(f"{program}: error: Invalid --time specification", 255) from None


def _shape(program: str, asked: Parsed) -> Shape:
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", asked.get("nodes", "1"))
    if not found:
        raise Refusal(f'{program}: error: "{asked.get("nodes")}" is not a valid node count', 255)
    nodes = int(found[2] or found[1])
    per_node = _count(program, asked, "ntasks-per-node")
    tasks = _count(program, asked, "ntasks") or nodes * (per_node or 1)
    if not re.fullmatch(r"\d+[KMGT]?", asked.get("mem", "0"), re.IGNORECASE):
        raise Refusal(f"{program}: error: Invalid --mem specification", 255)
    if asked.get("exclusive") not in ("", "user", "mcs", "topo"):
        raise Refusal(f"{program}: error: Invalid --exclusive specification", 255)
    return Shape(nodes, tasks, per_node or -(-tasks // max(nodes, 1)), _gpus(program, asked))


def _count(program: str, asked: Parsed, name: str) -> int:
    if name not in asked:
        return 0
    if not asked.get(name).isdigit() or asked.get(name) == "0":
        raise Refusal(f'{program}: error: Invalid numeric value "{asked.get(name)}" for --{name}.')
    return int(asked.get(name))


def _gpus(program: str, asked: Parsed) -> int:
    """GPUs on each node from --gpus-per-node or --gres; a type that the site lacks counts as too many."""
    wanted = asked.get("gpus-per-node")
    if "gres" in asked and asked.get("gres") != "none":
        name, _, wanted = asked.get("gres").partition(":")
        if name != "gpu":
            raise Refusal(f"{program}: error: Invalid generic resource (gres) specification")
        wanted = wanted or "1"
    kind, colon, count = wanted.rpartition(":")
    if not wanted:
        return 0
    unknown = not count.isdigit() or (colon and kind != facts.GPU_TYPE)
    return facts.GPUS_PER_NODE + 1 if unknown else int(count)
