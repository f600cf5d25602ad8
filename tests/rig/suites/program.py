"""A program that submits a suite, for tests that kill it: `python -m tests.rig.suites.program FOLDER SUITE`.

It is `llmb-tui suite submit SUITE --yes`, which looks at a quick cluster more often.
"""

from __future__ import annotations

import os
import sys

from llmb_tui import services
from llmb_tui.cli import main
from llmb_tui.launch import login_node
from llmb_tui.launch.direct import render
from llmb_tui.watch.timing import Timing
from tests.kit.warm import Warm

QUICK = Timing(read_every_s=0.1, look_every_s=0.3, settle_every_s=0.3)


def hurry() -> None:
    """This Slurm takes jobs quickly, so less time than by default settles what was lost."""
    login_node.TAKEN_WITHIN_S, login_node.ASK_AGAIN_AFTER_S = 10.0, 0.2
    vars(render)["COMMAND"] = (*Warm.python(), "-m", "llmb_tui.launch.direct.render_worker")
    vars(services)["Timing"] = lambda: QUICK


if __name__ == "__main__":
    folder, suite = sys.argv[1:]
    os.environ |= {"LLMB_TUI_CONFIG_DIR": f"{folder}/config", "LLMB_TUI_STATE_DIR": f"{folder}/state"}
    hurry()
    sys.exit(main(["suite", "submit", suite, "--yes"]))
