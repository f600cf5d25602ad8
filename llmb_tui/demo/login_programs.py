"""`curl`, `df` and `git` on the login node: internet access of the usual steps is simulated, the rest is real."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from llmb_tui.demo.slurm.options import Parser, RefusedError
from llmb_tui.demo.slurm.pyxis import SYSTEM_PATH
from llmb_tui.demo.slurm.store import Store

HOSTS = re.compile(r"https://(nvcr\.io|huggingface\.co|github\.com)(/.*)?")
LAYERS, LAYER_BYTES = 66, 145_000_000
"""Number and size of an image's layers."""
SIZE_KIB, USED_KIB = 500 * 1024**3, 320 * 1024**3
"""Size and used space of the shared file system."""
_ELSEWHERE = re.compile(r"(?:https?|ssh|git)://\S+|[\w.-]+@[\w.-]+:\S+")


def curl(_: Store, arguments: list[str]) -> int:
    """Simulate registry, model hub and git host: nothing leaves this machine, and the hub accepts no token."""
    address = next((match for word in arguments if (match := HOSTS.fullmatch(word))), None)
    if not address:
        return _real("curl", arguments)
    limits = "--connect-timeout --max-time --max-filesize"
    parser = Parser("curl", f"-K -o -w url {limits}", "-q -s -S -i", system="curl")
    args = parser.parse([word for word in arguments if word != "--"])
    if args.K:
        sys.stdin.read()
    status, body = answer(address[1], address[2] or "/")
    header = f"HTTP/2 {status}\r\nx-simulated: yes\r\n\r\n" if args.i else ""
    written = (args.w or "").replace("\\n", "\n").replace("%{http_code}", str(status))
    sys.stdout.write(f"{'' if args.o else header + body}{written}")
    return 0


def answer(host: str, path: str) -> tuple[int, str]:
    """Status and body of an answer. The registry serves every image without an API key."""
    if host == "nvcr.io" and "/manifests/" in path:
        return 200, json.dumps({"layers": [{"size": LAYER_BYTES}] * LAYERS})
    if path.startswith("/api/whoami"):
        return 401, '{"error":"Invalid username or password."}'
    return 200, "simulated\n"


def df(store: Store, arguments: list[str]) -> int:
    """Simulate the shared file system: nothing large is written there, so a full disk does not matter."""
    shared = store.root / "shared"
    if arguments[0] != "-Pk" or not Path(arguments[-1]).resolve().is_relative_to(shared):
        return _real("df", arguments)
    free = SIZE_KIB - USED_KIB
    sys.stdout.write("Filesystem     1024-blocks      Used Available Capacity Mounted on\n")
    sys.stdout.write(f"simulated {SIZE_KIB} {USED_KIB} {free} {100 * USED_KIB // SIZE_KIB}% {shared}\n")
    return 0


def git(_: Store, arguments: list[str]) -> int:
    """Fetch nothing: NVIDIA's scripts would install gigabytes on the user's machine, so they end here."""
    for word in filter(_ELSEWHERE.fullmatch, arguments):
        reason = "the demo cluster has no internet access; choose our script"
        raise RefusedError(f"fatal: unable to access '{word}': {reason}", 128)
    return _real("git", arguments)


def _real(program: str, arguments: list[str]) -> int:
    return subprocess.call([program, *arguments], env={**os.environ, "PATH": SYSTEM_PATH})
