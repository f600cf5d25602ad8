"""A hung Slurm controller behind a working link."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb_tui.cluster.slurm.cluster import SlurmCluster
from tests.kit.waiting import until
from tests.rig.cluster import Rig


def test_a_hung_controller_does_not_count_as_a_dead_link(
    rig_without_accounting: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    session = SlurmCluster(rig_without_accounting.profile())
    session.run(["true"])
    until(lambda: session.health.round_trip_s is not None)
    with rig_without_accounting.controller_hung():
        done = session.run(["squeue"], deadline_s=60)  # Slurm's own timeout is 10 s and more
        assert done.exit_code != 0
        assert "timed out" in done.stderr.lower()
        assert (session.state, session.health.note) == ("live", "")
    session.close()
