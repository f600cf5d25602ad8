"""An install directory that a group shares, while another member of the group swaps what is in it for links."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb_tui.cluster.remote_text import remote_text
from tests.rig.cluster import Rig
from tests.rig.machine import OPERATOR_ID
from tests.rig.swapping import as_member, swapping

TIMES = 1000


class Shared:
    """An install directory of the operator's to which the group may write, and files that are nobody else's business."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.install, self.precious = rig.new_dir(), rig.new_dir()
        self.install.chmod(0o2775)
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

    def swapping(self, *names: str):  # type: ignore[no-untyped-def]
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
