"""`hostname` on a simulated node: its Slurm name. The address is this machine's own, whatever its system."""

from __future__ import annotations

import os
import sys

from llmb_tui.demo.slurm import facts
from llmb_tui.demo.slurm.options import Parser
from llmb_tui.demo.slurm.store import Store


def main(_: Store, arguments: list[str]) -> int:
    """Run `hostname`."""
    asked = Parser("hostname", "all-ip-addresses/I fqdn/f ip-address/i long/l short/s").parse(arguments)
    addresses = "ip-address" in asked or "all-ip-addresses" in asked
    sys.stdout.write("127.0.0.1\n" if addresses else os.environ.get("SLURMD_NODENAME", facts.NODES[0]) + "\n")
    return 0
