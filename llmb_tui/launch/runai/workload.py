"""`runai_spec`, `creation_request`: a plan's workload on a Run:ai cluster. Pure."""

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
from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import count
from llmb_tui.launch.files import config_files
from llmb_tui.launch.naming import container, experiment_name
from llmb_tui.launch.settings import ResolvedSettings, refuse_errors, resolve_settings, vboost_difference
from llmb_tui.launch.spec import RunaiSpec
from llmb_tui.plan.plan import Problem
from llmb_tui.preflight.secret import REGISTRY
from llmb_tui.request import RunRequest

RUN_FOLDER = "/nemo_run"
FILES = "LLMB_FILES"
"""Variable with the packed files. Anyone who may see the workload can read it, so it never contains a secret."""
MOST = 128 << 10
"""Longest string in a Linux environment: MAX_ARG_STRLEN in linux/binfmts.h."""
NEMO_1 = "has a NeMo 1 container, but the entry script of a workload supports only NeMo 2."
ANOTHER = "Choose a recipe with a NeMo 2 container, or a cluster with Slurm."
_LONGEST_NAME = 51
"""A pod's name, which is also a host name, has at most 63 characters in Kubernetes, with `-worker-1023` at its end."""
_PYTORCH = "PyTorch"
_KILL_AFTER_S = 60
# The binding is tried first, because a refused binding ends the job: a pod may not be allowed to bind its memory.
_BIND = """\
bind="numactl --cpunodebind=$((LOCAL_RANK/{0})) --membind=$((LOCAL_RANK/{0}))"
if $bind true; then exec $bind "$@"; fi
echo "rank $RANK is not bound to a NUMA node" >&2
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class Placement:
    """Target of a workload, as far as only the cluster knows it."""

    project_id: str
    cluster_id: str
    hub_secret: tuple[str, str] | None = None
    """(Kubernetes secret, key in it) with the Hugging Face token; None if no token is needed."""


def problems(request: RunRequest) -> Iterator[Problem]:
    """Reasons against running a request as a workload."""
    recipe, options, profile = request.recipe, request.plan.options, profile_of(request)
    if not recipe.launch.by_entry_script:
        yield Problem("procedure", "error", f"{recipe.id} {NEMO_1}", ANOTHER)
    elif not any("runai" in option.choices for option in recipe.options):  # its documentation does not mention Run:ai
        reason = f"NVIDIA publishes {recipe.id} for Slurm only; here the same container and settings run as a workload."
        yield Problem("procedure", "note", reason, "")
    for name in ("profile", "nccl_trace"):
        if getattr(options, name):
            reason = f"The option {name.replace('_', ' ')} needs Slurm's variables for file names; a pod lacks them."
            yield Problem(name, "error", reason, "Switch it off, or choose a cluster with Slurm.")
    if options.save_checkpoint and not profile.work_dir:
        reason = "The checkpoint would be deleted with the pods: the profile has no work directory on a volume."
        yield Problem("save_checkpoint", "error", reason, "Add a mount and a work directory to the profile.")
    if options.load_checkpoint and not any(
        _below(options.load_checkpoint, split_claim(mount)[1]) for mount in profile.mounts
    ):
        reason = f"{options.load_checkpoint} is not on a volume that the cluster's profile mounts."
        yield Problem("load_checkpoint", "error", reason, "Mount its volume, or choose another checkpoint.")
    if options.hub_tokenizer and not profile.hub_credential:
        reason = "The model hub provides the tokenizer, but the profile names no credential with a token for the hub."
        fix = "Create a generic secret in Run:ai with your Hugging Face token, and name it in the profile."
        yield Problem("hub_tokenizer", "error", reason, fix)


def profile_of(request: RunRequest) -> RunaiProfile:
    """Profile of the request. Raises LlmbError (exit code 1) for a cluster of another kind."""
    if isinstance(request.profile, RunaiProfile):
        return request.profile
    raise LlmbError(
        f"{request.profile.name} is not a Run:ai cluster.",
        "This procedure creates workloads through Run:ai's API.",
        "Choose another cluster, or a procedure for this one.",
        exit_code=1,
    )


def runai_spec(request: RunRequest, run_id: str) -> RunaiSpec:
    """Make the complete spec of the workload. Raises LlmbError (exit code 1) if Run:ai cannot launch the plan."""
    plan, profile = request.plan, profile_of(request)
    refuse_errors("This plan cannot be launched.", (*plan.problems, *problems(request)))
    settings, experiment = resolve_settings(request), experiment_name(request)
    recipe_env, profile_env = settings.env, dict(profile.env)
    overridden = tuple((n, v, profile_env[n]) for n, v in recipe_env.items() if profile_env.get(n, v) != v)
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
        env=tuple((recipe_env | profile_env).items()),
        files=_files(request, settings),
        overridden=overridden,
        notes=tuple(_notes(settings)),
        otherwise=(
            *vboost_difference(request, vboost=False),
            *(f"{name} from the cluster's profile" for name, _, _ in overridden),
        ),
    )


def creation_request(spec: RunaiSpec, placement: Placement) -> dict[str, Any]:
    """Body of the creation request: `DistributedCreationRequest` or `TrainingCreationRequest` of the API."""
    # Kubernetes expands $(NAME) in a value, and replaces $$ by $.
    variables: list[dict[str, Any]] = [{"name": name, "value": value.replace("$", "$$")} for name, value in spec.env]
    if placement.hub_secret is not None:
        name, key = placement.hub_secret
        variables.append({"name": "HF_TOKEN", "secret": {"name": name, "key": key}})
    variables.append({"name": FILES, "value": packed_files(spec.files)})
    body: dict[str, Any] = {
        "command": "bash -c",
        # Run:ai splits it like a shell, and Kubernetes expands $(NAME): the script must not contain either syntax.
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
        # The operator gives pods their rank and the master's address only if one of them is the master.
        body |= {"distributedFramework": _PYTORCH, "numWorkers": spec.nodes - 1}
    return {
        **({"masterSpecSameAsWorker": True} if spec.kind == "distributed" else {}),
        "name": spec.workload,
        "useGivenNameAsPrefix": False,
        "projectId": placement.project_id,
        "clusterId": placement.cluster_id,
        "spec": body,
    }


def start_script(spec: RunaiSpec, folder: str = RUN_FOLDER) -> str:
    """Script of each pod: unpack the files, then start one process for each GPU. Contains no single quote."""
    experiments = f"{spec.results}/nemo_experiments"
    link_results = f"mkdir -p {experiments}; ln -sfn {experiments} nemo_experiments; " if spec.results else ""
    script = (
        f'set -eo pipefail; mkdir -p {folder}; printf %s "${FILES}" | base64 -d | tar -xzf - -C {folder}; '
        f"cd {folder}/code; {link_results}"
        f"exec timeout --kill-after={_KILL_AFTER_S} {_seconds(spec.time_limit)} "
        f"torchrun --nnodes {spec.nodes} --nproc-per-node {spec.gpus_per_node} "
        '--node-rank "${RANK:-0}" --master-addr "${MASTER_ADDR:-localhost}" --master-port "${MASTER_PORT:-29500}" '
        f"--no-python bash {folder}/code/start.sh python {folder}/code/pretrain.py {folder}/configs/launch.json"
    )
    if "'" in script or "$(" in script:
        raise ValueError("the start script has characters that Run:ai or Kubernetes would change")
    return script


def packed_files(files: Iterable[tuple[str, str]]) -> str:
    """Pack (path, text) pairs as base64 of a compressed tar; the same files always make the same text.

    Raises LlmbError (exit code 1) if the result is too long.
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
        raise LlmbError(
            "The files of this run are too large for its workload.",
            f"They are {count(len(packed))} bytes after packing, and a variable may have {count(MOST)}.",
            "Remove settings from the preset that the recipe already has.",
            exit_code=1,
        )
    return packed


def workload_name(experiment: str, run_id: str) -> str:
    """Name of at most 51 lower-case letters, digits and dashes, which ends with the run id and is therefore unique."""
    words = re.sub(r"[^a-z0-9]+", "-", experiment.lower()).strip("-")
    room = _LONGEST_NAME - 1 - len(run_id)
    if len(words) > room:  # never cut a number, such as gpus256 to gpus25
        words = words[: room + 1].rpartition("-")[0] or words[:room]
    return f"{words}-{run_id}"


def _files(request: RunRequest, settings: ResolvedSettings) -> tuple[tuple[str, str], ...]:
    tasks = settings.tasks_per_numa_node
    start = _BIND.format(tasks) if tasks is not None else 'exec "$@"\n'
    return (
        ("code/pretrain.py", remote_text("pretrain.py")),
        ("code/start.sh", start),
        *config_files(request, settings),
    )


def _notes(settings: ResolvedSettings) -> Iterator[str]:
    """Deviations of the job from the recipe."""
    yield from settings.differs
    if settings.segment is not None:
        yield "No block of NVLink-connected nodes is asked for"


def _below(path: str, folder: str) -> bool:
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


def _seconds(time_limit: str) -> int:
    seconds = parse_time(time_limit)
    if seconds is None:
        raise LlmbError(f"The time limit {time_limit} cannot be used.", exit_code=1)
    return int(seconds)
