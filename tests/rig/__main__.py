"""A rig from the command line: `python -m tests.rig up`, `down` and `packages`."""

from __future__ import annotations

import argparse
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from tests.kit.waiting import until
from tests.rig import packages
from tests.rig.accounting import ACCOUNT
from tests.rig.block import ROOT
from tests.rig.client import ALIASES, PASSPHRASE
from tests.rig.cluster import SPEED, Rig
from tests.rig.totp import SECRET

BY_HAND = "by-hand.pid"
"""Name of the file in a rig's directory with the id of the process that holds a manually started rig."""
LAST_WORDS = "  end        "
"""Beginning of the last line that is printed about a started rig."""


def main() -> int:
    """Run a verb; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.rig", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("packages", help="install the packages that the rig needs (Debian, as root)")
    up = verbs.add_parser("up", help="start a rig; ctrl+c ends it")
    up.add_argument("--background", action="store_true", help="return when it is up; `down` ends it")
    up.add_argument("--login-only", action="store_true", help="SSH servers only, without Slurm")
    up.add_argument("--no-accounting", action="store_true", help="without slurmdbd: sacct reports disabled accounting")
    down = verbs.add_parser("down", help="end manually started rigs")
    down.add_argument("number", nargs="?", default="*", help="number of a rig; default: all rigs")
    arguments = parser.parse_args()
    if arguments.verb == "packages":
        return install_packages()
    if arguments.verb == "down":
        return end_rigs(arguments.number)
    if reason := Rig.unavailable():
        say(f"The rig cannot start: {reason}.")
        return 1
    if arguments.background:
        return start_in_background(sys.argv[1:])
    return start(Rig(slurm=not arguments.login_only, accounting=not arguments.no_accounting))


def install_packages() -> int:
    """Install the missing packages. Always returns 0: without the rig its tests are skipped and listed."""
    if reason := packages.install():
        say(f"The tests' own cluster cannot be installed: {reason}.\nTests that need it will be reported as not run.")
    return 0


def start_in_background(words: list[str]) -> int:
    """Start the rig in a separate process, and print the output of that process until the rig is up."""
    arguments = [word for word in words if word != "--background"]
    holder = subprocess.Popen(
        [sys.executable, "-m", "tests.rig", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert holder.stdout
    for line in holder.stdout:
        say(line.rstrip("\n"))
        if line.startswith(LAST_WORDS):
            return 0
    return holder.wait() or 1


def start(rig: Rig) -> int:
    """Start a rig and hold it until a signal ends it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        rig.start(lambda part: say(f"starting {part} ..."))
        (rig.directory / BY_HAND).write_text(str(os.getpid()))
        say(words(rig))
        while True:
            signal.pause()
    except KeyboardInterrupt:
        return 0
    finally:
        rig.stop()


def words(rig: Rig) -> str:
    """Instructions for a running rig."""
    config = rig.client.config
    return f"""
A test cluster runs on this machine: real SSH servers and a real Slurm with simulated GPUs.
No container is started and nothing is trained in its jobs: both are simulated, and say so.

  connect    ssh -F {config} login
  also       {" ".join(alias for alias in ALIASES if alias != "login")}
  password   {rig.password}    passphrase of the key of `enc`: {PASSPHRASE}
  codes      oathtool --totp -b {SECRET}
  llmb-tui   host `login`, account {ACCOUNT}, partition batch, install directory {rig.directory}/install/main,
             ssh_config {config}
  training   runs {SPEED:g} times faster than real time; see {rig.knobs}/speed
  faults     files in {rig.knobs}/faults; see tests/rig/README.md
  logs       {rig.directory}/log
{LAST_WORDS}ctrl+c, or python -m tests.rig down {rig.block.number}"""


def end_rigs(number: str) -> int:
    """End all manually started rigs, or the rig with that number."""
    say(f"Rigs ended: {sum(map(end_rig, ROOT.glob(f'llmb-rig-{number}/{BY_HAND}')))}.")
    return 0


def end_rig(file: Path) -> bool:
    """End the rig whose process id is in `file`; False if that process has already ended.

    The process outlives its directory, whose removal takes a while.
    """
    try:
        holder = os.pidfd_open(int(file.read_text()))
    except ProcessLookupError:
        return False
    try:
        signal.pidfd_send_signal(holder, signal.SIGTERM)
        until(lambda: select.select([holder], [], [], 0)[0], f"{file.parent.name} has ended", deadline_s=180)
    finally:
        os.close(holder)
    return True


def say(text: str) -> None:
    """Print a line for the user at the terminal."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
