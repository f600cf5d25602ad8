"""`runai_spec`, `creation_request`: what a plan becomes on a Run:ai cluster: one workload. Pure."""

from __future__ import annotations

import base64
import gzip
import io
import posixpath
import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.cluster.runai.profile_check import split_claim
from llmb_tui.cluster.slurm.partition import parse_time
from llmb_tui.errors import Trouble
from llmb_tui.language.quantities import count
from llmb_tui.launch.files import config_files
from llmb_tui.launch.naming import container, experiment_name
from llmb_tui.launch.settings import Applied, applied, other_vboost, refuse_errors
from llmb_tui.launch.spec import RunaiSpec
from llmb_tui.plan.plan import Problem
from llmb_tui.preflight.secret import REGISTRY
from llmb_tui.request import RunRequest

RUN_FOLDER = "/nemo_run"
FILES = "LLMB_FILES"
"""The variable. What is in it can be seen by whoever may see the workload: no secret ever is."""
MOST = 128 << 10
"""Linux allows no longer string in an environment: MAX_ARG_STRLEN in linux/binfmts.h."""
NEMO_1 = "has a NeMo 1 container, and what starts a workload is for NeMo 2."
ANOTHER = "Choose a recipe with a NeMo 2 container, or a cluster with Slurm."
_LONGEST_NAME = 51
"""Kubernetes: a pod's name, which is a host's name too, has 63 characters; `-worker-1023` comes behind it."""
_PYTORCH = "PyTorch"
_KILL_AFTER_S = 60
# A binding that a node refuses would end the job, so it is tried first: a pod may not be allowed to bind its memory.
_BIND = """\
bind="numactl --cpunodebind=$((LOCAL_RANK/{0})) --membind=$((LOCAL_RANK/{0}))"
if $bind true; then exec $bind "$@"; fi
echo "rank $RANK is not bound to a NUMA node" >&2
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class Placed:
    """What only the cluster can say of where a workload goes."""

    project_id: str
    cluster_id: str
    hub_secret: tuple[str, str] | None = None
    """(Kubernetes secret, key in it) with the Hugging Face token; None: none is wanted."""


def problems(request: RunRequest) -> Iterator[Problem]:
    """What stands against running a request as a workload."""
    recipe, options, profile = request.recipe, request.plan.options, profile_of(request)
    if not recipe.launch.by_entry_script:
        yield Problem("procedure", "error", f"{recipe.id} {NEMO_1}", ANOTHER)
    elif not any("runai" in option.choices for option in recipe.options):  # its documents do not name Run:ai
        reason = f"NVIDIA publishes {recipe.id} for Slurm only; the same container and settings run as a workload here."
        yield Problem("procedure", "note", reason, "")
    for name in ("profile", "nccl_trace"):
        if getattr(options, name):
            reason = f"The option {name.replace('_', ' ')} names its files by Slurm's variables, which a pod has not."
            yield Problem(name, "error", reason, "Leave it out, or choose a cluster with Slurm.")
    if options.save_checkpoint and not profile.work_dir:
        reason = "A checkpoint would be lost with the pods: the cluster's profile has no work directory on a volume."
        yield Problem("save_checkpoint", "error", reason, "Give the profile a mount and a work directory.")
    if options.load_checkpoint and not any(
        _below(options.load_checkpoint, split_claim(mount)[1]) for mount in profile.mounts
    ):
        reason = f"{options.load_checkpoint} is on no volume that the cluster's profile mounts."
        yield Problem("load_checkpoint", "error", reason, "Mount the volume that holds it, or choose another.")
    if options.hub_tokenizer and not profile.hub_credential:
        reason = "The tokenizer is fetched from the model hub, and the profile names no credential with a token for it."
        fix = "Make a generic secret in Run:ai with your Hugging Face token, and name it in the profile."
        yield Problem("hub_tokenizer", "error", reason, fix)


def profile_of(request: RunRequest) -> RunaiProfile:
    """The request's profile. Raises Trouble (exit code 1) for a cluster of another kind."""
    if isinstance(request.profile, RunaiProfile):
        return request.profile
    raise Trouble(
        f"{request.profile.name} is no Run:ai cluster.",
        "This procedure creates workloads through Run:ai's API.",
        "Choose another cluster, or a procedure of this one.",
        exit_code=1,
    )


def runai_spec(request: RunRequest, run_id: str) -> RunaiSpec:
    """Everything that the workload is made of. Raises Trouble (exit code 1) when the plan cannot be launched so."""
    plan, profile = request.plan, profile_of(request)
    refuse_errors("This plan cannot be launched.", (*plan.problems, *problems(request)))
    settings, experiment = applied(request), experiment_name(request)
    recipes, theirs = settings.env, dict(profile.env)
    overridden = tuple((n, v, theirs[n]) for n, v in recipes.items() if theirs.get(n, v) != v)
    name = workload_name(experiment, run_id)
    return RunaiSpec(
        run_id=run_id,
        experiment=experiment,
        workload=name,
        kind="distributed" if plan.nodes > 1 else "trainings",
        project=profile.project,
        node_pool=profile.node_pool,
        nodes=plan.nodes,
        gpus_per_node=plan.gpus_per_node,
        time_limit=plan.time_limit,
        image=f"{REGISTRY}/{container(plan)}",
        mounts=profile.mounts,
        results=posixpath.join(profile.work_dir, name) if profile.work_dir else "",
        image_pull_secret=profile.image_pull_secret,
        hub_credential=profile.hub_credential if plan.options.hub_tokenizer else None,
        env=tuple((recipes | theirs).items()),
        files=_files(request, settings),
        overridden=overridden,
        notes=tuple(_notes(settings)),
        otherwise=(
            *other_vboost(request, vboost=False),
            *(f"{name} from the cluster's profile" for name, _, _ in overridden),
        ),
    )


def creation_request(spec: RunaiSpec, placed: Placed) -> dict[str, Any]:
    """The body of the request that creates it: `DistributedCreationRequest` or `TrainingCreationRequest` of the API."""
    # Kubernetes fills in $(NAME) in a value, and takes $$ for $.
    variables: list[dict[str, Any]] = [{"name": name, "value": value.replace("$", "$$")} for name, value in spec.env]
    if placed.hub_secret is not None:
        name, key = placed.hub_secret
        variables.append({"name": "HF_TOKEN", "secret": {"name": name, "key": key}})
    variables.append({"name": FILES, "value": packed_files(spec.files)})
    body: dict[str, Any] = {
        "command": "bash -c",
        # Run:ai takes it apart as a shell does, and Kubernetes fills in $(NAME): neither must find anything in it.
        "args": f"'{start_script(spec)}'",
        "image": spec.image,
        "compute": {"gpuDevicesRequest": spec.gpus_per_node, "largeShmRequest": True},
        "environmentVariables": variables,
        "backoffLimit": 0,
        "restartPolicy": "Never",
    }
    if spec.mounts:
        claims = map(split_claim, spec.mounts)
        body["storage"] = {"pvc": [{"name": n, "path": p, "existingPvc": True, "claimName": c} for n, p, c in claims]}
    if spec.node_pool:
        body["nodePools"] = [spec.node_pool]
    if spec.image_pull_secret:
        body["imagePullSecrets"] = [{"name": spec.image_pull_secret, "userCredential": False}]
    if spec.kind == "distributed":
        # The operator tells pods their rank and the master's address only where one of them is the master.
        body |= {"distributedFramework": _PYTORCH, "numWorkers": spec.nodes - 1}
    return {
        **({"masterSpecSameAsWorker": True} if spec.kind == "distributed" else {}),
        "name": spec.workload,
        "useGivenNameAsPrefix": False,
        "projectId": placed.project_id,
        "clusterId": placed.cluster_id,
        "spec": body,
    }


def start_script(spec: RunaiSpec, folder: str = RUN_FOLDER) -> str:
    """What each pod runs: unpack the files, then one process for each GPU. It has no single quote in it."""
    experiments = f"{spec.results}/nemo_experiments"
    kept = f"mkdir -p {experiments}; ln -sfn {experiments} nemo_experiments; " if spec.results else ""
    script = (
        f'set -eo pipefail; mkdir -p {folder}; printf %s "${FILES}" | base64 -d | tar -xzf - -C {folder}; '
        f"cd {folder}/code; {kept}"
        f"exec timeout --kill-after={_KILL_AFTER_S} {_seconds(spec.time_limit)} "
        f"torchrun --nnodes {spec.nodes} --nproc-per-node {spec.gpus_per_node} "
        '--node-rank "${RANK:-0}" --master-addr "${MASTER_ADDR:-localhost}" --master-port "${MASTER_PORT:-29500}" '
        f"--no-python bash {folder}/code/start.sh python {folder}/code/pretrain.py {folder}/configs/launch.json"
    )
    if "'" in script or "$(" in script:
        raise ValueError("the start script would be taken apart")
    return script


def packed_files(files: Iterable[tuple[str, str]]) -> str:
    """(path, text) as base64 of a compressed tar; the same files are always the same text.

    Raises Trouble (exit code 1) where they are too long.
    """
    content = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=content, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for path, text in files:
            data = text.encode()
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    packed = base64.b64encode(content.getvalue()).decode()
    if len(packed) + len(FILES) + 2 > MOST:
        raise Trouble(
            "The files of this run do not fit into its workload.",
            f"Packed they are {count(len(packed))} bytes, and a variable has at most {count(MOST)}.",
            "Leave out what the preset sets and the recipe has already.",
            exit_code=1,
        )
    return packed


def workload_name(experiment: str, run_id: str) -> str:
    """Lower-case letters, digits and dashes, at most 51; it ends with the run's id, which makes it unique."""
    words = re.sub(r"[^a-z0-9]+", "-", experiment.lower()).strip("-")
    room = _LONGEST_NAME - 1 - len(run_id)
    if len(words) > room:  # no half of a number, such as gpus25 of gpus256
        words = words[: room + 1].rpartition("-")[0] or words[:room]
    return f"{words}-{run_id}"


def _files(request: RunRequest, settings: Applied) -> tuple[tuple[str, str], ...]:
    tasks = settings.tasks_per_numa_node
    start = _BIND.format(tasks) if tasks is not None else 'exec "$@"\n'
    return (
        ("code/pretrain.py", remote_text("pretrain.py")),
        ("code/start.sh", start),
        *config_files(request, settings),
    )


def _notes(settings: Applied) -> Iterator[str]:
    """Where the job is not what the recipe makes of it."""
    yield from settings.differs
    if settings.segment is not None:
        yield "No block of NVLink-connected nodes is asked for"


def _below(path: str, folder: str) -> bool:
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


def _seconds(time_limit: str) -> int:
    seconds = parse_time(time_limit)
    if seconds is None:
        raise Trouble(f"The time limit {time_limit} cannot be used.", exit_code=1)
    return int(seconds)
