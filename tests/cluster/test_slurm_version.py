from __future__ import annotations

import pytest

from llmb_tui.cluster.slurm.client import SEGMENT_SINCE, Version, parse_version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("slurm 22.05.8\n", (22, 5)),
        ("slurm 24.11.5-nv1\n", (24, 11)),
        ("slurm-wlm 23.11.4\n", (23, 11)),
        ("Welcome to node2\nslurm 25.05.0-0rc1\n", (25, 5)),
        ("Welcome to login1 (Rocky Linux 8.10)\nslurm 24.11.5\n", (24, 11)),
        ("", None),
        ("sbatch: command not found", None),
    ],
)
def test_the_version_is_read_from_the_output_of_sbatch(text: str, version: Version | None) -> None:
    assert parse_version(text) == version


def test_versions_are_in_the_order_of_time() -> None:
    old, new = parse_version("slurm 23.11.9"), parse_version("slurm 24.05.0")
    assert old is not None
    assert new is not None
    assert old < SEGMENT_SINCE <= new
