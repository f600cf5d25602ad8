"""`enroot`: `version`, and `import` of the images that the recipes name. Nothing is downloaded."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

from llmb_tui.demo.slurm.options import Refusal
from llmb_tui.demo.slurm.pyxis import MAGIC
from llmb_tui.demo.slurm.store import Store

VERSION = "3.5.0"
IMAGE_BYTES = 19_327_352_832
"""Apparent size of an imported image; the file has holes and takes next to no space."""
DOWNLOAD_S, EXTRACT_S, SQUASH_S = 120.0, 40.0, 80.0
"""How long the parts of an import take, simulated seconds."""
PIECES = 20

USAGE = """\
Usage: enroot COMMAND [ARG...]

Command line utility for manipulating container sandboxes.

 Commands:
   import [options] [--] URI
   version
"""
IMPORT_USAGE = """\
Usage: enroot import [options] [--] URI

Import a container image from a specific location.

 Schemes:
   docker://[USER@][REGISTRY#]IMAGE[:TAG]  Import a Docker image from a registry

 Options:
   -a, --arch    Architecture of the image (defaults to host architecture)
   -o, --output  Name of the output image file (defaults to "URI.sqsh")
"""
_REFERENCE = re.compile(r"docker://(?:[^@#/]+@)?(?:(?P<registry>[^#/@]+)#)?(?P<image>[^@#:]+)(?::(?P<tag>[^@#:/]+))?")


def main(store: Store, arguments: list[str]) -> int:
    """Run `enroot`."""
    verb, *rest = arguments or ("help",)
    if verb == "version":
        sys.stdout.write(f"{VERSION}\n")
        return 0
    if verb != "import":
        raise Refusal(USAGE.rstrip(), 0 if verb == "help" else 1)
    uri, output = _read(rest)
    found = _REFERENCE.fullmatch(uri)
    if not uri.startswith("docker://"):
        raise _error(f"Invalid argument: {uri}")
    if not found:
        raise _error(f"Invalid image reference: {uri}")
    tag = found["tag"] or "latest"
    target = Path(os.path.abspath(output or f"{found['image'].replace('/', '+')}+{tag}.sqsh"))
    if target.exists():
        raise _error(f"File already exists: {target}")
    _import(store, found["registry"] or "registry-1.docker.io", found["image"], tag, target)
    return 0


def _read(words: list[str]) -> tuple[str, str]:
    """The image's URI and the name of the output file, empty where none is given."""
    output = ""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            break
        if name not in ("-o", "--output", "-a", "--arch") or not (equals or rest):
            raise Refusal(IMPORT_USAGE.rstrip(), 0 if name in ("-h", "--help") else 1)
        value = value if equals else rest.pop(0)
        output = value if name in ("-o", "--output") else output
    if len(rest) != 1:
        raise Refusal(IMPORT_USAGE.rstrip())
    return rest[0], output


def _import(store: Store, registry: str, image: str, tag: str, target: Path) -> None:
    _info("Simulated cluster: nothing is downloaded, the image file is empty")
    for text in ("Querying registry for permission grant", "Authenticating with user: <anonymous>"):
        _info(text)
    _info("Authentication succeeded")
    _info("Fetching image manifest list")
    _info("Fetching image manifest")
    if (registry, image) != ("nvcr.io", "nvidia/nemo") or not re.fullmatch(r"\d\d\.\d\d(\.\w+)?", tag):
        raise _error(f"URL https://{registry}/v2/{image}/manifests/{tag} returned error code: 404 Not Found")
    _info("Downloading 66 missing layers...")
    time.sleep(DOWNLOAD_S / store.speed)
    if store.fault("no-space") is not None:
        raise Refusal("Write failed because No space left on device\n[ERROR] Could not write the image layers")
    _info("Extracting image layers...")
    time.sleep(EXTRACT_S / store.speed)
    _info("Converting whiteouts...")
    _info("Creating squashfs filesystem...")
    sys.stderr.write("Parallel mksquashfs: Using 8 processors\n")
    sys.stderr.write(f"Creating 4.0 filesystem on {target}, block size 131072.\n")
    sys.stderr.flush()
    _squash(store, target)
    sys.stderr.write("\nExportable Squashfs 4.0 filesystem, zstd compressed, data block size 131072\n")


def _squash(store: Store, target: Path) -> None:
    """Let the file grow; its first bytes, which make it an image, are written last, as mksquashfs does."""
    try:
        with target.open("xb") as file:
            for piece in range(1, PIECES + 1):
                file.truncate(IMAGE_BYTES * piece // PIECES)
                time.sleep(SQUASH_S / PIECES / store.speed)
            file.write(MAGIC + b" simulated image of llmb-tui's demo cluster\n")
    except FileNotFoundError:
        raise Refusal(f"Could not create destination file: No such file or directory\n{target}") from None


def _info(text: str) -> None:
    sys.stderr.write(f"[INFO] {text}\n")
    sys.stderr.flush()


def _error(text: str) -> Refusal:
    return Refusal(f"[ERROR] {text}")
