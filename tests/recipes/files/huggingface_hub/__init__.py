"""Stand-in for tests of the program `huggingface-cli`: downloads nothing, and writes files that say so.

Files in /run/rig switch things on: `hub-token` (the only token that is taken) and `faults/hub`: gated, too-many.
"""

import argparse
import os
import sys
from pathlib import Path

KNOBS = Path("/run/rig")
FAULTS = {
    "gated": "GatedRepoError: 403 Client Error.\n\nCannot access gated repo for url https://huggingface.co/{repo}.",
    "too-many": "HfHubHTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/{repo}",
    "token": "HfHubHTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/{repo}",
}


def main() -> int:
    """Run `huggingface-cli`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["download"])
    parser.add_argument("repo")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--local-dir", type=Path, required=True)
    parser.add_argument("--force-download", action="store_true")
    args = parser.parse_args()
    right, fault = KNOBS / "hub-token", KNOBS / "faults" / "hub"
    problem = fault.read_text() if fault.exists() else ""
    if not problem and right.exists() and os.environ.get("HF_TOKEN") != right.read_text():
        problem = "token"
    if problem:
        sys.stderr.write(f"huggingface_hub.errors.{FAULTS[problem].format(repo=args.repo)}\n")
        return 1
    args.local_dir.mkdir(parents=True, exist_ok=True)
    for name in args.files:
        (args.local_dir / name).write_text('"stand-in: nothing was downloaded"\n')
    sys.stdout.write(f"{args.local_dir}\n")
    return 0
