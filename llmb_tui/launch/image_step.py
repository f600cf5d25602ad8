"""`image_step`: the container image of a plan, imported once for both procedures. Pure."""

from __future__ import annotations

from llmb_tui.cluster.preflight.architecture import architecture_of
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.params import sbatch_options
from llmb_tui.launch.install_step import InJob, InstallStep
from llmb_tui.launch.secret import ENROOT_CREDENTIALS, REGISTRY
from llmb_tui.launch.spec_of import container, image_path
from llmb_tui.plan.plan import Plan

OFFLINE = "offline"
"""Below the install directory: what a person brings to a cluster without a way to the internet."""

_IMAGE_SIZE = "5–60 GB"  # the recipes' own documentation
_IMPORT_TIME = "01:00:00"  # as in the recipes' setup.sh

# $1 is the image, $2 the reference, $3 the file with the registry's key below the home directory, $4 the architecture
# of the nodes, which the login node need not have, $5 an image that was brought. The layers are kept next to the step's
# log until the image is whole, so that an attempt that follows a broken one does not fetch them again; one that is not
# whole has a dot in its name.
_IMPORT = """
image=$1 reference=$2 credentials=$HOME/$3
[ ! -s "$image" ] || { echo "The image is there."; exit 0; }
partial="$(dirname "$image")/.$(basename "$image").$owner"
trap 'rm -f "$partial"' EXIT
rm -f "$(dirname "$image")/.$(basename "$image")".*
if [ -s "$5" ]; then
    echo "The image comes from $5."
    ln "$5" "$partial" 2>/dev/null || cp "$5" "$partial"
    mv "$partial" "$image"
    exit 0
fi
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


def image_step(plan: Plan, profile: ClusterProfile) -> InstallStep:
    """Imports the image into the install directory. Raises Trouble when no image is known for the plan."""
    install = profile.install_dir.rstrip("/")
    reference = container(plan)
    path = image_path(install, reference)
    folder, _, name = path.rpartition("/")
    brought = f"{install}/{OFFLINE}/{name}"
    architecture = architecture_of(plan.selection.gpu)
    return InstallStep(
        id=f"image-{name.removesuffix('.sqsh')}",
        title=f"Container image {reference}",
        results=(path,),
        work=_IMPORT,
        args=(path, f"docker://{REGISTRY}#{reference}", ENROOT_CREDENTIALS, architecture, brought),
        size=_IMAGE_SIZE,
        growing=f"{folder}/.{name}.",
        image=reference,
        in_job=_import_job(profile, plan.gpus_per_node),
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
