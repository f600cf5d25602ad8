"""The files of the machine that a rig runs on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.rig.cluster import Rig
from tests.rig.machine import REPOSITORY

# A machine whose /etc may be changed: a mount namespace with a copy of it. adduser and apt replace files like this.
_MACHINE = """\
set -e
cp --archive /etc "$2"
mount --bind "$2/etc" /etc
exec "$1" - "$2" <<'END'
import os, sys
from pathlib import Path
from tests.rig.machine import Machine

machine = Machine(Path(sys.argv[1], "rig"))
machine.prepare()
machine.start()
for name in ("passwd", "group", "shadow", "hosts"):
    new = Path("/etc", f"{name}+")
    new.write_bytes(Path("/etc", name).read_bytes())
    os.rename(new, f"/etc/{name}")
print(machine.run("id --user --name; getent hosts nvcr.io", user="operator").stdout)
machine.stop()
END
"""


def test_a_rig_keeps_its_users_and_hosts_when_the_machine_replaces_its_files(login: Rig, tmp_path: Path) -> None:
    assert login.user == "operator"  # a rig can start here
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", _MACHINE, "sh", sys.executable, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        check=False,
    )
    assert done.stdout.split()[:2] == ["operator", "127.0.0.1"], done.stderr
