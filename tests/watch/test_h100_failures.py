"""Real failures on an H100 (tests/watch/h100): each has an explanation; a successful program has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb_tui.watch.failure import worst

LOGS = sorted((Path(__file__).parent / "h100").glob("*.log"))
SOUND = "nccl_one_rank_info"
CAUSES = {
    "cublas_oom": "A GPU ran out of memory.",
    "disk_full": "A file system is full.",
    "duplicate_gpu": "Two ranks use the same GPU.",
    "gloo_peer_lost": "A process ended with exit code 7 before the others failed.",
    "sigkill_rank": "A process was killed from outside (SIGKILL).",
    "master_unreachable": "The ranks did not find each other in time.",
    "oom_rank": "A GPU ran out of memory.",
    "port_in_use": "The rendezvous port of the ranks is in use on the first node.",
}


@pytest.mark.parametrize("log", LOGS, ids=[log.stem for log in LOGS])
def test_a_failure_has_a_cause_and_a_sound_program_none(log: Path) -> None:
    cause = worst(log.read_bytes())
    assert (cause is None) == (log.stem == SOUND)
    if cause is not None and log.stem in CAUSES:
        assert cause.reason == CAUSES[log.stem]


def test_a_fault_of_the_program_blames_no_node() -> None:
    """An index out of range and an illegal address are errors of the code, on any node."""
    for name in ("device_assert", "illegal_access"):
        cause = worst((Path(__file__).parent / "h100" / f"{name}.log").read_bytes())
        assert cause is not None
        assert "without the node" not in cause.fix
