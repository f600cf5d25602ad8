"""What a login shell sets and jobs would lack."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

from llmb_tui.cluster.batch import Answer
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.preflight.check_group import clean_check
from llmb_tui.preflight.needs import Needs
from llmb_tui.preflight.report import Check
from llmb_tui.preflight.site_environment import environment_checks, environment_group
from tests.cluster.examples import PROFILE

JOB = "NCCL_DEBUG=WARN\nPATH=/usr/bin\n"


def checks(login: str, profile: SlurmProfile = PROFILE) -> dict[str, Check]:
    answers = {"job": Answer(0, JOB), "login": Answer(0, login)}
    return {check.id: clean_check(check) for check in environment_checks(answers, profile)}


def test_a_login_shell_like_the_jobs_needs_nothing() -> None:
    (check,) = checks(JOB).values()
    assert (check.status, check.variables, check.fix) == ("ok", (), "")


def test_what_jobs_would_lack_is_said_and_may_be_taken() -> None:
    check = checks(f"{JOB}NCCL_IB_HCA=mlx5_0,mlx5_1\nUCX_TLS=rc\n")["environment"]
    assert check.status == "warning"
    assert check.found == "jobs would lack NCCL_IB_HCA=mlx5_0,mlx5_1, UCX_TLS=rc"
    assert check.variables == (("NCCL_IB_HCA", "mlx5_0,mlx5_1"), ("UCX_TLS", "rc"))
    assert "tens of percent" in check.fix


def test_what_the_profile_has_is_not_lacking() -> None:
    profile = replace(PROFILE, env=(("NCCL_IB_HCA", "mlx5_0"),))
    assert checks(f"{JOB}NCCL_IB_HCA=mlx5_0\n", profile)["environment"].status == "ok"
    assert checks(f"{JOB}NCCL_IB_HCA=mlx5_9\n", profile)["environment"].variables == (("NCCL_IB_HCA", "mlx5_9"),)


def test_paths_are_shown_and_never_taken_with_the_rest() -> None:
    found = checks("NCCL_DEBUG=WARN\nPATH=/opt/bin:/usr/bin\nLD_LIBRARY_PATH=/opt/lib\nFI_PROVIDER=efa\n")
    assert found["environment"].variables == (("FI_PROVIDER", "efa"),)
    paths = found["environment-paths"]
    assert (paths.status, paths.found) == ("ok", "LD_LIBRARY_PATH and PATH of a login shell differ")
    assert paths.variables == (("LD_LIBRARY_PATH", "/opt/lib"),), "by PATH the batch script itself runs"


def test_a_value_that_is_not_plain_is_shown_harmless_and_not_offered() -> None:
    check = checks(f"{JOB}NCCL_IB_HCA=\x1b]52;c;x\x07mlx5\n")["environment"]
    assert (check.found, check.variables) == ("jobs would lack NCCL_IB_HCA=mlx5", ())


def test_only_these_variables_leave_the_cluster(tmp_path: Path) -> None:
    """The commands themselves, in a home whose profile sets more."""
    (tmp_path / ".profile").write_text("export NCCL_SOCKET_IFNAME=ib0 MY_TOKEN=hf_secret\necho welcome\n")
    (tmp_path / ".bash_profile").write_text((tmp_path / ".profile").read_text())
    commands = environment_group(Needs(PROFILE)).commands
    script = 'limited() { shift; "$@"; }\n' + "\necho --\n".join(commands[name] for name in ("job", "login"))
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "SHELL": "/bin/bash"}
    said = subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, check=True).stdout
    job, login = said.split("--\n")
    assert "NCCL_SOCKET_IFNAME=ib0\n" in login
    assert "NCCL_SOCKET_IFNAME" not in job
    assert "hf_secret" not in said
    assert "welcome" not in said
