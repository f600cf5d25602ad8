"""Selection of llmb-run's runs in its installations: the newest ones, or the requested one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.llmb.run import MOST, list_runs

YEAR = 365 * 86400.0


class Install:
    """An installation on this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.session = SlurmCluster(SlurmProfile("here", "local", "acct", "batch", str(root), transport="local"))

    def ran(self, job: str, at: float, name: str = "", below: str = "") -> str:
        """Add a job that was submitted at that Unix time; return its folder."""
        folder = self.root / "workloads/pretrain_x" / (below or f"experiments/a task/a task_{job}_{at:.0f}/a task")
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / (name or f"llmb-config_{job}.yaml")
        file.write_text("workload_info: {gsw_version: '25.12'}\n")
        os.utime(file, (at, at))
        return str(folder)

    def found(self, job: str | None = None) -> list[tuple[str, float]]:
        return [(run.job_id, run.written_at) for run in list_runs(self.session, [str(self.root)], job)]


@pytest.fixture
def install(tmp_path: Path) -> Iterator[Install]:
    made = Install(tmp_path / "llmb")
    yield made
    made.session.close()


def test_the_newest_are_listed_even_after_job_ids_restarted(install: Install) -> None:
    for number in range(MOST + 5):
        install.ran(str(900_000 + number), YEAR + number)
    install.ran("17", 2 * YEAR)
    result = install.found()
    assert len(result) == MOST
    assert result[:2] == [("17", 2 * YEAR), (str(900_000 + MOST + 4), YEAR + MOST + 4)]


def test_a_requested_job_is_found_at_any_age(install: Install) -> None:
    for number in range(MOST + 5):
        install.ran(f"17{number:03}", 3 * YEAR)
    install.ran("17", YEAR)
    install.ran("17", 2 * YEAR, name="llmb-config_17_0.yaml")
    install.ran("17", 5 * YEAR, name="llmb-config_17.yaml.bak")
    assert install.found("17") == [("17", 2 * YEAR), ("17", YEAR)]
    assert install.found("18") == install.found("1") == []


@pytest.mark.parametrize("job", ["", "*", "17[0-9]", "17*", "-1", "17 18", "17\n", "1" * 30])
def test_a_job_id_must_be_a_number(install: Install, job: str) -> None:
    install.ran("170", YEAR)
    assert install.found(job) == []


def test_a_job_without_nemo_run_lies_in_the_folder_of_its_workload(install: Install) -> None:
    folder = install.ran("7", YEAR, below=".")
    install.ran("8", YEAR, below="elsewhere")
    (run,) = list_runs(install.session, [str(install.root)])
    assert (run.job_id, run.folder, run.workload) == ("7", folder, "pretrain_x")
    assert install.found("7") == [("7", YEAR)]
