"""TEST DOUBLE of `enroot`: `version`, and `import` of images by name. Nothing is downloaded.

Messages, their order and exit codes follow Enroot 3.5 (`enroot`, `common.sh`, `docker.sh`). Files in /run/rig are
switches: `needs-key` (the registry requires this key; empty: any key), `faults/enroot` with `no-space` or a word of
FAULTS, `import-s` (duration of an import in seconds), `image-mb` (size of the image).
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import socket
import sys
import time
from pathlib import Path

KNOBS = Path("/run/rig")
VERSION = "3.5.0"
IMAGE_MB = 8
PIECES = 20
LAYERS, LAYER_BYTES = 66, 8000
MAGIC = b"hsqs"
TEXT = b" Test double: this is no squashfs file, it only begins as one. Nothing was downloaded.\n"
USAGE = """\
Usage: enroot COMMAND [ARG...]

Command line utility for manipulating container sandboxes.

 Commands:
   import [options] [--] URI
   version
"""
FAULTS = {
    "no-network": (6, "curl: (6) Could not resolve host: {registry}"),
    "timeout": (28, "curl: (28) Failed to connect to {registry} port 443 after 30001 ms: Timeout was reached"),
    "not-json": (1, "[ERROR] Could not process JSON input\ncurl: (22) The requested URL returned error: 401"),
    "forbidden": (1, "[ERROR] URL https://{registry}/v2/{image}/manifests/{tag} returned error code: 403 Forbidden"),
    "not-found": (1, "[ERROR] URL https://{registry}/v2/{image}/manifests/{tag} returned error code: 404 Not Found"),
    "too-many": (1, "[ERROR] URL https://{registry}/proxy_auth returned error code: 429 "),
}
"""Failures of an import before the download: exit code and text."""
NO_SPACE = "Write failed because No space left on device\nFATAL ERROR: Failed to write to output filesystem"
_REFERENCE = re.compile(
    r"docker://(?:(?P<user>[^@#/]+)@)?(?:(?P<registry>[^#/@]+)#)?(?P<image>[a-z0-9/._-]+)(?::(?P<tag>[\w.:-]+))?"
)


class EndError(Exception):
    """The end of the program, with a text for stderr and an exit code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def main(words: list[str]) -> int:
    """Run `enroot`."""
    verb, *rest = words or ["help"]
    if verb == "version":
        sys.stdout.write(f"{VERSION}\n")
        return 0
    if verb != "import":
        sys.stderr.write(USAGE)
        return 0 if verb == "help" else 1
    try:
        import_image(*read(rest))
    except EndError as end:
        sys.stderr.write(f"{end}\n")
        return end.code
    return 0


def read(words: list[str]) -> tuple[str, str]:
    """The image's URI and the output file; empty if not given."""
    output, rest = "", list(words)
    while rest and rest[0].startswith("-"):
        name, equals, value = rest.pop(0).partition("=")
        if name == "--":
            break
        if name not in ("-o", "--output", "-a", "--arch") or not (equals or rest):
            raise EndError(1, USAGE.rstrip())
        value = value if equals else rest.pop(0)
        output = value if name in ("-o", "--output") else output
    if len(rest) != 1:
        raise EndError(1, USAGE.rstrip())
    return rest[0], output


def import_image(uri: str, output: str) -> None:
    """`enroot import`."""
    reference = _REFERENCE.fullmatch(uri)
    if not reference:
        raise EndError(1, f"[ERROR] Invalid {'image reference' if uri.startswith('docker://') else 'argument'}: {uri}")
    registry, image, tag = reference["registry"] or "registry-1.docker.io", reference["image"], reference["tag"]
    target = Path(output or f"{image.replace('/', '+')}{f'+{tag}' if tag else ''}.sqsh").absolute()
    if not target.parent.is_dir():
        raise EndError(1, f"[ERROR] No such file or directory: {target}")
    if target.exists():
        raise EndError(1, f"[ERROR] File already exists: {target}")
    inform("Test double: nothing is downloaded, and the file will be no image")
    log_in(registry, reference["user"] or user_of(registry), image, tag or "latest")
    inform("Fetching image manifest list")
    inform("Fetching image manifest")
    seconds = float(knob("import-s") or 0)
    download(image, seconds * 0.5)
    inform("Extracting image layers...")
    time.sleep(seconds * 0.2)
    inform("Converting whiteouts...")
    inform("Creating squashfs filesystem...")
    sys.stderr.write(f"Parallel mksquashfs: Using {os.cpu_count()} processors\n")
    sys.stderr.write(f"Creating 4.0 filesystem on {target}, block size 131072.\n")
    sys.stderr.flush()
    squash(target, seconds * 0.3)
    sys.stderr.write("\nExportable Squashfs 4.0 filesystem, lzo compressed, data block size 131072\n")


def log_in(registry: str, user: str, image: str, tag: str) -> None:
    """Simulate the requests until the registry has granted a token. Raises EndError."""
    inform("Querying registry for permission grant")
    if "." not in registry:
        raise EndError(6, f"curl: (6) Could not resolve host: {registry}")
    early = FAULTS.get(knob("faults/enroot") or "")
    if early and early[0] != 1:
        raise EndError(early[0], early[1].format(registry=registry))
    inform(f"Authenticating with user: {user or '<anonymous>'}")
    key = key_of(registry, user)
    if key is not None:
        inform(f"Using credentials from file: {credentials()}")
    if early:
        raise EndError(early[0], early[1].format(registry=registry, image=image, tag=tag))
    required_key = knob("needs-key")
    if required_key is not None and (user != "$oauthtoken" or not key or (required_key and key != required_key)):
        raise EndError(1, f"[ERROR] URL https://{registry}/proxy_auth returned error code: 401 Unauthorized")
    inform("Authentication succeeded")


def credentials() -> Path:
    """Enroot's credentials file, a netrc."""
    home = os.environ.get("XDG_CONFIG_HOME") or f"{os.environ.get('HOME', '/')}/.config"
    return Path(os.environ.get("ENROOT_CONFIG_PATH") or f"{home}/enroot", ".credentials")


def entries() -> list[list[str]]:
    """Lines of the credentials file, split into words."""
    try:
        return [line.split() for line in credentials().read_text().splitlines()]
    except OSError:
        return []


def user_of(registry: str) -> str:
    """The user name in the credentials file for a registry."""
    return next((words[3] for words in entries() if words[:3] == ["machine", registry, "login"] and words[3:]), "")


def key_of(registry: str, user: str) -> str | None:
    """The password in the credentials file, with `$NAME` replaced from the environment as Enroot does."""
    for words in entries():
        if words[:4] == ["machine", registry, "login", user] and words[4:5] == ["password"] and words[5:]:
            return os.path.expandvars(words[5])
    return None


def download(image: str, seconds: float) -> None:
    """Write the layers that are missing in Enroot's cache; an incomplete layer has a longer name there."""
    digests = [hashlib.sha256(f"{image} {number}".encode()).hexdigest() for number in range(LAYERS + 1)]
    cache = Path(os.environ.get("ENROOT_CACHE_PATH") or f"{os.environ.get('HOME', '/tmp')}/.cache/enroot")
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    (cache / digests[0]).write_bytes(b"the image's configuration")
    missing = [digest for digest in digests[1:] if not (cache / digest).exists()]
    if not missing:
        inform("Found all layers in cache")
        return
    inform(f"Downloading {len(missing)} missing layers...")
    for digest in missing:
        part = cache / f"{digest}.{os.urandom(5).hex()}"
        try:
            part.write_bytes(b"\0" * LAYER_BYTES)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise EndError(1, f"zstd: error 70 : Write error : cannot write block : {error.strerror}") from None
        time.sleep(seconds / LAYERS)
        part.replace(cache / digest)


def squash(target: Path, seconds: float) -> None:
    """Write the image file. Its first bytes, which identify it as an image, are written last, as mksquashfs does."""
    piece = int(knob("image-mb") or IMAGE_MB) * 1_000_000 // PIECES
    try:
        with target.open("xb") as file:
            for done in range(PIECES):
                if done == PIECES // 2 and knob("faults/enroot") == "no-space":
                    raise OSError(errno.ENOSPC, "No space left on device")
                file.write(b"\0" * piece)
                file.flush()
                time.sleep(seconds / PIECES)
            file.seek(0)
            file.write(MAGIC + TEXT + f"Host: {socket.gethostname()}\n".encode())
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise EndError(1, f"Could not create destination file: {error.strerror}") from None
        target.unlink()  # mksquashfs does the same
        raise EndError(1, NO_SPACE) from None


def knob(name: str) -> str | None:
    """Text of a switch; None if the switch is off."""
    try:
        return (KNOBS / name).read_text().strip()
    except OSError:
        return None


def inform(text: str) -> None:
    """Print a line as Enroot does."""
    sys.stderr.write(f"[INFO] {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
