"""`install_steps`: what has to be on a cluster before a plan can run there by the direct procedure. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.preflight.architecture import architecture_of
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.params import sbatch_options
from llmb_tui.launch.entry import entry_path, entry_script
from llmb_tui.launch.secret import ENROOT_CREDENTIALS, REGISTRY
from llmb_tui.launch.spec_of import container, image_path
from llmb_tui.plan.plan import Plan

_IMAGE_SIZE = "5–60 GB"  # the recipes' own documentation
_IMPORT_TIME = "01:00:00"  # as in the recipes' setup.sh


@dataclass(frozen=True, slots=True)
class InJob:
    """How a step runs where the login node lacks a program."""

    command: str
    """The program that has to be there."""
    options: tuple[str, ...]
    """Of sbatch, for a job that has it."""


@dataclass(frozen=True, slots=True)
class InstallStep:
    """One idempotent step. It is done when every one of `results` is there, whoever made it."""

    id: str
    """Also the name of its folder on the cluster."""
    title: str
    results: tuple[str, ...]
    """Absolute paths of directories, or of files that are not empty."""
    work: str
    """Body of a POSIX sh function that makes them; it sees `$owner`, which no other attempt has."""
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


def install_steps(recipe: Recipe, plan: Plan, profile: ClusterProfile) -> tuple[InstallStep, ...]:
    """The steps in their order. Raises Trouble when no container image is known for the plan."""
    install = profile.install_dir.rstrip("/")
    image = _image(install, plan, _import_job(profile, plan.gpus_per_node))
    entry = (_entry(install),) if recipe.launch.kind == "nemo2" else ()
    return (_directories(recipe, install), image, *entry)


def _directories(recipe: Recipe, install: str) -> InstallStep:
    workload = f"pretrain_{recipe.workload}"
    paths = [f"{install}/images", f"{install}/venvs", f"{install}/workloads/{workload}/experiments"]
    paths += [f"{install}/.llmb-tui/code"]
    return InstallStep(f"directories-{workload}", "Directories", tuple(paths), 'mkdir -p "$@"', tuple(paths))


# $1 is the image, $2 the reference, $3 the file with the registry's key below the home directory, $4 the architecture
# of the nodes, which the login node need not have. The layers are kept next to the step's log until the image is whole,
# so that an attempt that follows a broken one does not fetch them again; one that is not whole has a dot in its name.
_IMPORT = """
image=$1 reference=$2 credentials=$HOME/$3
[ ! -s "$image" ] || { echo "The image is there."; exit 0; }
partial="$(dirname "$image")/.$(basename "$image").$owner"
trap 'rm -f "$partial"' EXIT
rm -f "$(dirname "$image")/.$(basename "$image")".*
ENROOT_CACHE_PATH=$dir/cache
export ENROOT_CACHE_PATH
(umask 077; mkdir -p "$ENROOT_CACHE_PATH")
rm -f "$ENROOT_CACHE_PATH"/*.*
if [ -s "$credentials" ]; then
    ENROOT_CONFIG_PATH=$(dirname "$credentials")
    export ENROOT_CONFIG_PATH
fi
enroot import --output "$partial" --arch "$4" "$reference"
[ -s "$partial" ] || { echo "enroot made no image."; exit 1; }
mv "$partial" "$image"
rm -rf "$ENROOT_CACHE_PATH"
"""


def _image(install: str, plan: Plan, in_job: InJob) -> InstallStep:
    reference = container(plan)
    path = image_path(install, reference)
    folder, _, name = path.rpartition("/")
    return InstallStep(
        id=f"image-{name.removesuffix('.sqsh')}",
        title=f"Container image {reference}",
        results=(path,),
        work=_IMPORT,
        args=(path, f"docker://{REGISTRY}#{reference}", ENROOT_CREDENTIALS, architecture_of(plan.selection.gpu)),
        size=_IMAGE_SIZE,
        growing=f"{folder}/.{name}.",
        image=reference,
        in_job=in_job,
    )


def _import_job(profile: ClusterProfile, gpus_per_node: int) -> InJob:
    """On the CPU partition where there is one; what the profile asks for besides belongs to the other."""
    common = (f"--account={profile.account}", "--nodes=1", "--ntasks=1", "--exclusive", f"--time={_IMPORT_TIME}")
    if profile.cpu_partition:
        return InJob("enroot", (*common, f"--partition={profile.cpu_partition}"))
    requests = {"gres": f"--gres=gpu:{gpus_per_node}", "gpus-per-node": f"--gpus-per-node={gpus_per_node}"}
    gpus = (requests[profile.gpu_request],) if profile.gpu_request in requests else ()
    further = tuple(
        f"--{name}" if value is None else f"--{name}={value}"
        for name, value in sbatch_options(profile)
        if name != "segment"  # one node is no block of nodes
    )
    return InJob("enroot", (*common, f"--partition={profile.partition}", *gpus, *further))


def _entry(install: str) -> InstallStep:
    path = entry_path(install)
    return InstallStep(
        id=path.rpartition("/")[2].removesuffix(".py"),
        title="Entry script",
        results=(path,),
        work='printf %s "$2" >"$1.$owner"\nmv "$1.$owner" "$1"',
        args=(path, entry_script()),
    )
