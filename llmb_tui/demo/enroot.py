"""`enroot`: `version`, and `import` of the images that the recipes name. Nothing is downloaded."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

from llmb_tui.demo.slurm.options import Parser, RefusedError, not_offered
from llmb_tui.demo.slurm.pyxis import MAGIC
from llmb_tui.demo.slurm.store import Store

VERSION = "3.5.0"
IMAGE_BYTES = 19_327_352_832
"""Apparent size of an imported image; the file is sparse and takes almost no space."""
DOWNLOAD_S, EXTRACT_S, SQUASH_S = 120.0, 40.0, 80.0
"""Durations of the parts of an import, simulated seconds."""
PIECES = 20
SETTINGS = {
    "enroot.conf": "ENROOT_REMAP_ROOT yes\nENROOT_ROOTFS_WRITABLE yes\n",
    "environ.d/50-adapters.env": "NCCL_IB_HCA=mlx5\n",
    "hooks.d/50-slurm-pytorch.sh": "# Simulated cluster: containers are simulated, too, so nothing runs this hook\n",
}
"""Settings of a site that follows NVIDIA's README, for the cluster's checks: file and text."""
CONFIG = """\
# -- BEGIN CONFIG --
export ENROOT_SYSCONF_PATH={site} ENROOT_TEMP_PATH={temp} ENROOT_CONFIG_PATH="$HOME/.config/enroot"
while read -r name value; do export "$name=$value"; done <{site}/enroot.conf
# -- END CONFIG --
"""
"""First lines of the program, which read its configuration. The cluster's checks run them, as on a real cluster."""

_QUERIES = """\
[INFO] Simulated cluster: nothing is downloaded, the image file is empty
[INFO] Querying registry for permission grant
[INFO] Authenticating with user: <anonymous>
[INFO] Authentication succeeded
[INFO] Fetching image manifest list
[INFO] Fetching image manifest"""
_IMAGE = re.compile(r"docker://(?P<registry>[^#/@]+)#(?P<name>[^@#:]+):(?P<tag>[^@#:/]+)")


def main(store: Store, arguments: list[str]) -> int:
    """Run `enroot`."""
    if arguments == ["version"]:
        sys.stdout.write(f"{VERSION}\n")
        return 0
    if arguments[:1] != ["import"]:
        raise not_offered("enroot", " ".join(arguments), system="enroot")
    args = Parser("enroot import", "--output --arch reference", system="enroot").parse(arguments[1:])
    image = _IMAGE.fullmatch(args.reference)
    if not image:
        raise RefusedError(f"[ERROR] Invalid image reference: {args.reference}")
    _find(image)
    _fetch(store)
    _squash(store, Path(args.output or "image.sqsh").absolute())
    return 0


def write_settings(folder: Path) -> None:
    """Write the site's settings."""
    for name, text in SETTINGS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)  # Enroot runs only hooks that are executable


def _find(image: re.Match[str]) -> None:
    """Ask the registry, which has only NeMo."""
    _say(_QUERIES)
    known = image["registry"] == "nvcr.io" and image["name"] == "nvidia/nemo"
    if not known or not re.fullmatch(r"\d\d\.\d\d(\.\w+)?", image["tag"]):
        url = f"https://{image['registry']}/v2/{image['name']}/manifests/{image['tag']}"
        raise RefusedError(f"[ERROR] URL {url} returned error code: 404 Not Found")


def _fetch(store: Store) -> None:
    _say("[INFO] Downloading 66 missing layers...")
    time.sleep(DOWNLOAD_S / store.speed)
    if store.fault("no-space") is not None:
        raise RefusedError("Write failed because No space left on device\n[ERROR] Could not write the image layers")
    _say("[INFO] Extracting image layers...")
    time.sleep(EXTRACT_S / store.speed)
    _say("[INFO] Converting whiteouts...")


def _squash(store: Store, target: Path) -> None:
    """Let the file grow; its first bytes, which mark it as an image, are written last, as mksquashfs does."""
    _say("[INFO] Creating squashfs filesystem...")
    _say(f"Parallel mksquashfs: Using 8 processors\nCreating 4.0 filesystem on {target}, block size 131072.")
    try:
        with target.open("xb") as file:
            for piece in range(1, PIECES + 1):
                file.truncate(IMAGE_BYTES * piece // PIECES)
                time.sleep(SQUASH_S / PIECES / store.speed)
            file.write(MAGIC + b" simulated image of llmb-tui's demo cluster\n")
    except OSError as problem:
        raise RefusedError(f"Could not create destination file: {problem.strerror}") from None
    _say("\nExportable Squashfs 4.0 filesystem, zstd compressed, data block size 131072")


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
