"""An install directory that a group shares, while another member of the group swaps what is in it for links."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing

import pytest

from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.preflight.login_node import login_node_group
from llmb_tui.preflight.needs import Needs
from llmb_tui.preflight.report import Check
from llmb_tui.preflight.run import run_preflight
from tests.rig.cluster import Rig
from tests.rig.machine import OPERATOR_ID
from tests.rig.swapping import as_member, swapping

TIMES = 1000


class Shared:
    """An install directory of the operator's to which the group may write, and files that are nobody else's business."""

    def __init__(self, rig: Rig, *, empty: bool = False) -> None:
        self.rig = rig
        self.install, self.precious = rig.new_dir(), rig.new_dir()
        self.install.chmod(0o2775)
        if not empty:
            as_member(rig, f"cd {self.install} && mkdir -p images venvs .llmb-tui/steps")
        lines = f"cd {self.precious} && umask 077"
        files = "for name in $(seq 20) owner job log script made; do echo keep >$name; done; mkdir -p d/made && echo keep >d/f"
        rig.as_operator(f"{lines} && {files}", check=True)
        self.before = self.seen()

    def seen(self) -> list[tuple[str, int, str]]:
        """Name, mode and content of everything that must stay as it is."""
        return sorted(
            (str(path), path.stat().st_mode, path.read_text() if path.is_file() else "")
            for path in (self.precious, *self.precious.rglob("*"))
        )

    def swapping(self, *names: str) -> AbstractContextManager[None]:
        stop = self.rig.new_dir() / "stop"
        return swapping(self.rig, stop, self.precious, [self.install / name for name in names])


@pytest.fixture
def shared(login: Rig) -> Shared:
    return Shared(login)


def in_one_shell(script: str, before: str, *words: str) -> str:
    """A line of sh that runs a script again and again, each time in a subshell, with something done before."""
    arguments = " ".join(words)
    return f"run() (\n{script}\n)\ni=0\nwhile [ $i -lt {TIMES} ]; do\ni=$((i + 1))\n{before}\nrun {arguments}\ndone >/dev/null 2>&1\n"


def test_what_is_removed_and_deleted_leads_nowhere_else_however_often_names_are_swapped(shared: Shared) -> None:
    script = remote_text("lock.sh", "inside.sh", "discard.sh")
    trash = f"{shared.install}/.llmb-tui/trash.{OPERATOR_ID}"
    shared.rig.as_operator(f"mkdir -m 700 {trash}", check=True)
    made = f"cd {shared.install}; mkdir -p venvs/made/d/e; set -- venvs/made; [ $((i % 2)) = 0 ] || set --"
    with shared.swapping(f".llmb-tui/trash.{OPERATOR_ID}", "venvs"):
        shared.rig.as_operator(in_one_shell(script, made, str(shared.install), "token", '"$@"'), timeout_s=300)
    assert shared.seen() == shared.before


def install_check(shared: Shared, **changes: bool) -> Check:
    profile = shared.rig.profile(install_dir=str(shared.install), **changes)
    with closing(SlurmCluster(profile)) as session:
        report = run_preflight(session, [login_node_group(Needs(profile))])
    return next(check for check in report.checks if check.id == "install-dir")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("chmod 777 .", "everyone may write"),
        ("chmod 1777 .", "everyone may write"),
        ("mkdir images; chmod o+w images", "images: everyone may write"),
        ("mkdir .llmb-tui; ln -s /tmp .llmb-tui/steps", ".llmb-tui/steps: a symbolic link"),
        ("ln -s /nowhere workloads", "workloads: a symbolic link"),
        ("chown games .", "belongs to games"),
        ("mkdir venvs; chown games venvs", "venvs belongs to games"),
    ],
)
def test_an_install_directory_that_others_can_change_fails_the_preflight(login: Rig, line: str, found: str) -> None:
    shared = Shared(login, empty=True)
    assert install_check(shared).status == "ok"
    login.as_root(f"cd {shared.install} && {line}", check=True)
    check = install_check(shared)
    assert (check.status, found in check.found) == ("failed", True), check
    assert check.fix
    trusted = install_check(shared, group_writable=True)
    assert trusted.status == ("ok" if "belongs" in found else "failed")
    assert found in trusted.found


def test_links_above_the_install_directory_are_fine(login: Rig) -> None:
    shared = Shared(login, empty=True)
    link = shared.install.parent / f"link-{shared.install.name}"
    link.symlink_to(shared.install)
    shared.install = link
    assert install_check(shared).status == "ok"
