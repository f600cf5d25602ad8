"""`curl` on the login node: registry, model hub and git host are simulated, anything else is the real program's.

The registry hands every image out without a key, the hub knows no token, and nothing leaves this machine.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import pairwise

from llmb_tui.demo.slurm.pyxis import SYSTEM_PATH
from llmb_tui.demo.slurm.store import Store

HOSTS = re.compile(r"https://(nvcr\.io|huggingface\.co|github\.com)(/.*)?")
LAYERS, LAYER_BYTES = 66, 145_000_000
"""Of an image."""
_WITH_VALUE = ("-w", "-o", "-K", "--write-out", "--output")


def main(_: Store, arguments: list[str]) -> int:
    """Run `curl`."""
    found = [match for word in arguments if (match := HOSTS.fullmatch(word))]
    if not found:
        return subprocess.call(["curl", *arguments], env={**os.environ, "PATH": SYSTEM_PATH})
    values = {name: value for name, value in pairwise(arguments) if name in _WITH_VALUE}
    if values.get("-K") == "-":
        sys.stdin.read()
    status, body = answer(found[0][1], found[0][2] or "/")
    flags = "".join(word[1:] for word in arguments if re.fullmatch(r"-[a-zA-Z]+", word))
    output = values.get("-o", values.get("--output", ""))
    if not output:
        if "i" in flags or "I" in flags:
            sys.stdout.write(f"HTTP/2 {status}\r\nx-simulated: yes\r\n\r\n")
        if "I" not in flags:
            sys.stdout.write(body)
    written = values.get("-w", values.get("--write-out", ""))
    sys.stdout.write(written.replace("\\n", "\n").replace("%{http_code}", str(status)))
    return 0


def answer(host: str, path: str) -> tuple[int, str]:
    """Status and body."""
    if host == "nvcr.io" and "/manifests/" in path:
        return 200, json.dumps({"layers": [{"size": LAYER_BYTES}] * LAYERS})
    if path.startswith("/api/whoami"):
        return 401, '{"error":"Invalid username or password."}'
    return 200, "simulated\n"
