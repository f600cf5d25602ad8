"""The scheduler's checks with a slow Slurm."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from llmb_tui.cluster.failures import DeadlineError
from llmb_tui.cluster.link import Completed
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.preflight.needs import Needs
from llmb_tui.preflight.report import Preflight
from llmb_tui.preflight.scheduler import slurm_group
from tests.cluster.examples import PLAN, PROFILE

# Each command records the seconds that it would take.
_ANSWERS = """#!/bin/sh
echo 2 >>"$CLOCK"
[ "$1" != --version ] || echo slurm 23.11.4
"""
_HANGS = """#!/bin/sh
echo 6 >>"$CLOCK"
exit 124
"""


class SlowSlurm(SlurmCluster):
    """Each command answers after two seconds, on a simulated clock; accounting hangs until its limit."""

    def __init__(self, folder: Path) -> None:
        super().__init__(PROFILE)
        self._folder, self._clock = folder, folder / "clock"
        for name in ("sinfo", "scontrol", "srun", "sbatch", "sacctmgr"):
            (folder / name).write_text(_HANGS if name == "sacctmgr" else _ANSWERS)
            (folder / name).chmod(0o700)

    @property
    def took_s(self) -> list[int]:
        """Duration of each command."""
        return [int(seconds) for seconds in self._clock.read_text().split()]

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", deadline_s: float = 20.0, only_looks: bool = False
    ) -> Completed:
        """Run the command on this machine, with the stand-ins for Slurm's commands."""
        assert (stdin, only_looks) == (b"", True)
        env = os.environ | {"PATH": f"{self._folder}:{os.environ['PATH']}", "CLOCK": str(self._clock)}
        result = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        if sum(self.took_s) > deadline_s:
            raise DeadlineError("It took longer.", "", "")
        return Completed(result.returncode, result.stdout, result.stderr)


def test_a_slurm_that_is_slow_and_answers_is_not_called_silent(tmp_path: Path) -> None:
    slurm = SlowSlurm(tmp_path)
    checks = {check.id: check for check in slurm_group(Needs(PROFILE, PLAN))(slurm, Preflight(()))}
    assert [checks[name].status for name in ("scheduler", "controller", "account")] == ["ok", "ok", "warning"]
    assert checks["account"].found == "no answer in time"
    assert slurm.took_s.count(6) == 1, "accounting that hangs is waited for once"
