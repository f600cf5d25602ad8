"""An install directory that a group shares, while another member of the group replaces names in it with links."""

from __future__ import annotations

import re
import threading
from contextlib import AbstractContextManager, closing

import pytest

from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.errors import LlmbError
from llmb_tui.launch import install
from llmb_tui.launch.install import _step_script
from llmb_tui.launch.install_step import InstallStep
from llmb_tui.launch.step_state import StepState
from llmb_tui.preflight.login_node import login_node_group
from llmb_tui.preflight.needs import Needs
from llmb_tui.preflight.report import Check
from llmb_tui.preflight.run import run_preflight
from tests.rig.cluster import Rig
from tests.rig.install.site import Site
from tests.rig.machine import OPERATOR_ID
from tests.rig.swapping import as_member, swapping

REMOVALS, STEPS, SUBMISSIONS = 1000, 300, 300


class SharedInstall:
    """An install directory of the operator that the group may write to, and other files of the operator."""

    def __init__(self, rig: Rig, *, empty: bool = False) -> None:
        self.rig = rig
        self.install, self.precious = rig.new_dir(), rig.new_dir()
        if not empty:
            self.install.chmod(0o2775)
            as_member(rig, f"cd {self.install} && mkdir -p images venvs .llmb-tui/steps")
        files = "for name in $(seq 20) owner job log script made traces/exit traces/answer; do echo keep >$name; done"
        line = f"cd {self.precious} && umask 007 && mkdir -p d/made traces && echo keep >d/f && {files}"
        rig.as_operator(line, check=True)
        self.before = self.contents()

    def contents(self) -> list[tuple[str, int, str]]:
        """Name, mode and content of every file that must not change."""
        return sorted(
            (str(path), path.lstat().st_mode, path.read_text() if path.is_file() else "")
            for path in (self.precious, *self.precious.rglob("*"))
        )

    def swapping(self, *names: str) -> AbstractContextManager[None]:
        stop = self.rig.new_dir() / "stop"
        return swapping(self.rig, stop, self.precious, [self.install / name for name in names])


@pytest.fixture
def shared(login: Rig) -> SharedInstall:
    return SharedInstall(login)


def in_one_shell(times: int, script: str, before: str, *words: str) -> str:
    """A line of sh that runs a script `times` times, each time in a subshell after the command `before`."""
    arguments = " ".join(words)
    loop = f"i=0\nwhile [ $i -lt {times} ]; do\ni=$((i + 1))\n{before}\nrun {arguments}\ndone >/dev/null 2>&1\n"
    return f"run() (\n{script}\n)\n{loop}"


def test_removal_and_deletion_follow_no_link_however_often_names_are_swapped(shared: SharedInstall) -> None:
    script = remote_text("lock.sh", "inside.sh", "discard.sh")
    trash = f"{shared.install}/.llmb-tui/trash.{OPERATOR_ID}"
    shared.rig.as_operator(f"mkdir -m 700 {trash}", check=True)
    setup = f"cd {shared.install}; mkdir -p venvs/made/d/e; set -- venvs/made; [ $((i % 2)) = 0 ] || set --"
    with shared.swapping(f".llmb-tui/trash.{OPERATOR_ID}", "venvs"):
        shared.rig.as_operator(
            in_one_shell(REMOVALS, script, setup, str(shared.install), "token", '"$@"'), timeout_s=300
        )
    assert shared.contents() == shared.before


WORK = """
fresh_folder "$1"
away "$1/job" "$1/script" "$1/owner"
echo new | put "$1/owner"
rename "$1/owner" job
echo >>"$2"
"""


def test_install_steps_and_locks_lead_nowhere_else_however_often_names_are_swapped(shared: SharedInstall) -> None:
    code, worked = f"{shared.install}/.llmb-tui/code", shared.rig.new_dir() / "worked"
    step = InstallStep("entry", "Entry", (f"{code}/never",), WORK, (code, str(worked)))
    script = _step_script("g=rwx,o-w", str(shared.install), step)
    start = remote_text("lock.sh", "inside.sh", "sbatch.sh", "start.sh")
    steps = shared.install / ".llmb-tui" / "steps"
    as_member(shared.rig, f"mkdir -p {steps}/entry {code}; mkfifo {steps}/entry/job")
    tidy = f"find {shared.install}/.llmb-tui -depth -path '*/lock*' -delete"
    starts = f"begin() (\n{start}\n)\nprintf x | begin {shared.install} entry 1 '' ''"
    with shared.swapping(
        ".llmb-tui/steps/entry", ".llmb-tui/steps/entry/lock", ".llmb-tui/steps/entry/log", ".llmb-tui/code"
    ):
        shared.rig.as_operator(
            in_one_shell(STEPS, script, f"{tidy}\n[ $((i % 4)) != 0 ] || {{ {starts}\n}}"), timeout_s=300
        )
    assert shared.contents() == shared.before
    # Swapped names stop most attempts; these attempts succeeded.
    assert len(worked.read_text()) > 5


def test_submissions_lead_nowhere_else_however_often_names_are_swapped(shared: SharedInstall) -> None:
    """Create folders of runs, write a file, start sbatch and a launch script, and withdraw submissions."""
    top, submitted = shared.install, shared.rig.new_dir() / "submitted"
    runs, programs = f"{top}/workloads/experiments", shared.rig.new_dir()
    (programs / "sbatch").write_text(f'#!/bin/sh\ncat "$2" >>{submitted}\necho 7\n')
    (programs / "squeue").write_text("#!/bin/sh\necho 7\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    as_member(shared.rig, f"mkdir -p {runs}")
    prepare = remote_text("there.sh", "inside.sh", "prepare.sh")
    put = remote_text("inside.sh", "put.sh")
    submit = remote_text("inside.sh", "group.sh", "claim.sh", "sbatch.sh", "submit.sh")
    launch = remote_text("inside.sh", "group.sh", "claim.sh", "lock.sh", "launch.sh")
    status = remote_text("inside.sh", "group.sh", "status.sh")
    script = f"""
umask g=rwx,o-w
PATH={programs}:$PATH
prepare() (
{prepare}
)
put() (
{put}
)
submit() (
{submit}
)
launch() (
{launch}
)
status() (
{status}
)
own={runs}/run$((i % 3))
prepare {top} "$own" '' 0 1 "$own/traces" 1 nothing "$own/token"
[ -d "$own/traces" ] || exit
echo run | put {top} "$own/script" 4
echo true | put {top} "$own/traces/command.sh" 5
case $((i % 3)) in
0) submit {top} "$own/traces" script ;;
1) launch {top} "$own/traces" '' '' ;;
2) status {top} "$own/traces" withdraw submit.sh '' ;;
esac
"""
    names = [f"workloads/experiments/run{number}" for number in range(3)]
    with shared.swapping("workloads", "workloads/experiments", *names):
        shared.rig.as_operator(in_one_shell(SUBMISSIONS, script, f"rm -rf {runs}/run$((i % 3))"), timeout_s=300)
    assert shared.contents() == shared.before
    # Swapped names stop most attempts; these attempts succeeded, and submitted only their own script.
    assert set(submitted.read_text().splitlines()) == {"run"}


@pytest.mark.parametrize("name", [".llmb-tui", ".llmb-tui/steps", ".llmb-tui/steps/directories-pretrain_nemotron4"])
def test_a_link_on_the_way_to_a_step_is_refused_with_its_name(site: Site, rig: Rig, name: str) -> None:
    precious = rig.new_dir()
    place = site.install / name
    rig.as_operator(f"mkdir -p {place.parent} && ln -s {precious} {place}", check=True)
    with pytest.raises(LlmbError, match="cannot be written") as refused:
        site.run()
    assert f"{place} is a symbolic link" in refused.value.why
    assert list(precious.iterdir()) == []


@pytest.mark.parametrize("name", ["lock", "log", "job", "ended.0"])
def test_a_link_among_a_steps_traces_is_refused_with_its_name(site: Site, rig: Rig, name: str) -> None:
    precious = rig.new_dir() / "precious"
    folder = site.install / ".llmb-tui/steps/directories-pretrain_nemotron4"
    rig.as_operator(f"mkdir -p {folder} && echo keep >{precious} && ln -s {precious} {folder}/{name}", check=True)
    with pytest.raises(LlmbError, match="cannot be written") as refused:
        site.run()
    assert f"{folder}/{name} is a symbolic link" in refused.value.why
    assert precious.read_text() == "keep\n"


def install_check(shared: SharedInstall, *, group_writable: bool = False) -> Check:
    profile = shared.rig.profile(install_dir=str(shared.install), group_writable=group_writable)
    with closing(SlurmCluster(profile)) as session:
        report = run_preflight(session, [login_node_group(Needs(profile))])
    return next(check for check in report.checks if check.id == "install-dir")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("chmod 777 .", "every user may write"),
        ("chmod 1777 .", "every user may write"),
        ("mkdir images; chmod o+w images", "images: every user may write"),
        ("mkdir .llmb-tui; ln -s /tmp .llmb-tui/steps", ".llmb-tui/steps: a symbolic link"),
        ("ln -s /nowhere workloads", "workloads: a symbolic link"),
        ("chmod g+w .; chown games .", "belongs to games"),
        ("mkdir venvs; chown games venvs", "venvs belongs to games"),
    ],
)
def test_an_install_directory_that_others_can_change_fails_the_preflight(login: Rig, line: str, found: str) -> None:
    shared = SharedInstall(login, empty=True)
    assert install_check(shared).status == "ok"
    login.as_root(f"cd {shared.install} && {line}", check=True)
    check = install_check(shared)
    assert (check.status, found in check.found) == ("failed", True), check
    assert check.fix
    trusted = install_check(shared, group_writable=True)
    assert trusted.status == ("ok" if "belongs" in found else "failed")
    assert found in trusted.found


@pytest.mark.parametrize(("line", "path"), [("chmod g+w .", ""), ("mkdir -m 775 images", "/images")])
def test_an_install_directory_that_the_group_can_change_is_a_warning(login: Rig, line: str, path: str) -> None:
    shared = SharedInstall(login, empty=True)
    login.as_operator(f"cd {shared.install} && {line}", check=True)
    check = install_check(shared)
    assert (check.status, check.found) == ("warning", f"{shared.install}{path}: the group users may write")
    assert "can change what your jobs run" in check.fix
    assert install_check(shared, group_writable=True).status == "ok"


def test_links_above_the_install_directory_are_fine(login: Rig) -> None:
    shared = SharedInstall(login, empty=True)
    link = shared.install.parent / f"link-{shared.install.name}"
    link.symlink_to(shared.install)
    shared.install = link
    assert install_check(shared).status == "ok"


@pytest.mark.parametrize(
    ("owner", "holder"),
    [
        ("games@login02.example.4711.$(date +%s)", "games on login02.example"),
        ("$(id -un 1000)@$(uname -n).1.$(date +%s)", "games"),
        (r"$(printf 'games@\033]52;c;eA==\a\033[2J[red].1.%03000d' 5)", "games on [red]"),
    ],
    ids=["another member's install", "in the user's own name", "escape sequences"],
)
def test_a_lock_of_another_member_is_left_alone_and_its_holder_is_reported(
    site: Site, rig: Rig, monkeypatch: pytest.MonkeyPatch, owner: str, holder: str
) -> None:
    """The lock is touched in the future, so it is held for as long as its owner likes."""
    step = site.install / ".llmb-tui/steps/directories-pretrain_nemotron4"
    rig.as_operator(f"umask 002; chmod g+ws {site.install}; mkdir -p {step}", check=True)
    as_member(rig, f"mkdir {step}/lock && echo {owner} >{step}/lock/owner && touch -d 2099-01-01 {step}/lock")
    before = rig.as_root(f"ls -laR {step}", check=True).stdout
    shown: list[StepState] = []
    monkeypatch.setattr(install, "HELD_PATIENCE_S", 0.1)
    with pytest.raises(LlmbError, match=f": {re.escape(holder)} runs this step, and it shows no progress") as refused:
        site.installer().run(shown.extend, threading.Event())
    assert f"Its lock, {step}/lock, is held" in refused.value.why
    assert [(state.status, state.detail) for state in shown if state.id == step.name] == [
        ("running", f"{holder} runs this step.")
    ]
    assert rig.as_root(f"ls -laR {step}", check=True).stdout == before
    assert not list(site.install.glob("workloads/*"))
