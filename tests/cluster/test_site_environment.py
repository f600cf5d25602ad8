"""Variables of a login shell that jobs lack."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

from llmb_tui.cluster.batch import Answer, batch_answers, batch_script
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


def test_variables_missing_in_jobs_are_shown_and_offered() -> None:
    check = checks(f"{JOB}NCCL_IB_HCA=mlx5_0,mlx5_1\nUCX_TLS=rc\n")["environment"]
    assert check.status == "warning"
    assert check.found == "missing in jobs: NCCL_IB_HCA=mlx5_0,mlx5_1, UCX_TLS=rc"
    assert check.variables == (("NCCL_IB_HCA", "mlx5_0,mlx5_1"), ("UCX_TLS", "rc"))
    assert "tens of percent" in check.fix


def test_variables_of_the_profile_are_not_missing() -> None:
    profile = replace(PROFILE, env=(("NCCL_IB_HCA", "mlx5_0"),))
    assert checks(f"{JOB}NCCL_IB_HCA=mlx5_0\n", profile)["environment"].status == "ok"
    assert checks(f"{JOB}NCCL_IB_HCA=mlx5_9\n", profile)["environment"].variables == (("NCCL_IB_HCA", "mlx5_9"),)


def test_paths_are_shown_but_never_taken_over_with_the_others() -> None:
    by_id = checks("NCCL_DEBUG=WARN\nPATH=/opt/bin:/usr/bin\nLD_LIBRARY_PATH=/opt/lib\nFI_PROVIDER=efa\n")
    assert by_id["environment"].variables == (("FI_PROVIDER", "efa"),)
    paths = by_id["environment-paths"]
    assert (paths.status, paths.found) == ("ok", "a login shell sets another LD_LIBRARY_PATH and PATH")
    assert paths.variables == (("LD_LIBRARY_PATH", "/opt/lib"),), "by PATH the batch script itself runs"


def test_a_value_that_is_not_plain_is_shown_harmless_and_not_offered() -> None:
    check = checks(f"{JOB}NCCL_IB_HCA=\x1b]52;c;x\x07mlx5\n")["environment"]
    assert (check.found, check.variables) == ("missing in jobs: NCCL_IB_HCA=mlx5", ())


def test_other_lines_are_not_mistaken_for_variables() -> None:
    by_id = checks(f"stty: 'standard input': Inappropriate ioctl for device\nUnknown option: `-lc'\n{JOB}A=b\n")
    assert [(check.status, check.found) for check in by_id.values()] == [("ok", "jobs have the same as a login shell")]


def shell_answers(home: Path, shell: str) -> dict[str, Answer]:
    """Answers of the real commands for a user with this home and shell."""
    commands = environment_group(Needs(PROFILE)).commands
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "SHELL": shell}
    script = batch_script(commands, "frame")
    run = subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return batch_answers(run.stdout, commands, "frame")


def test_only_these_variables_leave_the_cluster(tmp_path: Path) -> None:
    """The commands themselves, in a home whose profile sets other variables, prints errors, and traces its commands."""
    (tmp_path / ".bash_profile").write_text(
        "stty erase ^H\nset -x\nexport NCCL_SOCKET_IFNAME=ib0 MY_TOKEN=hf_secret\necho welcome\n"
    )
    answers = shell_answers(tmp_path, "/bin/bash")
    assert "NCCL_SOCKET_IFNAME=ib0\n" in answers["login"].text
    assert "NCCL_SOCKET_IFNAME" not in answers["job"].text
    lines = "".join(answer.text for answer in answers.values()).splitlines()
    assert {line.partition("=")[0] for line in lines} <= {"NCCL_SOCKET_IFNAME", "PATH", "LD_LIBRARY_PATH"}
    (check, *_) = environment_checks(answers, PROFILE)
    assert check.variables == (("NCCL_SOCKET_IFNAME", "ib0"),)


def test_a_login_shell_that_only_complains_sets_nothing(tmp_path: Path) -> None:
    shell = tmp_path / "shell"
    shell.write_text("#!/bin/sh\necho NCCL_DEBUG=this shell is no shell >&2\nexit 1\n")
    shell.chmod(0o700)
    (check,) = environment_checks(shell_answers(tmp_path, str(shell)), PROFILE)
    assert (check.variables, check.found) == ((), "the login shell did not list its variables")


def test_csh_is_started_without_the_option_l(tmp_path: Path) -> None:
    """csh accepts `-l` only as the sole option: like it, the stand-in accepts one option and its command."""
    shell = tmp_path / "tcsh"
    shell.write_text('#!/bin/sh\n[ "$1" = -c ] || { echo "Unknown option: $1" >&2; exit 1; }\nNCCL_DEBUG=INFO $2\n')
    shell.chmod(0o700)
    (check,) = environment_checks(shell_answers(tmp_path, str(shell)), PROFILE)
    assert check.variables == (("NCCL_DEBUG", "INFO"),)
