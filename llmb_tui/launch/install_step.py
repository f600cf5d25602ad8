"""`InstallStep`: one thing that has to be on a cluster, and how it gets there; `image_step`, which procedures share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.slurm.params import arguments_of, gpu_options, sbatch_options
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import Trouble
from llmb_tui.launch.naming import container, image_path
from llmb_tui.launch.step_state import StepState
from llmb_tui.preflight.needs import architecture_of
from llmb_tui.preflight.secret import ENROOT_CREDENTIALS, REGISTRY
from llmb_tui.request import RunRequest

OFFLINE = "offline"
"""Below the install directory: what a person brings to a cluster without a way to the internet."""

_IMAGE_SIZE = "5–60 GB"  # the recipes' own documentation
_IMPORT_TIME = "01:00:00"  # as in the recipes' setup.sh


@dataclass(frozen=True, slots=True)
class InJob:
    """How a step runs as a job."""

    command: str
    """It does so where the node that it is started on lacks this program; empty: everywhere."""
    options: tuple[str, ...]
    """Of sbatch."""


@dataclass(frozen=True, slots=True)
class InstallStep:
    """One idempotent step. It is done when every one of `results` is there, whoever made it."""

    id: str
    """Also the name of its folder on the cluster."""
    title: str
    results: tuple[str, ...]
    """Absolute paths of directories, or of files that are not empty; one that ends in `.sqsh` is a whole image.
    What each person needs for themselves begins with `~/`."""
    work: str
    """Body of a POSIX sh function that makes them; it sees `$dir`, the step's folder, and `$owner`, which no other
    attempt has."""
    args: tuple[str, ...]
    """Arguments of that function."""
    size: str = ""
    """What it will take on the disk, where that matters."""
    growing: str = ""
    """Beginning of the names of the files that grow while it works."""
    image: str = ""
    """The container image that it fetches, such as `nvidia/nemo:25.02.01`: the registry knows how big it is."""
    in_job: InJob | None = None
    """None: it always runs where it is started."""

    @property
    def missing(self) -> StepState:
        """State of the step before anything of it is done."""
        return StepState(self.id, self.title, "missing", size=self.size)


InstallPlan = tuple[InstallStep, ...]
"""The steps of an install, in the order in which they are run."""


class Installs(Protocol):
    """Looks at what a run needs on its cluster, and sees to it."""

    def probe(self) -> tuple[StepState, ...]:
        """Every step as it is now. Raises Trouble when the cluster cannot be asked."""

    def run(
        self,
        on_change: Callable[[tuple[StepState, ...]], None],
        stop: threading.Event,
        on_silence: Callable[[Trouble], None] = ...,
    ) -> tuple[StepState, ...]:
        """See to what is missing; answer when all is done, one step has failed, or `stop` is set.

        `on_change` is called from this thread, `on_silence` each time that the cluster does not answer. Raises Trouble.
        """


def image_step(request: RunRequest) -> InstallStep:
    """Imports the image into the install directory. Raises Trouble when no image is known for the plan."""
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
    """Where the step looks for an image that a person brought. Raises Trouble when no image is known for the plan."""
    return f"{brought_folder(request)}/{image_path('', container(request.plan)).rpartition('/')[2]}"


def brought_folder(request: RunRequest) -> str:
    """What a person brings to a cluster without a way to the internet."""
    return f"{request.slurm.install_dir.rstrip('/')}/{OFFLINE}"


def _import_job(profile: SlurmProfile, gpus_per_node: int) -> InJob:
    """On the CPU partition where there is one; what the profile asks for besides belongs to the other."""
    common = (f"--account={profile.account}", "--nodes=1", "--ntasks=1", "--exclusive", f"--time={_IMPORT_TIME}")
    if profile.cpu_partition:
        return InJob("enroot", (*common, f"--partition={profile.cpu_partition}", "--mem=0"))
    # One node is no block of nodes.
    further = [option for option in sbatch_options(profile) if option[0] != "segment"]
    options = arguments_of([*gpu_options(profile, gpus_per_node), *further])
    return InJob("enroot", (*common, f"--partition={profile.partition}", f"--mem={profile.memory}", *options))
