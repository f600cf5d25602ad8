"""Checks of what starts containers: Pyxis and PMIx in Slurm, Enroot on the login node. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llmb_tui.cluster.preflight.examination import ADMINISTRATORS, Answers, failed, ok, said, warning
from llmb_tui.cluster.preflight.needs import Needs
from llmb_tui.cluster.preflight.report import Check
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.quoting import shell_join

SMALLEST_IMAGE_GB, BIGGEST_IMAGE_GB = 5, 60
"""The recipes' documentation: container images take 5 to 60 GB each."""
PYXIS_OPTIONS = (
    *("--container-image", "--container-mounts", "--container-workdir", "--container-env", "--container-writable"),
    "--no-container-mount-home",
)
"""What the batch scripts ask of Pyxis."""

_PLUGSTACK = """
conf=$(scontrol show config | sed -n 's/^PlugStackConfig *= *//p')
case $conf in /*) ;; *) conf=${SLURM_CONF:-/etc/slurm/slurm.conf}; conf=${conf%/*}/plugstack.conf ;; esac
grep -hs '^[^#]*pyxis' "$conf" "$conf".d/*
"""
# Settings as enroot itself reads them: the environment, else its configuration, where a value may name variables.
ENROOT = """
enroot version || exit 127
conf=${ENROOT_SYSCONF_PATH:-/etc/enroot}/enroot.conf
for name in ENROOT_TEMP_PATH ENROOT_CACHE_PATH ENROOT_DATA_PATH ENROOT_RUNTIME_PATH ENROOT_ROOTFS_WRITABLE; do
    eval "value=\\${$name-}"
    if [ -z "$value" ]; then
        value=$(cat "$conf" "$conf".d/*.conf 2>/dev/null | sed -n "s/^[[:blank:]]*$name[[:blank:]]*//p" | tail -n 1)
        value=$(eval "printf %s \\"$value\\"" 2>/dev/null)
    fi
    [ -z "$value" ] || printf '%s %s\\n' "$name" "$value"
    [ "$name" != ENROOT_TEMP_PATH ] || temp=${value:-${TMPDIR:-/tmp}}
done
printf 'free %s %s\\n' "$(limited 5 df -Pk "$temp" | awk 'END { print $(NF - 2) }')" "$temp"
"""
"""For `run_batch`, in parentheses: it leaves its shell where there is no enroot."""


def slurm_plugin_commands(profile: ClusterProfile, if_it_answers: str) -> dict[str, str]:
    """For `plugin_checks`. On some sites clients have their configuration from the controller, and hang with it."""
    trial = ["srun", "--mpi=pmix", "--test-only", f"--account={profile.account}", f"--partition={profile.partition}"]
    return {
        "srun": f"{if_it_answers}limited 8 srun --help",
        "plugstack": f"{if_it_answers}{{ {_PLUGSTACK} }}",
        "mpi": f"{if_it_answers}limited 8 srun --mpi=list",
        # The list names plugins that cannot be loaded; a start that is only tried loads them.
        "pmix": if_it_answers + "limited 8 " + shell_join([*trial, "--nodes=1", "--time=1", "true"]),
    }


def plugin_checks(answers: Answers) -> Iterator[Check]:
    """Pyxis and PMIx, as srun knows them on the login node."""
    yield _pyxis(answers)
    yield _pmix(answers)


def _pyxis(answers: Answers) -> Check:
    srun = answers["srun"]
    missing = [option for option in PYXIS_OPTIONS if option not in srun.text] if srun.exit_code == 0 else PYXIS_OPTIONS
    if "--container-image" in missing:
        mend = f"The recipes run in containers, which the Slurm plugin Pyxis starts. {ADMINISTRATORS}"
        return failed("pyxis", "Pyxis", "srun does not know --container-image", "srun --container-image", mend)
    if missing:
        mend = f"This Pyxis is too old: the batch scripts use these options. {ADMINISTRATORS}"
        return failed("pyxis", "Pyxis", f"srun does not know {', '.join(missing)}", "srun --container-…", mend)
    settings = re.findall(r"(?<!\S)\w+=\S+", answers["plugstack"].text)
    found = "srun knows --container-image" + (f"; {', '.join(settings)}" if settings else "")
    return ok("pyxis", "Pyxis", found, "srun --container-image")


def _pmix(answers: Answers) -> Check:
    needed = "srun --mpi=pmix"
    listed = re.findall(r"\b(?:pmix(?:_v\d+)?|pmi2|none|cray_shasta|openmpi)\b", answers["mpi"].text)
    versions = dict.fromkeys(name for name in listed if name.startswith("pmix"))
    if not versions:
        found = f"only {', '.join(dict.fromkeys(listed))}" if listed else said(answers["mpi"])
        mend = f"The recipes start their ranks with PMIx, and this Slurm has no plugin for it. {ADMINISTRATORS}"
        return failed("pmix", "PMIx", found, needed, mend)
    fault = re.search(
        r"[^\n]*(?:can ?not load PMIx|Invalid MPI type|Unable to load any plugin)[^\n]*", answers["pmix"].text
    )
    if fault is not None:
        mend = f"Slurm's PMIx plugin does not find its library here, such as libpmix2. {ADMINISTRATORS}"
        return failed("pmix", "PMIx", fault[0].strip(), needed, mend)
    return ok("pmix", "PMIx", ", ".join(versions), needed)


def enroot_checks(answers: Answers, profile: ClusterProfile, needs: Needs, *, image_is_there: bool) -> Iterator[Check]:
    """Enroot with its settings, and the space where it unpacks an image."""
    enroot, needed = answers["enroot"], "enroot on the login node"
    if enroot.exit_code != 0:
        where = f"in partition {profile.cpu_partition or profile.partition}"
        mend = f"The container image will be imported in a job {where}, which waits in the queue like any other."
        if image_is_there:
            yield ok("enroot", "Enroot", "not on the login node, and the image is there", needed)
        else:
            yield warning("enroot", "Enroot", "not on the login node", needed, mend)
        return
    version, *rest = enroot.text.strip().split("\n")
    settings = [line.removeprefix("ENROOT_") for line in rest if line.startswith("ENROOT_")]
    yield ok("enroot", "Enroot", "; ".join([f"enroot {version}", *settings]), needed)
    free = re.search(r"(?m)^free (\d+) (.*)$", enroot.text)
    if free is not None and needs.known and not image_is_there:
        yield _unpacking(int(free[1]) * 1024 / 1e9, free[2])


def _unpacking(free_gb: float, directory: str) -> Check:
    name, found = ("enroot-space", "Space to unpack"), f"{free_gb:,.0f} GB in {directory}"
    needed = f"{SMALLEST_IMAGE_GB} to {BIGGEST_IMAGE_GB} GB for the layers of an image"
    mend = "Set ENROOT_TEMP_PATH in ~/.bashrc to a directory with more room, on a disk of the login node itself."
    if free_gb < SMALLEST_IMAGE_GB:
        return failed(*name, found, needed, mend)
    if free_gb < BIGGEST_IMAGE_GB:
        return warning(*name, found, needed, f"It may not be enough: watch the import. {mend}")
    return ok(*name, found, needed)
