"""`InstallStep`: one thing that a run needs on a cluster, and how to install it; `image_step`, shared by procedures."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.slurm.params import arguments_of, gpu_options, partition_options, sbatch_options
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.launch.naming import container, image_path
from llmb_tui.launch.step_state import StepState
from llmb_tui.preflight.needs import architecture_of
from llmb_tui.preflight.secret import ENROOT_CREDENTIALS, REGISTRY
from llmb_tui.request import RunRequest

OFFLINE = "offline"
"""Folder in the install directory for the files that the user copies to a cluster without internet access."""

_IMAGE_SIZE = "5–60 GB"  # the recipes' own documentation
_IMPORT_TIME = "01:00:00"  # as in the recipes' setup.sh


@dataclass(frozen=True, slots=True)
class StepJob:
    """Settings of a step that runs as a job."""

    command: str
    """Program that the step needs, with a verb `version`. The step runs as a job if this verb fails on the login node,
    or always if this is empty."""
    options: tuple[str, ...]
    """Options for sbatch."""


@dataclass(frozen=True, slots=True)
class InstallStep:
    """One idempotent step. It is done when every one of `results` exists, no matter who created it."""

    id: str
    """Identifier, also the name of the step's folder on the cluster."""
    title: str
    results: tuple[str, ...]
    """Absolute paths of directories, or of files that are not empty; a path that ends in `.sqsh` must be a complete
    image. Paths of files that each user needs begin with `~/`."""
    work: str
    """Body of a POSIX sh function that makes the results; it sees `$dir`, the step's folder, and `$owner`, which is
    unique to each attempt."""
    args: tuple[str, ...]
    """Arguments of the function."""
    size: str = ""
    """Expected disk use, if it matters."""
    growing: str = ""
    """Common prefix of the files that grow while the step runs."""
    image: str = ""
    """Container image that the step downloads, such as `nvidia/nemo:25.02.01`: the registry knows its size."""
    in_job: StepJob | None = None
    """Settings of its job; None: it always runs on the login node."""

    @property
    def missing(self) -> StepState:
        """State of the step before it has started."""
        return StepState(self.id, self.title, "missing", size=self.size)


InstallPlan = tuple[InstallStep, ...]
"""Steps of an install, in the order in which they run."""


class InstallRunner(Protocol):
    """Checks and installs everything that a run needs on its cluster."""

    def probe(self) -> tuple[StepState, ...]:
        """Current state of every step. Raises LlmbError if the cluster cannot be queried."""

    def run(
        self,
        on_change: Callable[[tuple[StepState, ...]], None],
        stop: threading.Event,
        on_silence: Callable[[LlmbError], None] = ...,
    ) -> tuple[StepState, ...]:
        """Run the missing steps; return when all are done, one has failed, or `stop` is set.

        `on_change` is called from this thread, `on_silence` each time the cluster does not answer. Raises LlmbError.
        """


def image_step(request: RunRequest) -> InstallStep:
    """Step that imports the image into the install directory. Raises LlmbError if the plan's image is unknown."""
    plan, profile = request.plan, request.slurm
    install = profile.install_dir.rstrip("/")
    reference = container(plan)
    path = image_path(install, reference)
    folder, _, name = path.rpartition("/")
    architecture = architecture_of(plan.selection.gpu)
    return InstallStep(
        id=f"image-{name.removesuffix('.sqsh')}",
        title=f"Container image {reference}",
        results=(path,),
        work=remote_text("there.sh", "import_image.sh") + 'import_image "$@"',
        args=(path, f"docker://{REGISTRY}#{reference}", ENROOT_CREDENTIALS, architecture, brought_image(request)),
        size=_IMAGE_SIZE,
        growing=f"{folder}/.{name}.",
        image=reference,
        in_job=_import_job(profile, plan.gpus_per_node),
    )


def brought_image(request: RunRequest) -> str:
    """Path at which the step looks for an image that the user copied there. Raises LlmbError like `image_step`."""
    return f"{offline_folder(request)}/{image_path('', container(request.plan)).rpartition('/')[2]}"


def offline_folder(request: RunRequest) -> str:
    """Folder for the files that the user copies to a cluster without internet access."""
    return f"{request.slurm.install_dir.rstrip('/')}/{OFFLINE}"


def _import_job(profile: SlurmProfile, gpus_per_node: int) -> StepJob:
    """Job on the CPU partition if there is one; the profile's further options belong to the GPU partition."""
    common = (f"--account={profile.account}", "--nodes=1", "--ntasks=1", "--exclusive", f"--time={_IMPORT_TIME}")
    if profile.cpu_partition:
        return StepJob("enroot", (*common, f"--partition={profile.cpu_partition}", "--mem=0"))
    # A job on one node has no segment.
    further = [option for option in sbatch_options(profile) if option[0] != "segment"]
    memory = ("mem", profile.memory)
    options = (*partition_options(profile.partition), memory, *gpu_options(profile, gpus_per_node), *further)
    return StepJob("enroot", (*common, *arguments_of(options)))
